"""The door to a machine's description: the values, and the ways to come by one."""

import re
from pathlib import Path

from nodeagent.hardware.cpuset import HIGHEST_CPU, CpuSet
from nodeagent.hardware.lscpu import parse_lscpu
from nodeagent.hardware.machine import (
    Cpu,
    HugePages,
    NumaNode,
    Topology,
    TopologyError,
    regular_topology,
)
from nodeagent.hardware.sysfs import read_topology

__all__ = [
    "Cpu",
    "CpuSet",
    "HugePages",
    "NumaNode",
    "Topology",
    "TopologyError",
    "load_topology",
    "parse_lscpu",
    "parse_short",
    "read_topology",
    "regular_topology",
]

LARGEST_FILE_BYTES = 16 * 1024 * 1024


def parse_short(text: str, memory_bytes_per_node: int = 0) -> Topology:
    """Make the machine `2x4x2` (sockets x cores x threads) or `2x2x4x2` (NUMA nodes of a socket second)."""
    numbers = (
        [int(number) for number in text.split("x")] if re.fullmatch(r"\d{1,5}(x\d{1,5}){2,3}", text) else []
    )
    if not numbers or 0 in numbers:
        raise TopologyError(
            f"{text!r} is not a machine: expected SOCKETSxCORESxTHREADS (2x4x2) or SOCKETSxNUMAxCORESxTHREADS"
        )
    sockets, *numa_per_socket, cores, threads = numbers
    nodes = numa_per_socket[0] if numa_per_socket else 1
    if sockets * nodes * cores * threads > HIGHEST_CPU:
        raise TopologyError(f"{text!r} has more than {HIGHEST_CPU} CPUs")
    return regular_topology(
        sockets, cores, threads, numa_per_socket=nodes, memory_bytes=memory_bytes_per_node
    )


def load_topology(source: str, memory_bytes_per_node: int = 0) -> Topology:
    """Load what an operator names: `live`, a short form, a directory with a sysfs tree, an lscpu file.

    Raises TopologyError, which names `source`.
    """
    if source == "live":
        return read_topology(Path("/sys"))
    path = Path(source)
    if not path.exists():
        return parse_short(source, memory_bytes_per_node)
    if path.is_dir():
        return read_topology(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(LARGEST_FILE_BYTES)
    try:
        return parse_lscpu(text, memory_bytes_per_node)
    except TopologyError as error:
        raise TopologyError(f"{source}: {error}") from None
