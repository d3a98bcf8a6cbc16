"""May a pod come to this node now: policy, pressure, room, and the resource managers, asked in this order."""

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from nodeagent.admission.chain import Outcome, Policies, admit
from nodeagent.admission.elastic_quota.prefilter import UNSCHEDULABLE, Verdict
from nodeagent.api.pod import Pod
from nodeagent.clock import Clock
from nodeagent.eviction.admission import refuse
from nodeagent.eviction.manager import Policy
from nodeagent.eviction.signals import Condition
from nodeagent.pods.decisions import AdmissionRecord
from nodeagent.pods.preemptor import Room
from nodeagent.pods.services import Refusal
from nodeagent.pods.unsupported import REASON as UNSUPPORTED
from nodeagent.pods.unsupported import unsupported
from nodeagent.resources.managers import ResourceManagers
from nodeagent.scheduling.fit import Comparison, NodeView, fit

MOST_SENTENCES = 200
NODE_SHUTDOWN = "Pod was rejected as the node is shutting down."


class NodeAdmission:
    """Admits pods; what it admits holds its CPUs, memory and devices until it is released.

    `decided` is given the record of every decision.
    """

    def __init__(
        self,
        node: Callable[[], NodeView],
        managers: ResourceManagers,
        policy: Policy,
        conditions: Callable[[], Collection[Condition]],
        rivals_of: Callable[[Pod], Sequence[Pod]],
        existing: Callable[[], Sequence[Pod]],
        clock: Clock,
        decided: Callable[[AdmissionRecord], None],
        judge_quota: Callable[[Pod], Verdict | None],
        make_room: Callable[[Pod, bool], Room],
    ) -> None:
        self.policies = Policies()
        """What the manifests say of LimitRanges, quotas and priorities; replaced as they change."""
        self.is_node_shutting_down = False
        """Nobody comes any more; set when it begins, and when it is called off."""
        self._node = node
        self._managers = managers
        self._policy = policy
        self._conditions = conditions
        self._rivals_of = rivals_of
        self._existing = existing
        self._clock = clock
        self._decided = decided
        self._judge_quota = judge_quota
        self._make_room = make_room

    def admit(self, pod: Pod) -> Pod | Refusal:
        """Let the pod have what it asks for and return it as policy made it, or return why it may not run."""
        outcome = admit(pod, self.policies, self._existing(), self._clock.now())
        record = self._judge(outcome)
        self._decided(record)
        if record.admitted:
            return outcome.pod
        return Refusal(record.reason, record.message, nominated=record.nominated)

    def _judge(self, outcome: Outcome) -> AdmissionRecord:
        pod = outcome.pod
        record = AdmissionRecord(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            uid=pod.metadata.uid,
            admitted=False,
            decided_at=self._clock.now(),
            policy=_shortened(tuple(outcome.record.sentences())),
        )
        if outcome.refusal is not None:
            return replace(record, reason=outcome.refusal.reason, message=outcome.refusal.message)
        if self.is_node_shutting_down:
            return replace(record, reason="NodeShutdown", message=NODE_SHUTDOWN)
        missing = unsupported(pod)
        if missing.refused:
            message = f"This node does not do yet what the pod asks for: {', '.join(missing.refused)}"
            return replace(record, reason=UNSUPPORTED, message=message)
        pressure = refuse(self._policy, pod, self._conditions())
        if pressure is not None:
            return replace(record, reason=pressure.reason, message=pressure.message)
        verdict = self._judge_quota(pod)
        if verdict is not None:
            record = replace(record, policy=(*record.policy, str(verdict)))
            if not verdict.admits:
                record = replace(record, reason=verdict.code, message=verdict.message)
                is_full = verdict.code == UNSCHEDULABLE
                return self._with_room_made(record, pod, is_over_quota=True) if is_full else record
        others = self._rivals_of(pod)
        fits = fit(pod, self._node(), others)
        failures = tuple(each.message for each in fits.failures if not isinstance(each, Comparison))
        record = replace(record, comparisons=fits.comparisons, failures=failures)
        if not fits.fits:
            record = replace(record, reason=fits.reason, message=fits.message)
            return record if failures else self._with_room_made(record, pod, is_over_quota=False)
        served = self._managers.admit(pod, others)
        return replace(
            record,
            admitted=served.admitted,
            reason=served.reason,
            message=served.message,
            resources=_shortened(served.explanation),
        )

    def _with_room_made(self, record: AdmissionRecord, pod: Pod, *, is_over_quota: bool) -> AdmissionRecord:
        room = self._make_room(pod, is_over_quota)
        message = "; ".join((record.message, *room.sentences)) if room.is_coming else record.message
        return replace(record, message=message, preemption=room.sentences, nominated=room.is_coming)

    def may_return(self) -> bool:
        """Say whether evicted pods may be tried again: the node is under no pressure, and stays up."""
        return not self._conditions() and not self.is_node_shutting_down

    def release(self, pod_uid: str) -> None:
        """Take back what the pod held."""
        self._managers.remove(pod_uid)


def _shortened(sentences: Sequence[str]) -> tuple[str, ...]:
    """A pod of a thousand containers must not be a thousand times remembered in full."""
    more = len(sentences) - MOST_SENTENCES
    return (*sentences[:MOST_SENTENCES], *([f"and {more} more"] if more > 0 else []))
