"""The sample that is taken near a threshold: root figures only, on descriptors that stay open."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodeagent.cgroup.files import CgroupTree
from nodeagent.stats.filesystem import FilesystemSample, read_filesystem
from nodeagent.stats.kept_file import KeptFile, parse_number, value_of
from nodeagent.stats.node import KIBIBYTE, ProcessNumbers

CALM_SHARE = 0.02
"""Memory is calm while it has moved by less than this share of what was available."""
_READ = os.O_RDONLY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class HotMemory:
    """Memory left below a bound, in bytes."""

    capacity_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class HotSample:
    """What eviction watches, at one moment; None is unknown, never zero."""

    node_memory: HotMemory | None
    """Kubelet's measure: capacity less the working set and huge pages."""
    kernel_available_bytes: int | None
    """The kernel's estimate, which also counts its own memory."""
    pods_memory: HotMemory | None
    """The same measure for all pods together, below the limit of their cgroup."""
    processes: ProcessNumbers | None
    filesystems: tuple[FilesystemSample | None, ...]
    """In the order in which the paths were given."""
    pods_processes: ProcessNumbers | None = None
    """Tasks of all pods together, and the limit of their cgroup."""
    memory_stalled_percent: float | None = None
    """How much of the last ten seconds all tasks of the node waited for memory (PSI, full)."""
    io_stalled_percent: float | None = None
    pods_cache_bytes: int | None = None
    """Pages of files in use by pods: their working set holds them, and the kernel can take them back."""


class HotReader:
    """Takes hot samples; opens each file once and reads it from its beginning ever after."""

    def __init__(
        self, proc_root: Path, tree: CgroupTree, pods_cgroup: str, filesystems: Sequence[Path] = ()
    ) -> None:
        """Watch the node, the cgroup of all pods, and the filesystems that hold the given paths."""

        def proc(name: str) -> KeptFile:
            return KeptFile(lambda: os.open(proc_root / name, _READ))

        def cgroup(path: str, name: str) -> KeptFile:
            return KeptFile(lambda: tree.open(path, name))

        self._meminfo = proc("meminfo")
        self._loadavg = proc("loadavg")
        self._task_limits = (proc("sys/kernel/pid_max"), proc("sys/kernel/threads-max"))
        self._root_stat = cgroup("", "memory.stat")
        self._pods_usage = cgroup(pods_cgroup, "memory.current")
        self._pods_limit = cgroup(pods_cgroup, "memory.max")
        self._pods_stat = cgroup(pods_cgroup, "memory.stat")
        self._pods_tasks = cgroup(pods_cgroup, "pids.current")
        self._pods_tasks_limit = cgroup(pods_cgroup, "pids.max")
        self._memory_pressure = proc("pressure/memory")
        self._io_pressure = proc("pressure/io")
        self._filesystems = tuple(map(str, filesystems))
        self._last: HotSample | None = None
        self._last_pods_usage: int | None = None

    def sample(self) -> HotSample:
        """Read everything once."""
        meminfo = self._meminfo.read()
        self._last_pods_usage = parse_number(self._pods_usage.read())
        pods_stat = self._pods_stat.read()
        self._last = HotSample(
            node_memory=self._node_memory(meminfo),
            kernel_available_bytes=_kernel_available(meminfo),
            pods_memory=self._pods_memory(self._last_pods_usage, pods_stat),
            processes=self._processes(),
            filesystems=tuple(read_filesystem(path) for path in self._filesystems),
            pods_processes=self._pods_processes(),
            memory_stalled_percent=_stalled(self._memory_pressure.read()),
            io_stalled_percent=_stalled(self._io_pressure.read()),
            pods_cache_bytes=value_of(pods_stat, b"\nactive_file "),
        )
        return self._last

    def is_calm(self) -> bool:
        """Tell whether memory has hardly moved since the last sample; this takes two reads."""
        before = self._last.kernel_available_bytes if self._last is not None else None
        available = _kernel_available(self._meminfo.read())
        if before is None or available is None:
            return False
        grown = (parse_number(self._pods_usage.read()) or 0) - (self._last_pods_usage or 0)
        return max(before - available, grown) <= CALM_SHARE * before

    def close(self) -> None:
        """Give all descriptors back."""
        for file in (
            self._meminfo,
            self._loadavg,
            *self._task_limits,
            self._root_stat,
            self._pods_usage,
            self._pods_limit,
            self._pods_stat,
            self._pods_tasks,
            self._pods_tasks_limit,
            self._memory_pressure,
            self._io_pressure,
        ):
            file.close()

    def _node_memory(self, meminfo: bytes) -> HotMemory | None:
        stat = self._root_stat.read()
        total = value_of(meminfo, b"\nMemTotal:")
        anon, file = value_of(stat, b"\nanon "), value_of(stat, b"\nfile ")
        if total is None or anon is None or file is None:
            return None
        working_set = max(anon + file - (value_of(stat, b"\ninactive_file ") or 0), 0)
        capacity = total * KIBIBYTE
        hugepages = (value_of(meminfo, b"\nHugetlb:") or 0) * KIBIBYTE
        return HotMemory(capacity, max(capacity - working_set - hugepages, 0))

    def _pods_memory(self, usage: int | None, stat: bytes) -> HotMemory | None:
        limit = parse_number(self._pods_limit.read())
        inactive = value_of(stat, b"\ninactive_file ")
        if limit is None or usage is None or inactive is None:
            return None
        return HotMemory(limit, max(limit - max(usage - inactive, 0), 0))

    def _pods_processes(self) -> ProcessNumbers | None:
        limit = parse_number(self._pods_tasks_limit.read())
        count = parse_number(self._pods_tasks.read())
        return None if limit is None or count is None else ProcessNumbers(limit, count)

    def _processes(self) -> ProcessNumbers | None:
        limits = [number for file in self._task_limits if (number := parse_number(file.read())) is not None]
        fields = self._loadavg.read().split()
        count = parse_number(fields[3].rpartition(b"/")[2]) if len(fields) > 3 else None
        return None if not limits or count is None else ProcessNumbers(min(limits), count)


def _stalled(pressure: bytes) -> float | None:
    """Return the ten seconds' average of the line "full avg10=1.23 avg60=..."."""
    _, found, rest = pressure.partition(b"full avg10=")
    return float(rest.partition(b" ")[0]) if found else None


def _kernel_available(meminfo: bytes) -> int | None:
    available = value_of(meminfo, b"\nMemAvailable:")
    return None if available is None else available * KIBIBYTE
