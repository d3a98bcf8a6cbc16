"""Pods on their way out, and what they will give back: it must not cost a second pod its life."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

from msgspec.structs import replace

from nodeagent.cgroup.errors import CgroupError
from nodeagent.clock import Clock
from nodeagent.eviction.manager import Eviction
from nodeagent.eviction.record import EvictionRecord
from nodeagent.eviction.signals import RESOURCES, Observations, Resource, Signal

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = {
    Resource.MEMORY: 5.0,
    Resource.PIDS: 5.0,
    # As kubelet waits for a pod's files to be removed.
    Resource.INODES: 30.0,
    Resource.EPHEMERAL_STORAGE: 30.0,
    Resource.IO: 30.0,
}
STUCK_SECONDS = 30.0
# When so little is left of what there was at the last choice, somebody else is at it.
PANIC_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Scarcity:
    """For which resource a pod goes, how much of it the pod uses, and what was left when it was chosen."""

    resource: Resource | None = None
    usage: int = 0
    observations: Observations = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaving:
    """A pod on its way out."""

    scarcity: Scarcity
    since: float
    immediate: bool
    task: asyncio.Task[None]

    def gives_back(self, signal: Signal, now: float) -> bool:
        """Tell whether the pod was killed for this resource, not too long ago."""
        resource = RESOURCES[signal]
        return (
            self.immediate
            and self.scarcity.resource is resource
            and signal in self.scarcity.observations
            and now - self.since < PATIENCE_SECONDS[resource]
        )


class Departures:
    """Ends pods beside the loop, and keeps count of what is still to come back."""

    def __init__(
        self,
        clock: Clock,
        evict: Callable[[Eviction], Awaitable[None]],
        recorded: Callable[[EvictionRecord], None],
        on_end: Callable[[], None],
    ) -> None:
        """`on_end` is called after each pod's end, whatever it was."""
        self._clock = clock
        self._evict_pod = evict
        self._recorded = recorded
        self._on_end = on_end
        self._leaving: dict[str, Leaving] = {}
        self._stuck_since: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, eviction: Eviction, record: EvictionRecord, scarcity: Scarcity, now: float) -> None:
        """End a pod. One that is leaving already has its time cut short: that is no second eviction."""
        uid = eviction.pod.metadata.uid
        if uid in self._leaving:
            task = self._start(self._cut_short(eviction))
        else:
            self._recorded(record)
            task = self._start(self._evict_and_record(eviction, record))
        self._leaving[uid] = Leaving(scarcity, now, eviction.immediate, task)

    def collect(self) -> None:
        """Forget those that are gone; an error that nobody foresaw is raised here."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()
        now = self._clock.monotonic()
        self._stuck_since = {uid: at for uid, at in self._stuck_since.items() if now < at + STUCK_SECONDS}
        self._leaving = {uid: pod for uid, pod in self._leaving.items() if not pod.task.done()}

    def cancel(self) -> None:
        """Stop waiting for any of them."""
        for task in self._tasks:
            task.cancel()

    @property
    def is_empty(self) -> bool:
        """Tell whether nobody is leaving."""
        return not self._leaving

    def includes(self, pod_uid: str) -> bool:
        """Tell whether a pod is leaving."""
        return pod_uid in self._leaving

    def is_killed(self, pod_uid: str) -> bool:
        """Tell whether a pod is leaving without any time of grace."""
        return pod_uid in self._leaving and self._leaving[pod_uid].immediate

    def is_stuck(self, pod_uid: str, now: float) -> bool:
        """Tell whether a pod could not be ended a moment ago: another must go in its place."""
        return now < self._stuck_since.get(pod_uid, float("-inf")) + STUCK_SECONDS

    def any_giving_back(self, now: float) -> bool:
        """Tell whether memory or PIDs will come back any moment."""
        return any(
            pod.immediate
            and pod.scarcity.resource in (Resource.MEMORY, Resource.PIDS)
            and now - pod.since < PATIENCE_SECONDS[pod.scarcity.resource]
            for pod in self._leaving.values()
        )

    def any_for(self, resource: Resource) -> bool:
        """Tell whether a pod is leaving for the sake of a resource."""
        return any(pod.scarcity.resource is resource for pod in self._leaving.values())

    def returning(self, signal: Signal, available: int, now: float) -> int:
        """Return how much of a signal's resource is still to come back from pods that were killed.

        Nothing, if there is no time to wait for it.
        """
        killed = [pod.scarcity for pod in self._leaving.values() if pod.gives_back(signal, now)]
        if not killed:
            return 0
        left_then = min(each.observations[signal].available for each in killed)
        if available < PANIC_SHARE * left_then:
            return 0
        return max(sum(each.usage for each in killed) - max(available - left_then, 0), 0)

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._on_end())
        return task

    async def _evict_and_record(self, eviction: Eviction, record: EvictionRecord) -> None:
        if await self._evict(eviction):
            self._recorded(replace(record, dead_at=self._clock.now()))

    async def _cut_short(self, eviction: Eviction) -> None:
        await self._evict(eviction)

    async def _evict(self, eviction: Eviction) -> bool:
        try:
            await self._evict_pod(eviction)
        except CgroupError as error:
            meta = eviction.pod.metadata
            self._stuck_since[meta.uid] = self._clock.monotonic()
            logger.error("pod %s/%s cannot be ended: %s", meta.namespace, meta.name, error)
            return False
        return True
