"""A node made of arithmetic, in virtual time: pods grow, and killed ones give back what they held."""

import asyncio
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from nodeagent.api.decode import decode_hook
from nodeagent.api.pod import Pod
from nodeagent.cgroup.errors import StuckCgroup
from nodeagent.eviction.loop import EvictionLoop
from nodeagent.eviction.manager import Eviction, Policy, Reclaim
from nodeagent.eviction.pace import Limits, Pace
from nodeagent.eviction.record import EvictionRecord
from nodeagent.eviction.signals import Condition, Filesystem, Resource
from nodeagent.eviction.thresholds import parse_thresholds
from nodeagent.stats.filesystem import FilesystemSample
from nodeagent.stats.hot import HotMemory, HotSample
from nodeagent.stats.node import ProcessNumbers
from nodeagent.stats.summary import (
    ContainerStats,
    FsStats,
    MemoryStats,
    NodeStats,
    PodReference,
    PodStats,
    ProcessStats,
    Summary,
)

MIB = 1 << 20
START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Time that passes only when everybody sleeps."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = 0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.time)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number += 1
        heapq.heappush(self._sleepers, (self.time + seconds, self._number, future))
        await future

    async def run_until(self, end: float) -> None:
        """Let everything run up to a moment."""
        while True:
            for _ in range(12):
                await asyncio.sleep(0)
            while self._sleepers and self._sleepers[0][2].done():
                heapq.heappop(self._sleepers)
            if not self._sleepers or self._sleepers[0][0] > end:
                self.time = max(self.time, end)
                return
            moment, _, future = heapq.heappop(self._sleepers)
            self.time = max(self.time, moment)
            future.set_result(None)


@dataclass
class Workload:
    """A pod and what it does: it starts with some memory and grows at a rate from a moment on."""

    pod: Pod
    start_bytes: int = 0
    bytes_per_second: float = 0.0
    grows_from: float = 0.0
    processes: int = 1
    processes_per_second: float = 0.0
    disk_bytes: int = 0
    stopped_at: float | None = None
    freed_from: float | None = None
    freed_until: float | None = None

    def _grown(self, now: float, rate: float) -> float:
        until = now if self.stopped_at is None else min(now, self.stopped_at)
        return max(until - self.grows_from, 0.0) * rate

    def share_left(self, now: float) -> float:
        if self.freed_from is None or self.freed_until is None or now <= self.freed_from:
            return 1.0
        if now >= self.freed_until:
            return 0.0
        return (self.freed_until - now) / (self.freed_until - self.freed_from)

    def memory(self, now: float) -> int:
        return int((self.start_bytes + self._grown(now, self.bytes_per_second)) * self.share_left(now))

    def tasks(self, now: float) -> int:
        return int((self.processes + self._grown(now, self.processes_per_second)) * self.share_left(now))


@dataclass
class SimulatedNode:
    """Answers the loop's questions and does what it says; remembers the least that was ever left."""

    clock: VirtualClock
    workloads: list[Workload]
    capacity_bytes: int = 2048 * MIB
    base_bytes: int = 100 * MIB
    max_pids: int = 32768
    disk_capacity_bytes: int = 100_000 * MIB
    garbage_bytes: int = 0
    cache_bytes: int = 0
    stuck: frozenset[str] = frozenset()
    decision_seconds: float = 0.003
    kill_seconds: float = 0.002
    free_seconds: float = 0.01
    is_memory_known: bool = True
    evictions: list[Eviction] = field(default_factory=list)
    records: list[EvictionRecord] = field(default_factory=list)
    conditions: list[frozenset[Condition]] = field(default_factory=list)
    announced: list[Resource] = field(default_factory=list)
    reclaimed: list[Reclaim] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    """What was asked for that acts or writes, in order."""
    lowest_available_bytes: int = 1 << 62
    samples: list[float] = field(default_factory=list)
    last_available_bytes: int = 0
    glances: int = 0
    measured_pods: int = 0

    def available_bytes(self) -> int:
        used = sum(load.memory(self.clock.time) for load in self.workloads)
        left = self.capacity_bytes - self.base_bytes - self.cache_bytes - used
        self.lowest_available_bytes = min(self.lowest_available_bytes, left)
        return left

    def sample(self) -> HotSample:
        self.samples.append(self.clock.time)
        available = self.last_available_bytes = max(self.available_bytes(), 0)
        tasks = 100 + sum(load.tasks(self.clock.time) for load in self.workloads)
        used = self.garbage_bytes + sum(
            load.disk_bytes for load in self.workloads if load.share_left(self.clock.time)
        )
        return HotSample(
            node_memory=HotMemory(self.capacity_bytes, available) if self.is_memory_known else None,
            kernel_available_bytes=None,
            pods_memory=None,
            pods_cache_bytes=self.cache_bytes,
            processes=ProcessNumbers(self.max_pids, tasks),
            filesystems=(
                FilesystemSample(
                    capacity_bytes=self.disk_capacity_bytes,
                    available_bytes=self.disk_capacity_bytes - used,
                    used_bytes=used,
                    inodes=10**6,
                    inodes_free=9 * 10**5,
                ),
            ),
        )

    def is_calm(self) -> bool:
        self.glances += 1
        return abs(self.available_bytes() - self.last_available_bytes) <= 0.02 * self.last_available_bytes

    def summary(self, pods: Sequence[Pod]) -> Summary:
        self.measured_pods += len(pods)
        uids = {pod.metadata.uid for pod in pods}
        return Summary(
            node=NodeStats(node_name="node"),
            pods=tuple(self._stats(load) for load in self.workloads if load.pod.metadata.uid in uids),
        )

    def pod_usage(self, pods: Sequence[Pod]) -> Sequence[PodStats]:
        self.clock.time += self.decision_seconds
        return self.summary(pods).pods

    def active_pods(self) -> list[Pod]:
        return [load.pod for load in self.workloads if load.share_left(self.clock.time) > 0]

    def kill(self, pod: Pod) -> None:
        self.done.append(f"kill {pod.metadata.name}")

    async def evict(self, eviction: Eviction) -> None:
        self.evictions.append(eviction)
        if eviction.pod.metadata.name in self.stuck:
            raise StuckCgroup("kubepods.slice", (1,))
        load = self._load(eviction.pod)
        if not eviction.immediate:
            await self.clock.sleep(eviction.grace_seconds)
            if load.stopped_at is not None:
                return
        await self.clock.sleep(self.kill_seconds)
        self.available_bytes()
        load.stopped_at = load.freed_from = self.clock.time
        load.freed_until = self.clock.time + self.free_seconds
        await self.clock.sleep(self.free_seconds)

    async def reclaim(self, what: Reclaim) -> None:
        await self.clock.sleep(0.5)
        self.reclaimed.append(what)
        if what is Reclaim.PAGE_CACHE:
            self.cache_bytes = 0
        else:
            self.garbage_bytes = 0

    def conditions_changed(self, conditions: frozenset[Condition]) -> None:
        self.conditions.append(conditions)

    def attempting_to_reclaim(self, resource: Resource) -> None:
        self.announced.append(resource)
        self.done.append(f"announce {resource}")

    def recorded(self, record: EvictionRecord) -> None:
        self.records.append(record)
        self.done.append(f"record {record.name}")

    def evicted_names(self) -> list[str]:
        return [eviction.pod.metadata.name for eviction in self.evictions]

    def _load(self, pod: Pod) -> Workload:
        return next(load for load in self.workloads if load.pod is pod)

    def _stats(self, load: Workload) -> PodStats:
        meta, memory = load.pod.metadata, load.memory(self.clock.time)
        used = MemoryStats(time=self.clock.now(), working_set_bytes=memory)
        disk = FsStats(used_bytes=load.disk_bytes)
        return PodStats(
            pod_ref=PodReference(name=meta.name, namespace=meta.namespace, uid=meta.uid),
            memory=used,
            process_stats=ProcessStats(process_count=load.tasks(self.clock.time)),
            containers=(ContainerStats(name="c", memory=used, rootfs=disk, logs=FsStats(used_bytes=0)),),
            ephemeral_storage=disk,
        )


def make_pod(name: str, *, memory: str = "", storage_limit: str = "", **spec: object) -> Pod:
    """Return a pod of one container that requests `memory`."""
    resources: dict[str, dict[str, str]] = {}
    if memory:
        resources["requests"] = {"memory": memory}
    if storage_limit:
        resources["limits"] = {"ephemeral-storage": storage_limit}
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c", "resources": resources}], **spec},
    }
    return msgspec.convert(document, Pod, dec_hook=decode_hook)


def make_policy(
    hard: dict[str, str] | None = None,
    soft: dict[str, str] | None = None,
    grace: dict[str, str] | None = None,
    **settings: object,
) -> Policy:
    """Return a policy with these thresholds."""
    thresholds = parse_thresholds(eviction_hard=hard, eviction_soft=soft, eviction_soft_grace_period=grace)
    return Policy(thresholds=thresholds, **settings)  # type: ignore[arg-type]


def make_loop(node: SimulatedNode, policy: Policy, bytes_per_second: float = 2e9) -> EvictionLoop:
    """Return the loop of a machine that fills memory at most this fast."""
    pace = Pace(Limits(memory_bytes_per_second=bytes_per_second, pids_per_second=20_000))
    return EvictionLoop(node, node.clock, policy, pace, (Filesystem.NODEFS,))


async def run(loop: EvictionLoop, clock: VirtualClock, seconds: float) -> None:
    """Run the loop for some virtual seconds."""
    task = asyncio.ensure_future(loop.run())
    try:
        await clock.run_until(clock.time + seconds)
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})
