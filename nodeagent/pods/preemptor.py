"""Makes room for a pod that matters more: whom it displaces, how they end, who may not slip in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodeagent.api.pod import Pod
from nodeagent.api.qos import pod_priority
from nodeagent.clock import Clock
from nodeagent.eviction.record import record_of_end
from nodeagent.pods.decisions import DecisionLog
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.manager import PodManager
from nodeagent.pods.record import Failure, grace_seconds
from nodeagent.pods.team_quotas import TeamQuotas
from nodeagent.scheduling import critical
from nodeagent.scheduling.fit import Comparison, NodeView, fit
from nodeagent.scheduling.preemption import NEVER, Candidate, find_victims

# The scheduler's word for a displaced pod, and the cause under which its end is kept.
REASON = "Preempted"
CAUSE = "Preemption"


@dataclass(frozen=True, slots=True)
class Room:
    """Whether the pod gets room by waiting, and what was found, in sentences."""

    is_coming: bool
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Displaced:
    """Who must go; or why nobody's end helps."""

    pods: Sequence[Pod] = ()
    why_nobody: str = ""


class Preemptor:
    """Ends pods of lower priority with their own grace, and keeps their room for the pod they make way for.

    A system-critical pod displaces by kubelet's rule, one of an elastic quota only pods of its own group,
    and every other one by the scheduler's: the fewest and least important victims.
    """

    def __init__(
        self,
        node: Callable[[], NodeView],
        manager: PodManager,
        quotas: TeamQuotas,
        is_critical: Callable[[Pod], bool],
        events: EventRecorder,
        decisions: DecisionLog,
        clock: Clock,
        preempted: Callable[[str], None],
    ) -> None:
        self._node = node
        self._manager = manager
        self._quotas = quotas
        self._is_critical = is_critical
        self._events = events
        self._decisions = decisions
        self._clock = clock
        self._preempted = preempted
        # By UID, in the order of nomination: who waits for room that was made.
        self._nominated: dict[str, Pod] = {}

    def rivals_of(self, pod: Pod) -> list[Pod]:
        """Return whose resources the pod cannot have: those that are here, and those that come before it."""
        return [*self._manager.rivals_of(pod), *self.kept_before(pod)]

    def make_room(self, pod: Pod, *, is_over_quota: bool) -> Room:
        """Begin to end the pods whose room a refused pod may take, unless enough are ending already."""
        uid = pod.metadata.uid
        if pod.spec.preemption_policy == "Never":
            return Room(False, (f"preemption: {NEVER}",))
        rivals = self._manager.rivals_of(pod)
        leaving = [each for each in rivals if self._manager.is_leaving(each.metadata.uid)]
        staying = [each for each in rivals if all(each is not other for other in leaving)]
        if leaving and self._suffices(pod, leaving, staying, is_over_quota=is_over_quota):
            self._nominated.setdefault(uid, pod)
            return Room(True, (f"preemption: waits until {_names(leaving)} ended",))
        displaced = self._displaced(pod, leaving, staying, is_over_quota=is_over_quota)
        if not displaced.pods:
            self._nominated.pop(uid, None)
            return Room(False, (f"preemption: {displaced.why_nobody}",))
        self._nominated.setdefault(uid, pod)
        for victim in displaced.pods:
            self._end(victim, pod)
        return Room(True, (f"preemption: displaces {_names(displaced.pods)}",))

    def _suffices(
        self, pod: Pod, leaving: Sequence[Pod], staying: Sequence[Pod], *, is_over_quota: bool
    ) -> bool:
        kept = self.kept_before(pod)
        if is_over_quota:
            return self._quotas.has_room_without(pod, leaving, kept)
        return fit(pod, self._node(), [*staying, *kept]).fits

    def _displaced(
        self, pod: Pod, leaving: Sequence[Pod], staying: Sequence[Pod], *, is_over_quota: bool
    ) -> _Displaced:
        kept = self.kept_before(pod)
        if self._is_critical(pod) and not is_over_quota:
            failures = fit(pod, self._node(), [*staying, *kept]).failures
            chosen = critical.preempt(pod, failures, staying)
            return _Displaced(chosen.victims, chosen.error or "other rules of the node refuse it too")
        if self._quotas.counts(pod):
            victims = self._quotas.displaced_by(pod, staying, leaving, kept)
            return _Displaced(victims, "no pod of its own group makes room")
        found = find_victims(pod, self._node(), [*staying, *kept], ())
        if isinstance(found, Candidate):
            return _Displaced(found.victims)
        return _Displaced(why_nobody=", ".join(found.reasons))

    def kept_before(self, pod: Pod) -> list[Pod]:
        """Return for whom room is kept that the pod may not take: higher priorities, and earlier equals."""
        for uid in [uid for uid in self._nominated if not self._manager.is_nominated(uid)]:
            del self._nominated[uid]
        before = []
        is_earlier = True
        for uid, other in self._nominated.items():
            if uid == pod.metadata.uid:
                is_earlier = False
            elif self._rank(other) > self._rank(pod) or (is_earlier and self._rank(other) == self._rank(pod)):
                before.append(other)
        return before

    def _rank(self, pod: Pod) -> tuple[bool, int]:
        return self._is_critical(pod), pod_priority(pod)

    def _end(self, victim: Pod, pod: Pod) -> None:
        now, grace = self._clock.now(), grace_seconds(victim)
        reason, message = REASON, f"Preempted by pod {pod.metadata.uid} on node {self._node().name}"
        if self._is_critical(pod):
            reason, message = critical.REASON, critical.MESSAGE
        self._events.pod(victim, reason, message, warning=True)
        failure = Failure(reason=reason, message=message, at=now, evicted=True, disruption=True)
        self._manager.evict(victim.metadata.uid, failure, grace)
        lacking = fit(pod, self._node(), self._manager.rivals_of(pod)).failures
        self._preempted(next((each.resource for each in lacking if isinstance(each, Comparison)), "quota"))
        why = f"{message} ({pod.metadata.namespace}/{pod.metadata.name}, priority {pod_priority(pod)})"
        self._decisions.keep_eviction(record_of_end(victim, CAUSE, why, grace, now))
        self._decisions.save()


def _names(pods: Sequence[Pod]) -> str:
    return ", ".join(
        f"{each.metadata.namespace}/{each.metadata.name} (priority {pod_priority(each)})" for each in pods
    )
