"""How much of everything a node has, as a value and as read from the kernel."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_KIB = 1024


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node's totals. `hugepages_bytes` maps a page size to all memory in such pages."""

    cpu_milli: int
    memory_bytes: int
    pids: int
    swap_bytes: int = 0
    hugepages_bytes: Mapping[int, int] = field(default_factory=dict)
    ephemeral_storage_bytes: int | None = None
    page_size_bytes: int = 4096


def read_node_info(proc_root: Path, sys_root: Path, storage: Path, cpus: int) -> NodeInfo:
    """Measure a machine with `cpus` online; `storage` is a path on the file system of the pods' files."""
    meminfo = _meminfo(proc_root / "meminfo")
    file_system = os.statvfs(storage)
    return NodeInfo(
        cpu_milli=1000 * cpus,
        memory_bytes=meminfo["MemTotal"],
        pids=read_pid_capacity(proc_root),
        swap_bytes=meminfo.get("SwapTotal", 0),
        hugepages_bytes=_hugepages(sys_root / "kernel/mm/hugepages"),
        ephemeral_storage_bytes=file_system.f_blocks * file_system.f_frsize,
        page_size_bytes=os.sysconf("SC_PAGE_SIZE"),
    )


def read_pid_capacity(proc_root: Path) -> int:
    """Return how many processes the node can hold: two kernel limits, and the lower one binds."""
    kernel = proc_root / "sys/kernel"
    return min(int((kernel / name).read_text()) for name in ("pid_max", "threads-max"))


def _meminfo(path: Path) -> dict[str, int]:
    """Return the rows that are in kB, in bytes."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) * _KIB for row in rows if row[2:] == ["kB"]}


def _hugepages(directory: Path) -> dict[int, int]:
    found = {}
    for path in sorted(directory.glob("hugepages-*kB")):
        size = int(path.name.removeprefix("hugepages-").removesuffix("kB")) * _KIB
        found[size] = size * int((path / "nr_hugepages").read_text())
    return found
