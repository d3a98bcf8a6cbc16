"""Samples into kubelet's summary: pure but for the CPU rates, which need the sample before."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from nodeagent.stats.cgroup import CgroupSample, CpuSample, MemorySample
from nodeagent.stats.filesystem import DirectoryUsage, FilesystemSample
from nodeagent.stats.kernel_files import Pressure, PressureLine
from nodeagent.stats.node import NodeSample
from nodeagent.stats.summary import (
    ContainerStats,
    CPUStats,
    FsStats,
    IOStats,
    MemoryStats,
    NetworkStats,
    NodeStats,
    PodReference,
    PodStats,
    ProcessStats,
    PSIData,
    PSIStats,
    PVCReference,
    RlimitStats,
    RuntimeStats,
    Summary,
    SwapStats,
    VolumeStats,
)

NANOSECONDS = 1000
SHORTEST_RATE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """What is known of one container."""

    name: str
    cgroup: CgroupSample | None
    started_at: datetime | None = None
    rootfs: DirectoryUsage | None = None
    logs: DirectoryUsage | None = None


@dataclass(frozen=True, slots=True)
class VolumeUsage:
    """What is known of one volume; `is_local` volumes count as the pod's ephemeral storage."""

    name: str
    usage: DirectoryUsage
    is_local: bool = True
    claim: PVCReference | None = None


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What is known of one pod."""

    reference: PodReference
    cgroup: CgroupSample | None
    containers: Sequence[ContainerUsage] = ()
    volumes: Sequence[VolumeUsage] = ()
    started_at: datetime | None = None
    network: NetworkStats | None = None


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What is known of the node: itself, its filesystems, and cgroups worth naming ("pods", "kubelet")."""

    name: str
    sample: NodeSample
    system_containers: Mapping[str, CgroupSample] = field(default_factory=dict)
    nodefs: FilesystemSample | None = None
    imagefs: FilesystemSample | None = None
    containerfs: FilesystemSample | None = None
    started_at: datetime | None = None
    network: NetworkStats | None = None


class CpuRates:
    """Turns growing CPU times into rates; keeps the sample before, by a name of the caller's choice."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[datetime, int, int | None]] = {}

    def nanocores(self, name: str, time: datetime, usage_microseconds: int) -> int | None:
        """Return the rate since the last time, or the last one known if that was a moment ago."""
        before = self._before.get(name)
        if before is None or usage_microseconds < before[1]:
            self._before[name] = (time, usage_microseconds, None)
            return None
        seconds = (time - before[0]).total_seconds()
        if seconds < SHORTEST_RATE_SECONDS:
            return before[2]
        rate = int((usage_microseconds - before[1]) * NANOSECONDS / seconds)
        self._before[name] = (time, usage_microseconds, rate)
        return rate

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget every other name."""
        kept = set(names)
        self._before = {name: before for name, before in self._before.items() if name in kept}


def build_summary(node: NodeUsage, pods: Sequence[PodUsage], rates: CpuRates) -> Summary:
    """Return what kubelet's /stats/summary would say."""
    builder = _Builder(node.sample.time, rates, node.nodefs)
    return Summary(node=builder.node(node), pods=tuple(builder.pod(pod) for pod in pods))


def cpu_and_memory_only(summary: Summary) -> Summary:
    """Return the short form that `?only_cpu_and_memory=true` asks for."""
    node = summary.node
    return Summary(
        node=NodeStats(
            node_name=node.node_name,
            system_containers=tuple(map(_short_container, node.system_containers)),
            start_time=node.start_time,
            cpu=node.cpu,
            memory=node.memory,
            swap=node.swap,
        ),
        pods=tuple(
            PodStats(
                pod_ref=pod.pod_ref,
                start_time=pod.start_time,
                containers=tuple(map(_short_container, pod.containers)),
                cpu=pod.cpu,
                memory=pod.memory,
                swap=pod.swap,
            )
            for pod in summary.pods
        ),
    )


def _short_container(container: ContainerStats) -> ContainerStats:
    return replace(container, rootfs=None, logs=None, io=None)


@dataclass(frozen=True, slots=True)
class _Builder:
    time: datetime
    rates: CpuRates
    nodefs: FilesystemSample | None

    def node(self, node: NodeUsage) -> NodeStats:
        sample = node.sample
        memory, processes = sample.memory, sample.processes
        return NodeStats(
            node_name=node.name,
            start_time=node.started_at,
            system_containers=tuple(
                self.container(f"system/{name}", ContainerUsage(name, cgroup))
                for name, cgroup in node.system_containers.items()
            ),
            cpu=self.cpu("node", sample.cpu),
            memory=None
            if memory is None
            else MemoryStats(
                time=self.time,
                available_bytes=memory.available_bytes,
                usage_bytes=memory.usage_bytes,
                working_set_bytes=memory.working_set_bytes,
                rss_bytes=memory.rss_bytes,
                page_faults=memory.page_faults,
                major_page_faults=memory.major_page_faults,
                psi=_psi(sample.memory_pressure),
            ),
            io=self.io(sample.io_pressure),
            network=node.network,
            fs=self.filesystem(node.nodefs),
            runtime=RuntimeStats(
                image_fs=self.filesystem(node.imagefs), container_fs=self.filesystem(node.containerfs)
            ),
            rlimit=None
            if processes is None
            else RlimitStats(time=self.time, max_pid=processes.maximum, current_processes=processes.current),
            swap=None
            if memory is None
            else SwapStats(
                time=self.time,
                swap_available_bytes=memory.swap_free_bytes,
                swap_usage_bytes=memory.swap_total_bytes - memory.swap_free_bytes,
            ),
        )

    def pod(self, pod: PodUsage) -> PodStats:
        uid, cgroup = pod.reference.uid, pod.cgroup
        return PodStats(
            pod_ref=pod.reference,
            start_time=pod.started_at,
            containers=tuple(self.container(f"{uid}/{each.name}", each) for each in pod.containers),
            cpu=self.cpu(uid, cgroup.cpu) if cgroup is not None else None,
            memory=self.memory(cgroup.memory) if cgroup is not None else None,
            io=self.io(cgroup.io_pressure) if cgroup is not None else None,
            swap=self.swap(cgroup.memory) if cgroup is not None else None,
            # The kernel counts tasks, threads included: it is those that run out.
            process_stats=ProcessStats(process_count=cgroup.tasks) if cgroup is not None else None,
            network=pod.network,
            volumes=tuple(self.volume(volume) for volume in pod.volumes),
            ephemeral_storage=self.directory(_ephemeral_storage(pod)),
        )

    def container(self, name: str, container: ContainerUsage) -> ContainerStats:
        cgroup = container.cgroup
        return ContainerStats(
            name=container.name,
            start_time=container.started_at,
            cpu=self.cpu(name, cgroup.cpu) if cgroup is not None else None,
            memory=self.memory(cgroup.memory) if cgroup is not None else None,
            io=self.io(cgroup.io_pressure) if cgroup is not None else None,
            swap=self.swap(cgroup.memory) if cgroup is not None else None,
            rootfs=self.directory(container.rootfs),
            logs=self.directory(container.logs),
        )

    def volume(self, volume: VolumeUsage) -> VolumeStats:
        return VolumeStats(
            name=volume.name,
            pvc_ref=volume.claim,
            time=self.time,
            used_bytes=volume.usage.used_bytes,
            inodes_used=volume.usage.inodes_used,
        )

    def cpu(self, name: str, cpu: CpuSample | None) -> CPUStats | None:
        if cpu is None:
            return None
        return CPUStats(
            time=self.time,
            usage_nano_cores=self.rates.nanocores(name, self.time, cpu.usage_microseconds),
            usage_core_nano_seconds=cpu.usage_microseconds * NANOSECONDS,
            psi=_psi(cpu.pressure),
        )

    def memory(self, memory: MemorySample | None) -> MemoryStats | None:
        if memory is None:
            return None
        return MemoryStats(
            time=self.time,
            available_bytes=memory.available_bytes,
            usage_bytes=memory.usage_bytes,
            working_set_bytes=memory.working_set_bytes,
            rss_bytes=memory.anon_bytes,
            page_faults=memory.page_faults,
            major_page_faults=memory.major_page_faults,
            psi=_psi(memory.pressure),
        )

    def swap(self, memory: MemorySample | None) -> SwapStats | None:
        if memory is None:
            return None
        limit = memory.swap_limit_bytes
        left = None if limit is None else max(limit - memory.swap_bytes, 0)
        return SwapStats(time=self.time, swap_available_bytes=left, swap_usage_bytes=memory.swap_bytes)

    def io(self, pressure: Pressure | None) -> IOStats | None:
        return None if pressure is None else IOStats(time=self.time, psi=_psi(pressure))

    def filesystem(self, figures: FilesystemSample | None) -> FsStats | None:
        if figures is None:
            return None
        return FsStats(
            time=self.time,
            available_bytes=figures.available_bytes,
            capacity_bytes=figures.capacity_bytes,
            used_bytes=figures.used_bytes,
            inodes_free=figures.inodes_free,
            inodes=figures.inodes,
            inodes_used=figures.inodes_used,
        )

    def directory(self, usage: DirectoryUsage | None) -> FsStats | None:
        """Return a directory's usage beside what its filesystem has left."""
        if usage is None:
            return None
        whole = self.filesystem(self.nodefs) or FsStats(time=self.time)
        return replace(whole, used_bytes=usage.used_bytes, inodes_used=usage.inodes_used)


def _ephemeral_storage(pod: PodUsage) -> DirectoryUsage | None:
    parts = [part for each in pod.containers for part in (each.rootfs, each.logs) if part is not None]
    parts += [volume.usage for volume in pod.volumes if volume.is_local]
    return sum(parts, DirectoryUsage()) if parts else None


def _psi(pressure: Pressure | None) -> PSIStats | None:
    if pressure is None:
        return None
    # CPU pressure of the whole machine has no line `full` before Linux 5.13.
    nothing = PressureLine(0.0, 0.0, 0.0, 0)
    return PSIStats(full=_psi_line(pressure.full or nothing), some=_psi_line(pressure.some))


def _psi_line(line: PressureLine) -> PSIData:
    return PSIData(
        total=line.total_microseconds,
        avg10=line.average_10,
        avg60=line.average_60,
        avg300=line.average_300,
    )
