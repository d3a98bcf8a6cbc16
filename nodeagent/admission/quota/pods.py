"""What a pod uses of a quota."""

from collections.abc import Collection
from datetime import datetime

from nodeagent.admission.quota.evaluator import (
    DEVICE_CLASS_PREFIX,
    ONE,
    REQUESTS_PREFIX,
    Evaluator,
    is_request_for_device,
)
from nodeagent.admission.quota.resized import at_most
from nodeagent.admission.quota.scopes import Requirement, Scope, chooses
from nodeagent.admission.request import PODS, RESIZE, Operation, Request
from nodeagent.api.affinity import PodAffinityTerm
from nodeagent.api.meta import parse_time
from nodeagent.api.pod import Container, Pod
from nodeagent.api.qos import QOSClass, qos_class
from nodeagent.api.quantity import ResourceList
from nodeagent.api.resource_names import is_extended, is_huge_pages
from nodeagent.api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    Resources,
    pod_level_limits,
    pod_level_requests,
    pod_limits,
    pod_requests,
)

COUNT_PODS = "count/pods"
LIMITS_PREFIX = "limits."
HUGE_PAGES_PREFIXES = (HUGEPAGES_PREFIX, f"{REQUESTS_PREFIX}{HUGEPAGES_PREFIX}")
PREFIXES = ("", REQUESTS_PREFIX, LIMITS_PREFIX)
COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)
COMPUTE_NAMES = frozenset(f"{prefix}{name}" for prefix in PREFIXES for name in COMPUTE)
# A quota of these obliges every container to state them: a mistake, as Kubernetes says itself, but kept.
OBLIGATORY_NAMES = frozenset(f"{prefix}{name}" for prefix in PREFIXES for name in (CPU, MEMORY))
FINISHED = ("Succeeded", "Failed")


class PodEvaluator(Evaluator[Pod]):
    """Charges what runs: a pod that is over only counts as an object."""

    def __init__(self) -> None:
        super().__init__(PODS, "pods")

    def handles(self, request: Request[Pod]) -> bool:
        if request.operation is Operation.UPDATE:
            return request.subresource == RESIZE or (not request.subresource and _changes_scope(request))
        return super().handles(request)

    def uses(self, name: str) -> bool:
        return (
            name in COMPUTE_NAMES
            or name in self.names
            or name.startswith(HUGE_PAGES_PREFIXES)
            or is_request_for_device(name)
        )

    def selected(self, item: Pod, requirement: Requirement) -> bool:
        match requirement.scope_name:
            case Scope.TERMINATING:
                return _is_terminating(item)
            case Scope.NOT_TERMINATING:
                return not _is_terminating(item)
            case Scope.BEST_EFFORT:
                return qos_class(item) is QOSClass.BEST_EFFORT
            case Scope.NOT_BEST_EFFORT:
                return qos_class(item) is not QOSClass.BEST_EFFORT
            case Scope.PRIORITY_CLASS:
                name = item.spec.priority_class_name
                return chooses(requirement, (name,) if name else ())
            case Scope.CROSS_NAMESPACE_POD_AFFINITY:
                return any(term.namespaces or term.namespace_selector is not None for term in _terms(item))
        return False

    def missing(self, item: Pod, names: Collection[str]) -> str:
        if pod_level_requests(item) or pod_level_limits(item):
            return ""
        containers = (*item.spec.containers, *item.spec.init_containers)
        parts = []
        for name in sorted(OBLIGATORY_NAMES.intersection(names)):
            silent = sorted({each.name for each in containers if not _states(each, name)})
            if silent:
                parts.append(f"{name} for: {','.join(silent)}")
        return f"must specify {'; '.join(parts)}" if parts else ""

    def usage(self, item: Pod, now: datetime) -> Resources:
        if _is_over(item, now):
            return {COUNT_PODS: ONE}
        pod = at_most(item)
        return {**super().usage(item, now), **_compute(pod_requests(pod), pod_limits(pod))}


def _compute(requests: ResourceList, limits: ResourceList) -> Resources:
    used: Resources = {}
    for name, amount in requests.items():
        if name in COMPUTE or is_huge_pages(name):
            used[name] = used[f"{REQUESTS_PREFIX}{name}"] = amount
        elif name.startswith(DEVICE_CLASS_PREFIX) or is_extended(name):
            used[f"{REQUESTS_PREFIX}{name}"] = amount
    for name in COMPUTE:
        if name in limits:
            used[f"{LIMITS_PREFIX}{name}"] = limits[name]
    return used


def _states(container: Container, name: str) -> bool:
    if name.startswith(LIMITS_PREFIX):
        return name.removeprefix(LIMITS_PREFIX) in container.resources.limits
    return name.removeprefix(REQUESTS_PREFIX) in container.resources.requests


def _is_over(pod: Pod, now: datetime) -> bool:
    """Whether the pod has ended, or has been gone for longer than it was given to end."""
    metadata = pod.metadata
    if pod.status.phase in FINISHED:
        return True
    if metadata.deletion_timestamp is None or metadata.deletion_grace_period_seconds is None:
        return False
    try:
        deleted_at = parse_time(metadata.deletion_timestamp)
    except (ValueError, OverflowError):
        # The text has the form of a time and is in no calendar, such as the 30th of February.
        return False
    return now.timestamp() > deleted_at.timestamp() + metadata.deletion_grace_period_seconds


def _is_terminating(pod: Pod) -> bool:
    return pod.spec.active_deadline_seconds is not None and pod.spec.active_deadline_seconds >= 0


def _changes_scope(request: Request[Pod]) -> bool:
    old = request.old
    return old is not None and _is_terminating(old) != _is_terminating(request.object)


def _terms(pod: Pod) -> list[PodAffinityTerm]:
    affinity = pod.spec.affinity
    if affinity is None:
        return []
    return [
        term
        for part in (affinity.pod_affinity, affinity.pod_anti_affinity)
        if part is not None
        for term in (
            *part.required_during_scheduling_ignored_during_execution,
            *(
                weighted.pod_affinity_term
                for weighted in part.preferred_during_scheduling_ignored_during_execution
            ),
        )
    ]
