"""Read a machine from a sysfs tree: the live /sys, or a copy of another machine's."""

from pathlib import Path

from nodeagent.hardware.cpuset import CpuSet, CpuSetError
from nodeagent.hardware.machine import Cpu, HugePages, NumaNode, Topology, TopologyError

LAST_LEVEL_CACHE = "3"


def read_topology(sys_root: Path, memory_bytes: int = 0) -> Topology:
    """Read the online CPUs, the NUMA nodes and what they have. Raises TopologyError.

    What a kernel or a container runtime leaves out is taken as the simplest machine: every CPU a core
    of its own, one socket, one NUMA node (of `memory_bytes`: sysfs does not tell it), no shared cache.
    """
    cpu_root = sys_root / "devices/system/cpu"
    online = _cpu_list(cpu_root / "online")
    if not online:
        raise TopologyError(f"{cpu_root / 'online'}: no CPU is online; expected a CPU list such as 0-3")
    node_root = sys_root / "devices/system/node"
    nodes = sorted(_numbered(node_root, "node"))
    return Topology(
        cpus=_read_cpus(cpu_root, online, _numa_of_cpus(node_root, nodes)),
        numa_nodes=tuple(_read_node(node_root / f"node{node}", node) for node in nodes)
        or (NumaNode(0, memory_bytes, (), (10,)),),
        offline=_cpu_list(cpu_root / "offline") - online,
        isolated=_cpu_list(cpu_root / "isolated"),
        core_types=_core_types(sys_root, cpu_root, online),
    )


def _read_cpus(cpu_root: Path, online: CpuSet, numa_of: dict[int, int]) -> tuple[Cpu, ...]:
    """One reading a core and one a cache: their CPUs share the answers."""
    cpus: list[Cpu] = []
    uncore_of: dict[int, int] = {}
    seen = CpuSet()
    for first in online:
        if first in seen:
            continue
        directory = cpu_root / f"cpu{first}"
        siblings = (_siblings(directory / "topology") | CpuSet.of(first)) & online - seen
        seen |= siblings
        socket = max(0, _integer(directory / "topology/physical_package_id", 0))
        die = max(0, _integer(directory / "topology/die_id", 0))
        if first not in uncore_of:
            uncore, shared = _last_level_cache(directory / "cache")
            uncore_of.update(dict.fromkeys(shared | siblings, socket if uncore is None else uncore))
        cpus += (
            Cpu(cpu, first, socket, numa_of.get(cpu, 0), uncore_of.get(cpu, uncore_of[first]), die)
            for cpu in siblings
        )
    return tuple(sorted(cpus, key=lambda cpu: cpu.cpu))


def _siblings(topology: Path) -> CpuSet:
    return _cpu_list(topology / "core_cpus_list") or _cpu_list(topology / "thread_siblings_list")


def _last_level_cache(cache: Path) -> tuple[int | None, CpuSet]:
    for index in sorted(_numbered(cache, "index")):
        directory = cache / f"index{index}"
        if _text(directory / "level") == LAST_LEVEL_CACHE:
            shared = _cpu_list(directory / "shared_cpu_list")
            return _integer(directory / "id", min(shared, default=0)), shared
    return None, CpuSet()


def _numa_of_cpus(node_root: Path, nodes: list[int]) -> dict[int, int]:
    return {cpu: node for node in nodes for cpu in _cpu_list(node_root / f"node{node}/cpulist")}


def _read_node(directory: Path, node: int) -> NumaNode:
    pages = tuple(
        HugePages(size, _integer(directory / f"hugepages/hugepages-{size}kB/nr_hugepages", 0))
        for size in sorted(_numbered(directory / "hugepages", "hugepages-", "kB"))
    )
    distances = _text(directory / "distance").split()
    if not all(distance.isdigit() for distance in distances):
        raise TopologyError(f"{directory / 'distance'}: {' '.join(distances)!r} is not a list of numbers")
    return NumaNode(node, _node_memory_bytes(directory / "meminfo"), pages, tuple(map(int, distances)))


def _node_memory_bytes(meminfo: Path) -> int:
    for line in _text(meminfo).splitlines():
        words = line.split()  # Node 0 MemTotal:  1004680 kB
        if len(words) == 5 and words[2] == "MemTotal:" and words[3].isdigit():
            return int(words[3]) * 1024
    return 0


def _core_types(sys_root: Path, cpu_root: Path, online: CpuSet) -> tuple[tuple[str, CpuSet], ...]:
    """x86 names the kinds of core as PMUs (cpu_core, cpu_atom); Arm gives each CPU a capacity."""
    named = {
        name: _cpu_list(sys_root / f"devices/cpu_{name}/cpus") & online
        for name in ("core", "atom", "lowpower")
    }
    if not any(named.values()):
        for cpu in online:
            capacity = _text(cpu_root / f"cpu{cpu}/cpu_capacity")
            if not capacity:
                break
            named[f"capacity-{capacity}"] = named.get(f"capacity-{capacity}", CpuSet()) | CpuSet.of(cpu)
    kinds = tuple((name, cpus) for name, cpus in sorted(named.items()) if cpus)
    return kinds if len(kinds) > 1 else ()


def _numbered(directory: Path, prefix: str, suffix: str = "") -> list[int]:
    """Return the numbers in the names `<prefix>N<suffix>` of a directory's entries."""
    if not directory.is_dir():
        return []
    names = (entry.name for entry in directory.iterdir() if entry.name.startswith(prefix))
    numbers = (name.removeprefix(prefix).removesuffix(suffix) for name in names)
    return [int(number) for number in numbers if number.isdigit()]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _integer(path: Path, missing: int) -> int:
    text = _text(path)
    if not text:
        return missing
    if not text.removeprefix("-").isdigit():
        raise TopologyError(f"{path}: {text!r} is not a number")
    return int(text)


def _cpu_list(path: Path) -> CpuSet:
    text = _text(path)
    try:
        return CpuSet.parse(text)
    except CpuSetError as error:
        raise TopologyError(f"{path}: {text!r} is not a CPU list such as 0-3,8: {error}") from None
