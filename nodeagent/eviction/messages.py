"""What an evicted pod is told, in kubelet's exact words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nodeagent.api.pod import Pod
from nodeagent.api.quantity import BINARY_SI, Quantity
from nodeagent.api.resources import MEMORY, amount, pod_level_requests
from nodeagent.eviction.ranking import memory_usage
from nodeagent.eviction.signals import RESOURCES, Observation, Resource, quantity_of
from nodeagent.eviction.thresholds import Threshold
from nodeagent.stats.summary import ContainerStats, PodStats

OFFENDING_CONTAINERS = "offending_containers"
OFFENDING_CONTAINERS_USAGE = "offending_containers_usage"
OFFENDING_POD = "offending_pod"
OFFENDING_POD_USAGE = "offending_pod_usage"
STARVED_RESOURCE = "starved_resource"


@dataclass(frozen=True, slots=True)
class Message:
    """The text of the status and of the event, and the event's annotations."""

    text: str
    annotations: Mapping[str, str] = field(default_factory=dict)


def node_pressure(threshold: Threshold, observed: Observation, pod: Pod, stats: PodStats | None) -> Message:
    """Say that a pod goes because of a threshold, and which of its parts used more than requested."""
    resource = RESOURCES[threshold.signal]
    text = (
        f"The node was low on resource: {resource}. "
        f"Threshold quantity: {threshold.value.of(observed.capacity)}, "
        f"available: {quantity_of(threshold.signal, observed.available)}. "
    )
    if stats is None:
        return Message(text)
    annotations = {STARVED_RESOURCE: resource.value}
    requests = pod_level_requests(pod)
    if resource is Resource.MEMORY and MEMORY in requests:
        usage = str(Quantity.of(memory_usage(stats), BINARY_SI))
        name = pod.metadata.name
        text += (
            f"Pod {name} was using {usage}, request is {requests[MEMORY]}, "
            f"has larger consumption of {resource}. "
        )
        annotations |= {OFFENDING_POD: name, OFFENDING_POD_USAGE: usage}
    offenders = _offenders(resource, pod, stats.containers)
    for name, usage, request in offenders:
        text += f"Container {name} was using {usage}, request is {request}, "
        text += f"has larger consumption of {resource}. "
    annotations[OFFENDING_CONTAINERS] = ",".join(name for name, _, _ in offenders)
    annotations[OFFENDING_CONTAINERS_USAGE] = ",".join(usage for _, usage, _ in offenders)
    return Message(text, annotations)


def attempting_to_reclaim(resource: Resource) -> str:
    """Say on the node that something will be done."""
    return f"Attempting to reclaim {resource}"


def empty_dir_over_limit(volume: str, limit: Quantity) -> Message:
    """Say that an emptyDir is larger than its sizeLimit."""
    return Message(f'Usage of EmptyDir volume "{volume}" exceeds the limit "{limit}". ')


def pod_over_storage_limit(limit: Quantity) -> Message:
    """Say that a pod uses more local storage than its containers may together."""
    return Message(f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ")


def container_over_storage_limit(container: str, limit: Quantity) -> Message:
    """Say that a container uses more local storage than it may."""
    return Message(f'Container {container} exceeded its local ephemeral storage limit "{limit}". ')


def node_had_conditions(conditions: Iterable[str]) -> str:
    """Say why a pod is not admitted."""
    return f"The node had condition: [{' '.join(sorted(conditions))}]. "


def _offenders(
    resource: Resource, pod: Pod, containers: Iterable[ContainerStats]
) -> list[tuple[str, str, Quantity]]:
    """Return name, usage and request of each container that uses more than it requests."""
    requests = {
        container.name: amount(container.resources.requests, resource)
        for container in (*pod.spec.init_containers, *pod.spec.containers)
    }
    found = []
    for container in containers:
        used = _container_usage(resource, container)
        if container.name in requests and used is not None:
            usage = Quantity.of(used, BINARY_SI)
            if usage > requests[container.name]:
                found.append((container.name, str(usage), requests[container.name]))
    return found


def _container_usage(resource: Resource, container: ContainerStats) -> int | None:
    match resource:
        case Resource.MEMORY:
            return container.memory.working_set_bytes if container.memory is not None else None
        case Resource.EPHEMERAL_STORAGE:
            parts = (container.rootfs, container.logs)
            used = [part.used_bytes for part in parts if part is not None and part.used_bytes is not None]
            return sum(used) if len(used) == len(parts) else None
        case _:
            return None
