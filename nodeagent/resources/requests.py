"""What a pod asks of the resource managers, taken out of the API object once."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from nodeagent.api.pod import Container, Pod
from nodeagent.api.qos import QOSClass, compute_qos_class
from nodeagent.api.resources import CPU, HUGEPAGES_PREFIX, MEMORY, amount, is_restartable_init


class Kind(StrEnum):
    """How a container shares time with the others of its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """What one container wants for itself alone; nothing (the defaults) means the shared pools."""

    name: str
    kind: Kind = Kind.APP
    cpus: int = 0
    memory: tuple[tuple[str, int], ...] | None = ()
    """Bytes by type (memory, hugepages-...), by name. None: an amount that is no whole number of bytes."""
    devices: tuple[tuple[str, int], ...] = ()
    shared_because: str = ""
    """Why it gets no CPUs of its own, for people who expected some."""


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The containers in the order in which they are served: init containers first."""

    uid: str
    containers: tuple[ContainerRequest, ...]

    def of_kind(self, kind: Kind) -> Iterator[ContainerRequest]:
        return (container for container in self.containers if container.kind is kind)

    def container(self, name: str) -> ContainerRequest:
        return next(container for container in self.containers if container.name == name)


def pod_request(pod: Pod) -> PodRequest:
    """Take from a pod what kubelet's managers look at."""
    why_shared = _why_shared(pod)
    containers = [
        _container_request(
            container, Kind.SIDECAR if is_restartable_init(container) else Kind.INIT, why_shared
        )
        for container in pod.spec.init_containers
    ]
    containers += (_container_request(container, Kind.APP, why_shared) for container in pod.spec.containers)
    return PodRequest(pod.metadata.uid, tuple(containers))


def _container_request(container: Container, kind: Kind, why_shared: str) -> ContainerRequest:
    requests = container.resources.requests
    devices = tuple(
        sorted(
            (name, quantity.value())
            for name, quantity in requests.items()
            if "/" in name and quantity.sign > 0
        )
    )
    if why_shared:
        return ContainerRequest(container.name, kind, devices=devices, shared_because=why_shared)
    cpu = amount(requests, CPU)
    # Thousandths decide, as everywhere in Kubernetes: 1.9999 CPUs are rounded up to 2.
    whole = cpu.value() * 1000 == cpu.milli_value()
    memory = (
        (name, quantity.value())
        for name, quantity in requests.items()
        if name == MEMORY or name.startswith(HUGEPAGES_PREFIX)
    )
    return ContainerRequest(
        container.name,
        kind,
        cpus=cpu.value() if whole else 0,
        memory=tuple(sorted(memory)),
        devices=devices,
        shared_because="" if whole else f"{cpu} CPUs is no whole number of CPUs",
    )


def _why_shared(pod: Pod) -> str:
    """Return why the whole pod gets nothing of its own: it must be Guaranteed by its containers."""
    if pod.spec.resources is not None:
        return "the pod has pod-level resources, which get no exclusive CPUs or memory"
    qos_class = compute_qos_class(pod)
    if qos_class is QOSClass.GUARANTEED:
        return ""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for name in (CPU, MEMORY):
            limit, request = (
                amount(amounts, name)
                for amounts in (container.resources.limits, container.resources.requests)
            )
            if limit.sign <= 0:
                return (
                    f"the pod is {qos_class}, not Guaranteed: container {container.name} has no {name} limit"
                )
            if limit != request:
                return (
                    f"the pod is {qos_class}, not Guaranteed: container {container.name} "
                    f"requests {request} {name} and is limited to {limit}"
                )
    return f"the pod is {qos_class}, not Guaranteed"
