"""Machines that real ones look like, and random ones."""

from hypothesis import strategies as st

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Cpu, HugePages, NumaNode, Topology, regular_topology

GIB = 1024**3


def hybrid() -> Topology:
    """Four two-thread performance cores and eight single-thread efficient ones."""
    performance = [Cpu(cpu, cpu - cpu % 2, 0, 0, 0) for cpu in range(8)]
    efficient = [Cpu(cpu, cpu, 0, 0, 0) for cpu in range(8, 16)]
    return Topology(
        (*performance, *efficient),
        (NumaNode(0, 16 * GIB, (), (10,)),),
        core_types=(("atom", CpuSet.parse("8-15")), ("core", CpuSet.parse("0-7"))),
    )


def with_gaps() -> Topology:
    """NUMA nodes 0 and 2, CPUs from 8 on, a node 5 with memory only, a CPU offline."""
    cpus = [
        Cpu(8 + thread * 8 + core, 8 + core, core // 4, 2 * (core // 4), core // 4)
        for thread in range(2)
        for core in range(8)
    ]
    distances = ((10, 21, 31), (21, 10, 31), (31, 31, 10))
    pages = (HugePages(2048, 512), HugePages(1048576, 2))
    nodes = tuple(NumaNode(node, 8 * GIB, pages, row) for node, row in zip((0, 2, 5), distances, strict=True))
    return Topology(tuple(cpus), nodes, offline=CpuSet.parse("3"), isolated=CpuSet.parse("12"))


LARGE = {
    "256 CPUs, 2 sockets": regular_topology(2, 64, 2, memory_bytes=256 * GIB),
    "256 CPUs, an L3 cache for eight cores": regular_topology(
        2, 16, 2, numa_per_socket=4, uncores_per_numa=2, memory_bytes=64 * GIB
    ),
    "256 CPUs, 16 NUMA nodes": regular_topology(2, 8, 2, numa_per_socket=8, memory_bytes=16 * GIB),
    "1024 CPUs, 8 NUMA nodes": regular_topology(
        2, 64, 2, numa_per_socket=4, uncores_per_numa=8, memory_bytes=128 * GIB
    ),
    "512 CPUs, four threads a core": regular_topology(2, 64, 4, adjacent_siblings=True),
    "hybrid": hybrid(),
    "gaps": with_gaps(),
}


@st.composite
def machines(draw: st.DrawFn) -> Topology:
    """Any machine with up to 4 sockets, some CPUs of which may be offline."""
    whole = regular_topology(
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
        draw(st.sampled_from([1, 2, 4])),
        numa_per_socket=draw(st.integers(1, 2)),
        uncores_per_numa=draw(st.integers(1, 2)),
        adjacent_siblings=draw(st.booleans()),
        memory_bytes=4 * GIB,
    )
    offline = CpuSet.from_iterable(draw(st.sets(st.sampled_from(list(whole.online)), max_size=3)))
    if len(whole.online - offline) < 2:
        offline = CpuSet()
    return without(whole, offline)


@st.composite
def irregular_machines(draw: st.DrawFn) -> Topology:
    """Cores of one to four threads, sockets, nodes and caches of any size, numbers with gaps."""
    threads = draw(st.lists(st.sampled_from([1, 2, 2, 2, 4]), min_size=1, max_size=8))
    numbers = sorted(draw(st.sets(st.integers(0, 60), min_size=sum(threads), max_size=sum(threads))))
    if draw(st.booleans()):
        numbers = draw(st.permutations(numbers))
    several_nodes_a_socket = draw(st.booleans())
    fine = sorted(draw(st.integers(0, 4)) for _ in threads)
    caches = sorted(draw(st.integers(0, 3)) for _ in threads)
    cpus = []
    for place, count in enumerate(threads):
        own, numbers = sorted(numbers[:count]), numbers[count:]
        coarse = fine[place] // 2
        sockets, node = (coarse, fine[place]) if several_nodes_a_socket else (fine[place], coarse)
        cpus += [Cpu(number, own[0], sockets, node, caches[place]) for number in own]
    nodes = tuple(NumaNode(node, 4 * GIB) for node in sorted({cpu.numa for cpu in cpus}))
    return Topology(tuple(sorted(cpus, key=lambda cpu: cpu.cpu)), nodes)


def without(topology: Topology, offline: CpuSet) -> Topology:
    """The machine with CPUs offline; a core is then named by its lowest CPU that is left."""
    online = [cpu for cpu in topology.cpus if cpu.cpu not in offline]
    lowest: dict[int, int] = {}
    for cpu in online:
        lowest.setdefault(cpu.core, cpu.cpu)
    cpus = tuple(Cpu(cpu.cpu, lowest[cpu.core], cpu.socket, cpu.numa, cpu.uncore, cpu.die) for cpu in online)
    return Topology(cpus, topology.numa_nodes, offline=offline)
