"""QoS class, oom_score_adj and what makes a pod critical."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from nodeagent.api.pod import Container, Pod
from nodeagent.api.quantity import Quantity, ResourceList
from nodeagent.api.resources import (
    CPU,
    MEMORY,
    add_to,
    aggregate_requests,
    amount,
    is_restartable_init,
    pod_level_requests,
    pod_requests,
)

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
SYSTEM_NODE_CRITICAL = "system-node-critical"
SYSTEM_CLUSTER_CRITICAL = "system-cluster-critical"
# The priority classes that exist everywhere, and their values.
SYSTEM_PRIORITIES: Mapping[str, int] = {
    SYSTEM_NODE_CRITICAL: SYSTEM_CRITICAL_PRIORITY + 1000,
    SYSTEM_CLUSTER_CRITICAL: SYSTEM_CRITICAL_PRIORITY,
}
CONFIG_SOURCE_ANNOTATION = "kubernetes.io/config.source"
CONFIG_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"

GUARANTEED_OOM_SCORE_ADJ = -997
BEST_EFFORT_OOM_SCORE_ADJ = 1000
# Burstable containers stay between those of the other two classes.
LOWEST_BURSTABLE_OOM_SCORE_ADJ = 3
HIGHEST_BURSTABLE_OOM_SCORE_ADJ = 999


class QOSClass(StrEnum):
    """The three classes, from best protected to first to go."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def qos_class(pod: Pod) -> QOSClass:
    """Return the class that the pod's status says, or else the computed one."""
    stated = pod.status.qos_class
    return QOSClass(stated) if stated in set(QOSClass) else compute_qos_class(pod)


def compute_qos_class(pod: Pod) -> QOSClass:
    """Return the class that follows from cpu and memory of the spec; zero amounts count as absent."""
    if pod.spec.resources is not None:
        parts = [pod.spec.resources]
    else:
        parts = [container.resources for container in (*pod.spec.containers, *pod.spec.init_containers)]
    requests = _summed(part.requests for part in parts)
    limits = _summed(part.limits for part in parts)
    if not requests and not limits:
        return QOSClass.BEST_EFFORT
    all_limited = all(len(_positive(part.limits)) == 2 for part in parts)
    # Sums are compared, as kubelet does: amounts swapped between two containers still make Guaranteed.
    return QOSClass.GUARANTEED if all_limited and requests == limits else QOSClass.BURSTABLE


def oom_score_adj(pod: Pod, container: Container, memory_capacity_bytes: int) -> int:
    """Return kubelet's figure for one container; it may exceed 1000, the most that the kernel takes."""
    if is_node_critical(pod):
        return GUARANTEED_OOM_SCORE_ADJ
    match qos_class(pod):
        case QOSClass.GUARANTEED:
            return GUARANTEED_OOM_SCORE_ADJ
        case QOSClass.BEST_EFFORT:
            return BEST_EFFORT_OOM_SCORE_ADJ
    request = _memory_request_bytes(container)
    if is_restartable_init(container):
        # A sidecar is to outlive the containers that it serves.
        smallest = min((_memory_request_bytes(regular) for regular in pod.spec.containers), default=0)
        request = max(request, smallest)
    score = 1000 - _divide_toward_zero(1000 * (request + _pod_level_share(pod)), memory_capacity_bytes)
    if score == BEST_EFFORT_OOM_SCORE_ADJ:
        return HIGHEST_BURSTABLE_OOM_SCORE_ADJ
    return max(score, LOWEST_BURSTABLE_OOM_SCORE_ADJ)


def is_static(pod: Pod) -> bool:
    """Whether the pod comes from a manifest of this node rather than from an API server."""
    return pod.metadata.annotations.get(CONFIG_SOURCE_ANNOTATION, "api") != "api"


def is_mirror(pod: Pod) -> bool:
    """Whether the pod is the picture of a static pod in an API server."""
    return CONFIG_MIRROR_ANNOTATION in pod.metadata.annotations


def pod_priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def is_critical(pod: Pod) -> bool:
    """Whether kubelet calls the pod critical: static, mirror, or of system priority."""
    return is_static(pod) or is_mirror(pod) or pod_priority(pod) >= SYSTEM_CRITICAL_PRIORITY


def is_node_critical(pod: Pod) -> bool:
    return is_critical(pod) and pod.spec.priority_class_name == SYSTEM_NODE_CRITICAL


def _positive(resources: ResourceList) -> ResourceList:
    return {name: resources[name] for name in (CPU, MEMORY) if amount(resources, name).sign > 0}


def _summed(lists: Iterable[ResourceList]) -> ResourceList:
    total: dict[str, Quantity] = {}
    for resources in lists:
        add_to(total, _positive(resources))
    return total


def _memory_request_bytes(container: Container) -> int:
    return amount(container.resources.requests, MEMORY).value()


def _pod_level_share(pod: Pod) -> int:
    """Return each container's part of the memory that the pod requests beyond its containers (or below)."""
    if not pod_level_requests(pod):
        return 0
    of_pod = amount(pod_requests(pod, overhead=False), MEMORY).value()
    of_containers = amount(aggregate_requests(pod), MEMORY).value()
    count = len(pod.spec.containers) + len(pod.spec.init_containers)
    return _divide_toward_zero(of_pod - of_containers, count)


def _divide_toward_zero(number: int, divisor: int) -> int:
    quotient = abs(number) // divisor
    return quotient if number >= 0 else -quotient
