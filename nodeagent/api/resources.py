"""What a pod asks for: requests and limits summed over its containers as kubelet does."""

from nodeagent.api.pod import Container, Pod
from nodeagent.api.quantity import ZERO, Quantity, ResourceList

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"

Resources = dict[str, Quantity]


def is_restartable_init(container: Container) -> bool:
    """Whether an init container keeps running beside the regular ones (a sidecar)."""
    return container.restart_policy == "Always"


def is_pod_level_resource(name: str) -> bool:
    """Whether `spec.resources` of a pod may speak for the resource `name`."""
    return name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX)


def container_requests(container: Container) -> Resources:
    return container.resources.requests


def container_limits(container: Container) -> Resources:
    return container.resources.limits


def amount(resources: ResourceList, name: str) -> Quantity:
    """Return the quantity of `name`, zero where there is none."""
    return resources.get(name, ZERO)


def pod_level_requests(pod: Pod) -> Resources:
    """Return the requests in `spec.resources` that count there."""
    return _pod_level(pod.spec.resources.requests) if pod.spec.resources is not None else {}


def pod_level_limits(pod: Pod) -> Resources:
    """Return the limits in `spec.resources` that count there."""
    return _pod_level(pod.spec.resources.limits) if pod.spec.resources is not None else {}


def aggregate_requests(pod: Pod) -> Resources:
    """Return what the containers request at most at one time, without overhead and pod-level resources."""
    init = pod.spec.init_containers
    return _aggregate(
        [container.resources.requests for container in pod.spec.containers],
        [(container.resources.requests, is_restartable_init(container)) for container in init],
    )


def aggregate_limits(pod: Pod) -> Resources:
    """Return what the containers are limited to at one time, without overhead and pod-level resources."""
    init = pod.spec.init_containers
    return _aggregate(
        [container.resources.limits for container in pod.spec.containers],
        [(container.resources.limits, is_restartable_init(container)) for container in init],
    )


def pod_requests(pod: Pod, *, overhead: bool = True, pod_level: bool = True) -> Resources:
    """Return the requests of the whole pod; a new dict.

    `overhead=False` leaves `spec.overhead` out, `pod_level=False` lets only the containers speak.
    """
    total = aggregate_requests(pod)
    if pod_level:
        total.update(pod_level_requests(pod))
    if overhead:
        add_to(total, pod.spec.overhead)
    return total


def pod_limits(pod: Pod, *, overhead: bool = True, pod_level: bool = True) -> Resources:
    """Return the limits of the whole pod; a new dict. Overhead raises a limit and never makes one."""
    total = aggregate_limits(pod)
    if pod_level:
        total.update(pod_level_limits(pod))
    if overhead:
        add_to(
            total,
            {name: more for name, more in pod.spec.overhead.items() if not amount(total, name).is_zero},
        )
    return total


def add_to(total: Resources, more: ResourceList) -> None:
    """Add `more` to `total` in place, name by name."""
    for name, quantity in more.items():
        known = total.get(name)
        total[name] = quantity if known is None else known + quantity


def raise_to(total: Resources, floor: ResourceList) -> None:
    """Raise each amount of `total` in place to at least that of `floor`."""
    for name, quantity in floor.items():
        known = total.get(name)
        if known is None or known < quantity:
            total[name] = quantity


def _pod_level(resources: Resources) -> Resources:
    return {name: quantity for name, quantity in resources.items() if is_pod_level_resource(name)}


def _aggregate(regular: list[Resources], init: list[tuple[Resources, bool]]) -> Resources:
    total: Resources = {}
    for resources in regular:
        add_to(total, resources)
    sidecars: Resources = {}
    highest_init: Resources = {}
    for resources, restartable in init:
        if restartable:
            add_to(total, resources)
            add_to(sidecars, resources)
            raise_to(highest_init, sidecars)
        else:
            beside_sidecars = dict(resources)
            add_to(beside_sidecars, sidecars)
            raise_to(highest_init, beside_sidecars)
    raise_to(total, highest_init)
    return total
