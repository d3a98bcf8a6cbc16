"""A pod whose containers are being resized counts with the most of what it had, was granted and asks for."""

from collections.abc import Iterable

from msgspec.structs import replace

from nodeagent.api.pod import Container, ContainerStatus, Pod, ResourceRequirements
from nodeagent.api.quantity import ResourceList
from nodeagent.api.resources import Resources, is_restartable_init, raise_to

RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"
NOTHING = ResourceRequirements()


def at_most(pod: Pod) -> Pod:
    """Return the pod with the largest resources that spec, status and allocation name."""
    statuses = {
        status.name: status
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        if status.resources is not None
    }
    if not statuses and pod.status.resources is None:
        return pod
    infeasible = _is_infeasible(pod)

    def largest(containers: Iterable[Container]) -> tuple[Container, ...]:
        return tuple(_container(each, statuses.get(each.name), infeasible) for each in containers)

    spec = replace(pod.spec, containers=largest(pod.spec.containers))
    init = tuple(
        _container(each, statuses.get(each.name), infeasible) if is_restartable_init(each) else each
        for each in spec.init_containers
    )
    spec = replace(spec, init_containers=init)
    if spec.resources is not None and pod.status.resources is not None:
        stated = NOTHING if infeasible else spec.resources
        resources = _largest(stated, pod.status.resources, pod.status.allocated_resources)
        spec = replace(spec, resources=resources)
    return replace(pod, spec=spec)


def _container(container: Container, status: ContainerStatus | None, infeasible: bool) -> Container:
    if status is None or status.resources is None:
        return container
    stated = NOTHING if infeasible else container.resources
    resources = _largest(stated, status.resources, status.allocated_resources)
    return replace(container, resources=resources)


def _largest(
    stated: ResourceRequirements, actual: ResourceRequirements, allocated: ResourceList
) -> ResourceRequirements:
    return replace(
        stated,
        requests=_maximum(stated.requests, actual.requests, allocated),
        limits=_maximum(stated.limits, actual.limits),
    )


def _maximum(*lists: ResourceList) -> Resources:
    result: Resources = {}
    for amounts in lists:
        raise_to(result, amounts)
    return result


def _is_infeasible(pod: Pod) -> bool:
    """Whether the resize cannot be granted on this node, so that what is asked for does not count."""
    pending = (each for each in pod.status.conditions if each.type == RESIZE_PENDING)
    condition = next(pending, None)
    return condition is not None and condition.reason == INFEASIBLE
