"""What is done every few seconds, and how others know that the agent still turns."""

from pathlib import Path

from nodeagent.clock import Clock
from nodeagent.eviction.local_storage import has_storage_limits
from nodeagent.local_api import LocalApi
from nodeagent.own_node import OwnNode
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.decisions import DecisionLog
from nodeagent.pods.escapes import report_escapes
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.manager import PodManager
from nodeagent.pods.team_quotas import TeamQuotas
from nodeagent.pods.usage import UsageReader

PERIOD_SECONDS = 10.0
# An event loop that stood still longer than this is not well, to /healthz and to the watchdog.
STALL_SECONDS = 45.0


class Housekeeping:
    """Tells the API how the node stands, writes what the disk refused, looks at what nobody reports."""

    def __init__(
        self,
        node: OwnNode,
        api: LocalApi,
        manager: PodManager,
        records: ContainerRecords,
        usage: UsageReader,
        team_quotas: TeamQuotas,
        events: EventRecorder,
        decisions: DecisionLog,
        clock: Clock,
        *,
        proc_root: Path,
        sync_seconds: float,
    ) -> None:
        self._node = node
        self._api = api
        self._manager = manager
        self._records = records
        self._usage = usage
        self._team_quotas = team_quotas
        self._events = events
        self._decisions = decisions
        self._clock = clock
        self._proc_root = proc_root
        self._sync_seconds = sync_seconds
        self._turned = clock.monotonic()

    async def run(self) -> None:
        """Go on until cancelled."""
        synced = self._clock.monotonic()
        while True:
            self._turned = self._clock.monotonic()
            self._node.refresh()
            self._api.tell_node(self._node.object)
            if self._team_quotas.groups:
                self._api.tell_groups(self._team_quotas.current())
            self._decisions.save()
            self._events.forget_old()
            pods = self._manager.active_pods()
            is_due = self._turned - synced >= self._sync_seconds
            if is_due or any(map(has_storage_limits, pods)):
                await self._usage.measure_logs(pods)
            if is_due:
                self._manager.wake_all()
                await report_escapes(self._proc_root, self._records.everything(), pods, self._events)
                synced = self._turned
            await self._clock.sleep(PERIOD_SECONDS)

    def is_turning(self) -> bool:
        """Say whether the event loop went round of late."""
        return self._clock.monotonic() - self._turned < STALL_SECONDS

    def health(self) -> str | None:
        """Return what is wrong with the event loop, or None."""
        return None if self.is_turning() else f"the loop has stood still for more than {STALL_SECONDS:g} s"
