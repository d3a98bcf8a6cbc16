"""May this pod exist: the admission plugins in Kubernetes' order, and what each of them found.

Priority and LimitRanger fill in first; then the pod is validated as it now stands; then LimitRanger holds it
to its bounds; the quota comes last, so that nothing is charged for a pod that another plugin refuses.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from nodeagent.admission import limit_range, resource_quota
from nodeagent.admission.limit_range import Default
from nodeagent.admission.limit_range_bounds import Comparison
from nodeagent.admission.policies import Policies, Policy
from nodeagent.admission.priority import Resolution, prioritize
from nodeagent.admission.quota.usage import measured
from nodeagent.admission.refusal import Refusal, invalid
from nodeagent.admission.request import PODS, Operation, Request
from nodeagent.admission.resource_quota import QuotaDecision
from nodeagent.api.pod import Pod
from nodeagent.api.policy import ResourceQuota
from nodeagent.api.validation import validate_pod

__all__ = ["Outcome", "Policies", "Policy", "Record", "admit", "admit_request"]


@dataclass(frozen=True, slots=True)
class Record:
    """What admission looked at and what it found, step by step; steps after a refusal were not taken."""

    resolution: Resolution | None = None
    defaults: tuple[Default, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    quota: QuotaDecision | None = None

    def sentences(self) -> Iterator[str]:
        """Tell it, one fact a line."""
        if self.resolution is not None:
            yield str(self.resolution)
        yield from map(str, (*self.defaults, *self.comparisons))
        if self.quota is not None:
            yield from map(str, (*self.quota.unmatched, *self.quota.charges))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The pod as it was admitted (or as far as it came), and why it was refused, if it was.

    `changed` are the quotas whose `status.used` grows with the pod.
    """

    pod: Pod
    refusal: Refusal | None
    record: Record
    changed: tuple[ResourceQuota, ...] = ()


def admit(pod: Pod, policies: Policies, existing_pods: Iterable[Pod], now: datetime) -> Outcome:
    """Admit a new pod where no store keeps count: what the quotas allow is reckoned against `existing_pods`.

    `pod` has its API defaults, and `existing_pods` are as they were admitted. One of them that has the UID or
    the name of `pod` is the pod itself.
    """
    namespace = pod.metadata.namespace
    quotas = policies.quotas_of(namespace)
    if quotas:
        others = [other for other in existing_pods if _counts_beside(other, pod)]
        quotas = measured(quotas, {PODS: others}, now)
    return admit_request(Request(PODS, pod), replace(policies, quotas=quotas), now)


def admit_request(request: Request[Pod], policies: Policies, now: datetime) -> Outcome:
    """Admit what is asked about a pod, going by the status of the quotas as they are stored."""
    namespace = request.object.metadata.namespace
    limit_ranges = policies.limit_ranges_of(namespace)

    prioritized = prioritize(request, policies.priority_classes)
    record = Record(prioritized.resolution)
    if prioritized.refusal is not None:
        return Outcome(prioritized.pod, prioritized.refusal, record)

    defaulted = limit_range.set_defaults(replace(request, object=prioritized.pod), limit_ranges)
    record = replace(record, defaults=defaulted.defaults)
    pod = defaulted.pod
    errors = validate_pod(pod) if request.operation is Operation.CREATE else ()
    if errors:
        return Outcome(pod, invalid("Pod", request.name, errors), record)

    request = replace(request, object=pod)
    checked = limit_range.check_pod(request, limit_ranges)
    record = replace(record, comparisons=checked.comparisons)
    if checked.refusal is not None:
        return Outcome(pod, checked.refusal, record)

    quotas = policies.quotas_of(namespace)
    decision = resource_quota.check(request, quotas, now, policies.limited_resources)
    record = replace(record, quota=decision)
    return Outcome(pod, decision.refusal, record, decision.changed)


def _counts_beside(other: Pod, pod: Pod) -> bool:
    """Whether `other` is a different pod of the same namespace."""
    one, two = other.metadata, pod.metadata
    if one.namespace != two.namespace:
        return False
    return one.name != two.name and (not two.uid or one.uid != two.uid)
