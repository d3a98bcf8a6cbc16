"""Takes back what groups were only lent: their least important pods end, and may come again later."""

from nodeagent.admission.elastic_quota import amounts
from nodeagent.admission.elastic_quota.group import CountedPod
from nodeagent.clock import Clock
from nodeagent.eviction.record import record_of_end
from nodeagent.pods.decisions import DecisionLog
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.manager import PodManager
from nodeagent.pods.record import Failure, grace_seconds
from nodeagent.pods.team_quotas import TeamQuotas

REASON = "Evicted"
CAUSE = "ElasticQuota"


class Revoker:
    """Looks every `interval_seconds`; without quotas that are monitored there is nothing to run."""

    def __init__(
        self,
        quotas: TeamQuotas,
        manager: PodManager,
        events: EventRecorder,
        decisions: DecisionLog,
        clock: Clock,
        interval_seconds: float,
    ) -> None:
        self._quotas = quotas
        self._manager = manager
        self._events = events
        self._decisions = decisions
        self._clock = clock
        self._interval_seconds = interval_seconds

    async def run(self) -> None:
        """Go on until cancelled."""
        while self._quotas.settings.revokes:
            self.look()
            await self._clock.sleep(self._interval_seconds)

    def look(self) -> None:
        """Look once, and begin to end the pods that must go."""
        for group, pods in self._quotas.to_revoke().items():
            for pod in pods:
                self._evict(group, pod)

    def _evict(self, group: str, counted: CountedPod) -> None:
        pod, now = counted.pod, self._clock.now()
        message = (
            f"The group {group} uses more than it may since others ask for what it was lent; "
            f"{amounts.text(counted.counted)} of it is taken back"
        )
        seconds = grace_seconds(pod)
        failure = Failure(reason=REASON, message=message, at=now, evicted=True, disruption=True)
        self._manager.evict(pod.metadata.uid, failure, seconds)
        self._events.pod(pod, REASON, message, warning=True)
        self._decisions.keep_eviction(record_of_end(pod, CAUSE, message, seconds, now))
        self._decisions.save()
