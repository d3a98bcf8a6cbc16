"""What the whole node uses: memory, process numbers, CPU time, pressure."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nodeagent.cgroup.files import CgroupTree
from nodeagent.stats.cgroup import CpuSample, read_cpu
from nodeagent.stats.kernel_files import Pressure, parse_flat_keyed, parse_pressure

KIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """The node's memory in bytes, by kubelet's measure."""

    capacity_bytes: int
    usage_bytes: int
    working_set_bytes: int
    available_bytes: int
    rss_bytes: int
    page_faults: int
    major_page_faults: int
    kernel_available_bytes: int | None
    """The kernel's own estimate (MemAvailable), which unlike kubelet's knows of slab and page tables."""
    hugepages_bytes: int
    swap_total_bytes: int
    swap_free_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessNumbers:
    """How many tasks the kernel allows, and how many there are."""

    maximum: int
    current: int


@dataclass(frozen=True, slots=True)
class NodeSample:
    """The node at one moment; a part is None where its source cannot be read."""

    time: datetime
    memory: NodeMemory | None
    processes: ProcessNumbers | None
    cpu: CpuSample | None
    memory_pressure: Pressure | None
    io_pressure: Pressure | None


def read_node(proc_root: Path, tree: CgroupTree, time: datetime) -> NodeSample:
    """Measure the node; `time` is the moment that the sample is of."""
    meminfo = _read(proc_root / "meminfo")
    stat = tree.read("", "memory.stat")
    return NodeSample(
        time=time,
        memory=None if meminfo is None or stat is None else node_memory(meminfo, stat),
        processes=process_numbers(
            _read(proc_root / "loadavg"),
            _read(proc_root / "sys/kernel/pid_max"),
            _read(proc_root / "sys/kernel/threads-max"),
        ),
        cpu=read_cpu(tree, ""),
        memory_pressure=parse_pressure(_read(proc_root / "pressure/memory")),
        io_pressure=parse_pressure(_read(proc_root / "pressure/io")),
    )


def node_memory(meminfo: str, root_stat: str) -> NodeMemory | None:
    """Work out the node's memory from /proc/meminfo and the root cgroup's memory.stat."""
    kibibytes = parse_meminfo(meminfo)
    stat = parse_flat_keyed(root_stat)
    if "MemTotal" not in kibibytes or "anon" not in stat or "file" not in stat:
        return None
    capacity = kibibytes["MemTotal"] * KIBIBYTE
    hugepages = kibibytes.get("Hugetlb", 0) * KIBIBYTE
    # The root cgroup has no memory.current; used is what memory.stat can name.
    usage = stat["anon"] + stat["file"]
    working_set = max(usage - stat.get("inactive_file", 0), 0)
    return NodeMemory(
        capacity_bytes=capacity,
        usage_bytes=usage,
        working_set_bytes=working_set,
        available_bytes=max(capacity - working_set - hugepages, 0),
        rss_bytes=stat["anon"],
        page_faults=stat.get("pgfault", 0),
        major_page_faults=stat.get("pgmajfault", 0),
        kernel_available_bytes=kibibytes["MemAvailable"] * KIBIBYTE if "MemAvailable" in kibibytes else None,
        hugepages_bytes=hugepages,
        swap_total_bytes=kibibytes.get("SwapTotal", 0) * KIBIBYTE,
        swap_free_bytes=kibibytes.get("SwapFree", 0) * KIBIBYTE,
    )


def parse_meminfo(text: str) -> dict[str, int]:
    """Read /proc/meminfo: names to KiB."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        number = value.split(maxsplit=1)[:1]
        if number and number[0].isdecimal():
            found[name] = int(number[0])
    return found


def process_numbers(
    loadavg: str | None, pid_max: str | None, threads_max: str | None
) -> ProcessNumbers | None:
    """Work out the tasks there are and may be; None if either is unknown.

    The count is the denominator of loadavg's fourth field, as sysinfo(2) cuts it off at 16 bits.
    """
    limits = [int(text) for text in (pid_max, threads_max) if text is not None and text.strip().isdecimal()]
    fields = (loadavg or "").split()
    count = fields[3].rpartition("/")[2] if len(fields) > 3 else ""
    if not limits or not count.isdecimal():
        return None
    return ProcessNumbers(min(limits), int(count))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
