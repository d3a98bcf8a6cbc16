"""The pods' side of eviction: what the loop looks at, and how it ends a pod."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from nodeagent.api.pod import Pod
from nodeagent.cgroup.errors import StuckCgroup
from nodeagent.clock import Clock
from nodeagent.eviction.admission import REASON
from nodeagent.eviction.manager import Eviction, Reclaim
from nodeagent.eviction.record import EvictionRecord
from nodeagent.eviction.signals import Condition, Resource
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.decisions import DecisionLog
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.manager import PodManager
from nodeagent.pods.reclaim import drop_cache, remove_dead_logs
from nodeagent.pods.record import Failure
from nodeagent.pods.usage import UsageReader
from nodeagent.stats.hot import HotReader, HotSample
from nodeagent.stats.summary import PodStats, Summary

logger = logging.getLogger(__name__)

# How long a killed pod's processes may take to be gone before the loop is told that they are stuck.
DEATH_SECONDS = 30.0
DEATH_POLL_SECONDS = 0.005


class Evictor:
    """Implements `eviction.node.Node` on the pods of this node."""

    def __init__(
        self,
        manager: PodManager,
        cgroups: PodCgroups,
        events: EventRecorder,
        clock: Clock,
        hot: HotReader,
        usage: UsageReader,
        conditions_changed: Callable[[frozenset[Condition]], None],
        evicted: Callable[[EvictionRecord], None],
        dead: Callable[[EvictionRecord], None],
        decisions: DecisionLog,
        log_directory: Path,
    ) -> None:
        self._manager = manager
        self._cgroups = cgroups
        self._events = events
        self._clock = clock
        self._hot = hot
        self._usage = usage
        self._conditions_changed = conditions_changed
        self._evicted = evicted
        self._dead = dead
        self._decisions = decisions
        self._log_directory = log_directory

    def sample(self) -> HotSample:
        return self._hot.sample()

    def is_calm(self) -> bool:
        return self._hot.is_calm()

    def summary(self, pods: Sequence[Pod]) -> Summary:
        return self._usage.in_haste(pods)

    def pod_usage(self, pods: Sequence[Pod]) -> Sequence[PodStats]:
        return self._usage.pods_in_haste(pods)

    def active_pods(self) -> Sequence[Pod]:
        return self._manager.active_pods()

    def kill(self, pod: Pod) -> None:
        self._cgroups.kill(pod)

    async def evict(self, eviction: Eviction) -> None:
        """End the pod; with `immediate` its processes are killed before anything is written down."""
        pod = eviction.pod
        if eviction.immediate:
            self._cgroups.kill(pod)
        failure = Failure(
            reason=REASON,
            message=eviction.message.text,
            at=self._clock.now(),
            evicted=True,
            disruption=eviction.disruption,
        )
        grace = 0.0 if eviction.immediate else float(eviction.grace_seconds)
        self._manager.evict(pod.metadata.uid, failure, grace)
        message = eviction.message
        self._events.pod(pod, REASON, message.text, warning=True, annotations=message.annotations)
        # Only now: a slow disk must not hold up the kill.
        self._decisions.save()
        await self._wait_until_gone(pod, grace + DEATH_SECONDS)

    async def reclaim(self, what: Reclaim) -> None:
        """Free what no pod needs: the logs of dead containers, page cache. There are no images here."""
        try:
            await self._reclaim(what)
        except OSError as error:
            # Then a pod goes instead.
            logger.warning("%s cannot be reclaimed: %s", what, error)

    async def _reclaim(self, what: Reclaim) -> None:
        active = self._manager.active_pods()
        if what is Reclaim.CONTAINERS:
            running = self._usage.running_containers(active)
            now = self._clock.now().timestamp()
            await asyncio.to_thread(remove_dead_logs, self._log_directory, running, now)
            # Who is to go next is chosen by what is on the disk now.
            await self._usage.measure_logs(active)
        elif what is Reclaim.PAGE_CACHE:
            await asyncio.to_thread(drop_cache, self._cgroups.tree, self._cgroups.layout.kubepods)

    def conditions_changed(self, conditions: frozenset[Condition]) -> None:
        self._conditions_changed(conditions)

    def attempting_to_reclaim(self, resource: Resource) -> None:
        self._events.node("EvictionThresholdMet", f"Attempting to reclaim {resource}", warning=True)

    def recorded(self, record: EvictionRecord) -> None:
        (self._evicted if record.dead_at is None else self._dead)(record)
        self._decisions.keep_eviction(record)
        if record.dead_at is not None:
            self._decisions.save()

    async def _wait_until_gone(self, pod: Pod, seconds: float) -> None:
        path = self._cgroups.slice(pod)
        deadline = self._clock.monotonic() + seconds
        while self._cgroups.tree.populated(path):
            if self._clock.monotonic() > deadline:
                raise StuckCgroup(path, self._cgroups.tree.processes_below(path))
            await self._clock.sleep(DEATH_POLL_SECONDS)
