"""The loops that keep the cgroup tree as it should be: what others write is taken back, and said."""

import asyncio

from nodeagent.cgroup.errors import CgroupError
from nodeagent.clock import Clock
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.partitions import ExclusivePartitions
from nodeagent.pods.recovery import refresh_state_files
from nodeagent.resources.managers import ResourceManagers

UPPER_SETTLE_SECONDS = 0.2


class TreeKeeper:
    """Looks at the limits every `period_seconds` or when woken, at every value every `sync_seconds`."""

    def __init__(
        self,
        cgroups: PodCgroups,
        partitions: ExclusivePartitions,
        managers: ResourceManagers,
        events: EventRecorder,
        clock: Clock,
        *,
        period_seconds: float,
        sync_seconds: float,
    ) -> None:
        self._cgroups = cgroups
        self._partitions = partitions
        self._managers = managers
        self._events = events
        self._clock = clock
        self._period_seconds = period_seconds
        self._sync_seconds = sync_seconds
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look again soon: who may use which CPUs has changed."""
        self._wake.set()

    def container_changed(self) -> None:
        """A container began or ended, and partitions follow the containers."""
        if self._partitions.is_wanted:
            self._wake.set()

    async def run(self) -> None:
        """Go on until cancelled."""
        looked = float("-inf")
        while True:
            refresh_state_files(self._managers, self._events)
            thorough = self._clock.monotonic() - looked >= self._sync_seconds
            looked = self._clock.monotonic() if thorough else looked
            self._wake.clear()
            await self._look(thorough=thorough)
            try:
                async with asyncio.timeout(self._period_seconds):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def follow_pods(self) -> None:
        """Keep the levels above the pods in step with them, once for all pods that come or go together."""
        while True:
            await self._cgroups.upper_is_stale.wait()
            await self._clock.sleep(UPPER_SETTLE_SECONDS)
            try:
                await self._cgroups.ensure_upper()
            except (CgroupError, OSError) as error:
                self._events.node("CgroupFailed", str(error), warning=True)

    async def _look(self, *, thorough: bool) -> None:
        try:
            for drift in await self._cgroups.reconcile(thorough=thorough):
                self._events.node("CgroupRepaired", str(drift), warning=True)
            for problem in self._partitions.enforce():
                self._events.node("CPUPartitionFailed", problem, warning=True)
        except (CgroupError, OSError) as error:
            self._events.node("CgroupFailed", str(error), warning=True)
