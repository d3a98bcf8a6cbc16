"""Which pods must give back what their group was only lent."""

from collections.abc import Iterable, Mapping

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.amounts import Amounts, exceeded, masked, minus, plus
from nodeagent.admission.elastic_quota.group import CountedPod, Group
from nodeagent.admission.elastic_quota.quotas import Quotas
from nodeagent.api.qos import pod_priority
from nodeagent.api.quantity import Quantity
from nodeagent.scheduling.preemption import started_at


class Overuse:
    """Remembers since when each group uses more than it may; a group has that long to shrink by itself."""

    def __init__(self, delay_seconds: float) -> None:
        self._delay_seconds = delay_seconds
        self._last_under: dict[str, float] = {}

    def look(self, quotas: Quotas, now: float) -> dict[str, tuple[CountedPod, ...]]:
        """Return by group the pods that must go at `now`, in seconds; limits are those last worked out."""
        watched = [group for group in quotas.groups() if group.name != names.SYSTEM]
        known = self._last_under
        self._last_under = {group.name: known.get(group.name, now) for group in watched}
        revoked = {}
        for group in watched:
            limit = quotas.limit(group)
            if not exceeded(group.all.used, limit):
                self._last_under[group.name] = now
            elif now - self._last_under[group.name] > self._delay_seconds:
                self._last_under[group.name] = now
                if pods := to_revoke(group, limit):
                    revoked[group.name] = pods
        return revoked


def to_revoke(group: Group, limit: Mapping[str, Quantity]) -> tuple[CountedPod, ...]:
    """Choose, least important first, whom to take away until the group uses no more than `limit`.

    Where that is more than was needed, the more important of them stay.
    """
    used = group.all.used
    going: list[CountedPod] = []
    for pod in _least_important_first(group.pods.values()):
        if not exceeded(used, limit):
            break
        if pod.is_preemptible:
            used = minus(used, _share(pod, used))
            going.append(pod)
    if exceeded(used, limit):
        return tuple(going)
    revoked = []
    for pod in reversed(going):
        with_pod = plus(used, _share(pod, used))
        if exceeded(with_pod, limit):
            revoked.append(pod)
        else:
            used = with_pod
    return tuple(revoked)


def _share(pod: CountedPod, used: Amounts) -> Amounts:
    return masked(pod.request, used.keys())


def _least_important_first(pods: Iterable[CountedPod]) -> list[CountedPod]:
    assigned = [pod for pod in pods if pod.is_assigned]
    return sorted(assigned, key=lambda each: (pod_priority(each.pod), -started_at(each.pod)))
