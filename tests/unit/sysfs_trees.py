"""Sysfs trees for tests: written from a Topology, or unpacked from one captured on a real machine."""

from pathlib import Path

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Topology

CAPTURED = Path(__file__).parent.parent / "fixtures/machines"


def unpack(name: str, root: Path) -> Path:
    """Write the tree of a captured machine below `root`: a line of the file is a path, a tab, the content."""
    for line in (CAPTURED / f"{name}.sysfs").read_text().splitlines():
        path, _, content = line.partition("\t")
        put(root, path, content)
    return root


def write_sysfs(root: Path, topology: Topology, *, caches: bool = True) -> Path:
    """Write what a kernel shows of a machine; without `caches`, as in many virtual machines."""
    cpu_root = "devices/system/cpu"
    put(root, f"{cpu_root}/online", str(topology.online))
    put(root, f"{cpu_root}/offline", str(topology.offline))
    put(root, f"{cpu_root}/isolated", str(topology.isolated))
    for cpu in topology.cpus:
        here = f"{cpu_root}/cpu{cpu.cpu}"
        put(root, f"{here}/topology/physical_package_id", cpu.socket)
        put(root, f"{here}/topology/die_id", cpu.die)
        put(root, f"{here}/topology/core_id", cpu.core % 1000)
        put(root, f"{here}/topology/core_cpus_list", CpuSet(topology.cores[cpu.core]))
        if caches:
            for index, (level, shared) in enumerate(
                ((2, topology.cores[cpu.core]), (3, topology.uncores[cpu.uncore]))
            ):
                put(root, f"{here}/cache/index{index + 2}/level", level)
                put(root, f"{here}/cache/index{index + 2}/shared_cpu_list", CpuSet(shared))
                put(root, f"{here}/cache/index{index + 2}/id", cpu.core if level == 2 else cpu.uncore)
    for node in topology.numa_nodes:
        here = f"devices/system/node/node{node.node}"
        put(root, f"{here}/cpulist", CpuSet(topology.numas.get(node.node, 0)))
        put(root, f"{here}/distance", " ".join(map(str, node.distances)))
        kib = node.memory_bytes // 1024
        put(root, f"{here}/meminfo", f"Node {node.node} MemTotal: {kib} kB\nNode {node.node} MemFree: 1 kB")
        for pages in node.huge_pages:
            size = f"{here}/hugepages/hugepages-{pages.page_size_kib}kB"
            put(root, f"{size}/nr_hugepages", pages.pages)
    for name, cpus in topology.core_types:
        put(root, f"devices/cpu_{name}/cpus", cpus)
    return root


def put(root: Path, path: str, content: object) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{content}\n")
