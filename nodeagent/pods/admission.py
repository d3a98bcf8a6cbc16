"""May a pod come to this node now: pressure, room, and the resource managers, asked in kubelet's order."""

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from nodeagent.api.pod import Pod
from nodeagent.clock import Clock
from nodeagent.eviction.admission import refuse
from nodeagent.eviction.manager import Policy
from nodeagent.eviction.signals import Condition
from nodeagent.pods.decisions import AdmissionRecord
from nodeagent.pods.worker import Refusal
from nodeagent.resources.managers import ResourceManagers
from nodeagent.scheduling.fit import Comparison, NodeView, fit

MOST_SENTENCES = 200


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
        clock: Clock,
        decided: Callable[[AdmissionRecord], None],
    ) -> None:
        self._node = node
        self._managers = managers
        self._policy = policy
        self._conditions = conditions
        self._rivals_of = rivals_of
        self._clock = clock
        self._decided = decided

    def admit(self, pod: Pod) -> Refusal | None:
        """Return why the pod may not run here now, or None and let it have what it asks for."""
        record = self._judge(pod)
        self._decided(record)
        return None if record.admitted else Refusal(record.reason, record.message)

    def _judge(self, pod: Pod) -> AdmissionRecord:
        meta = pod.metadata
        record = AdmissionRecord(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            admitted=False,
            decided_at=self._clock.now(),
        )
        pressure = refuse(self._policy, pod, self._conditions())
        if pressure is not None:
            return replace(record, reason=pressure.reason, message=pressure.message)
        others = self._rivals_of(pod)
        fits = fit(pod, self._node(), others)
        failures = tuple(each.message for each in fits.failures if not isinstance(each, Comparison))
        record = replace(record, comparisons=fits.comparisons, failures=failures)
        if not fits.fits:
            return replace(record, reason=fits.reason, message=fits.message)
        served = self._managers.admit(pod, others)
        return replace(
            record,
            admitted=served.admitted,
            reason=served.reason,
            message=served.message,
            resources=_shortened(served.explanation),
        )

    def may_return(self) -> bool:
        """Say whether evicted pods may be tried again: the node is under no pressure."""
        return not self._conditions()

    def release(self, pod_uid: str) -> None:
        """Take back what the pod held."""
        self._managers.remove(pod_uid)


def _shortened(sentences: Sequence[str]) -> tuple[str, ...]:
    """A pod of a thousand containers must not be a thousand times remembered in full."""
    more = len(sentences) - MOST_SENTENCES
    return (*sentences[:MOST_SENTENCES], *([f"and {more} more"] if more > 0 else []))
