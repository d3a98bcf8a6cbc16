"""What one cgroup uses: its CPU time, memory, tasks and waiting."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nodeagent.cgroup.files import CgroupTree
from nodeagent.stats.kernel_files import Pressure, parse_flat_keyed, parse_limit, parse_pressure


@dataclass(frozen=True, slots=True)
class CpuSample:
    """CPU time in microseconds since the cgroup was made, and what its quota held back."""

    usage_microseconds: int
    user_microseconds: int
    system_microseconds: int
    periods: int = 0
    throttled_periods: int = 0
    throttled_microseconds: int = 0
    pressure: Pressure | None = None


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Memory charged to a cgroup, in bytes; a limit of None is `max`."""

    usage_bytes: int
    anon_bytes: int
    file_bytes: int
    inactive_file_bytes: int
    active_file_bytes: int = 0
    mapped_file_bytes: int = 0
    kernel_bytes: int = 0
    swap_bytes: int = 0
    swap_limit_bytes: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    page_faults: int = 0
    major_page_faults: int = 0
    events: Mapping[str, int] | None = None
    pressure: Pressure | None = None

    @property
    def working_set_bytes(self) -> int:
        """What cannot be had back by dropping idle page cache: kubelet's measure."""
        return max(self.usage_bytes - self.inactive_file_bytes, 0)

    @property
    def available_bytes(self) -> int | None:
        """What is left below the limit; None without a limit."""
        return None if self.limit_bytes is None else max(self.limit_bytes - self.working_set_bytes, 0)


@dataclass(frozen=True, slots=True)
class CgroupSample:
    """Everything that is measured of one cgroup; a part is None where its controller is not enabled."""

    cpu: CpuSample | None
    memory: MemorySample | None
    tasks: int | None
    tasks_limit: int | None
    io_pressure: Pressure | None
    populated: bool
    dying_descendants: int


def read_cgroup(tree: CgroupTree, path: str) -> CgroupSample | None:
    """Measure one cgroup; None if it is not there."""
    events = tree.read(path, "cgroup.events")
    if events is None:
        return None
    return CgroupSample(
        cpu=read_cpu(tree, path),
        memory=read_memory(tree, path),
        tasks=parse_limit(tree.read(path, "pids.current")),
        tasks_limit=parse_limit(tree.read(path, "pids.max")),
        io_pressure=parse_pressure(tree.read(path, "io.pressure")),
        populated="populated 1" in events,
        dying_descendants=parse_flat_keyed(tree.read(path, "cgroup.stat") or "").get(
            "nr_dying_descendants", 0
        ),
    )


def read_in_haste(tree: CgroupTree, path: str) -> CgroupSample | None:
    """Measure only memory, tasks and stalls on disks: four files, for a decision that cannot wait."""
    memory = read_charged_memory(tree, path)
    if memory is None:
        return None
    return CgroupSample(
        cpu=None,
        memory=memory,
        tasks=parse_limit(tree.read(path, "pids.current")),
        tasks_limit=None,
        io_pressure=parse_pressure(tree.read(path, "io.pressure")),
        populated=True,
        dying_descendants=0,
    )


def read_cpu(tree: CgroupTree, path: str) -> CpuSample | None:
    """Read a cgroup's CPU time."""
    text = tree.read(path, "cpu.stat")
    if text is None:
        return None
    stat = parse_flat_keyed(text)
    return CpuSample(
        usage_microseconds=stat.get("usage_usec", 0),
        user_microseconds=stat.get("user_usec", 0),
        system_microseconds=stat.get("system_usec", 0),
        periods=stat.get("nr_periods", 0),
        throttled_periods=stat.get("nr_throttled", 0),
        throttled_microseconds=stat.get("throttled_usec", 0),
        pressure=parse_pressure(tree.read(path, "cpu.pressure")),
    )


def read_memory(tree: CgroupTree, path: str) -> MemorySample | None:
    """Read all of a cgroup's memory figures."""
    core = read_charged_memory(tree, path)
    if core is None:
        return None
    events = tree.read(path, "memory.events")
    return replace(
        core,
        swap_bytes=parse_limit(tree.read(path, "memory.swap.current")) or 0,
        swap_limit_bytes=parse_limit(tree.read(path, "memory.swap.max")),
        peak_bytes=parse_limit(tree.read(path, "memory.peak")),
        limit_bytes=parse_limit(tree.read(path, "memory.max")),
        events=None if events is None else parse_flat_keyed(events),
        pressure=parse_pressure(tree.read(path, "memory.pressure")),
    )


def read_charged_memory(tree: CgroupTree, path: str) -> MemorySample | None:
    """Read only what a cgroup is charged with: two files."""
    usage = parse_limit(tree.read(path, "memory.current"))
    text = tree.read(path, "memory.stat")
    if usage is None or text is None:
        return None
    stat = parse_flat_keyed(text)
    return MemorySample(
        usage_bytes=usage,
        anon_bytes=stat.get("anon", 0),
        file_bytes=stat.get("file", 0),
        inactive_file_bytes=stat.get("inactive_file", 0),
        active_file_bytes=stat.get("active_file", 0),
        mapped_file_bytes=stat.get("file_mapped", 0),
        kernel_bytes=stat.get("kernel", 0),
        page_faults=stat.get("pgfault", 0),
        major_page_faults=stat.get("pgmajfault", 0),
    )
