"""What a machine looks like to the allocators: a value, wherever it was read from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet


class TopologyError(ValueError):
    """A description of a machine cannot be understood; the message names the file or text."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """One online logical CPU. `core` is the lowest online CPU of its core; `uncore` names its L3 cache."""

    cpu: int
    core: int
    socket: int
    numa: int
    uncore: int
    die: int = 0


@dataclass(frozen=True, slots=True)
class HugePages:
    """The huge pages of one size that a NUMA node has."""

    page_size_kib: int
    pages: int


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node, with or without CPUs. `distances` follow the order of `Topology.numa_nodes`."""

    node: int
    memory_bytes: int = 0
    huge_pages: tuple[HugePages, ...] = ()
    distances: tuple[int, ...] = ()


@dataclass(frozen=True)
class Topology:
    """The online CPUs, ascending, and what they are grouped in. Groups are int bitmasks by the group's id."""

    cpus: tuple[Cpu, ...]
    numa_nodes: tuple[NumaNode, ...]
    offline: CpuSet = NO_CPUS
    isolated: CpuSet = NO_CPUS
    core_types: tuple[tuple[str, CpuSet], ...] = ()
    """On hybrid machines, the kernel's name of each kind of core and its CPUs."""

    @cached_property
    def online(self) -> CpuSet:
        return CpuSet.from_iterable(cpu.cpu for cpu in self.cpus)

    @cached_property
    def cores(self) -> dict[int, int]:
        return self._grouped(lambda cpu: cpu.core)

    @cached_property
    def sockets(self) -> dict[int, int]:
        return self._grouped(lambda cpu: cpu.socket)

    @cached_property
    def numas(self) -> dict[int, int]:
        """The NUMA nodes that have CPUs."""
        return self._grouped(lambda cpu: cpu.numa)

    @cached_property
    def uncores(self) -> dict[int, int]:
        return self._grouped(lambda cpu: cpu.uncore)

    @cached_property
    def cpus_per_core(self) -> int:
        """An average, rounded down: machines with hybrid cores or offline threads are uneven."""
        return len(self.cpus) // len(self.cores)

    @cached_property
    def cpus_per_socket(self) -> int:
        return len(self.cpus) // len(self.sockets)

    @cached_property
    def cpus_per_uncore(self) -> int:
        return len(self.cpus) // len(self.uncores)

    def with_siblings(self, cpus: CpuSet) -> CpuSet:
        """Return `cpus` with every other CPU of the same cores."""
        return CpuSet(sum(core for core in self.cores.values() if core & cpus.mask))

    def _grouped(self, group_of: Callable[[Cpu], int]) -> dict[int, int]:
        masks: dict[int, int] = {}
        for cpu in self.cpus:
            group = group_of(cpu)
            masks[group] = masks.get(group, 0) | 1 << cpu.cpu
        return dict(sorted(masks.items()))


def regular_topology(
    sockets: int,
    cores: int,
    threads: int,
    *,
    numa_per_socket: int = 1,
    uncores_per_numa: int = 1,
    adjacent_siblings: bool = False,
    memory_bytes: int = 0,
) -> Topology:
    """Make an even machine with `cores` cores a NUMA node and `memory_bytes` a NUMA node.

    As on most servers, CPUs k, k + cores, k + 2 * cores ... are the threads of core k, unless
    `adjacent_siblings` numbers the threads of a core one after the other, as virtual machines do.
    """
    nodes = sockets * numa_per_socket
    total_cores = nodes * cores
    cpus = []
    for thread in range(threads):
        for index in range(total_cores):
            node, position = divmod(index, cores)
            first = index * threads if adjacent_siblings else index
            number = first + (thread if adjacent_siblings else thread * total_cores)
            uncore = node * uncores_per_numa + position * uncores_per_numa // cores
            cpus.append(Cpu(number, first, node // numa_per_socket, node, uncore))
    return Topology(
        cpus=tuple(sorted(cpus, key=lambda cpu: cpu.cpu)),
        numa_nodes=tuple(
            NumaNode(node, memory_bytes, (), _distances(node, nodes, numa_per_socket))
            for node in range(nodes)
        ),
    )


def _distances(node: int, nodes: int, numa_per_socket: int) -> tuple[int, ...]:
    """The figures that firmware usually gives: itself 10, the same socket 12, another socket 21."""
    return tuple(
        10 if other == node else 12 if other // numa_per_socket == node // numa_per_socket else 21
        for other in range(nodes)
    )
