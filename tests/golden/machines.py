"""Build what the CPU golden files describe."""

from typing import Any

from nodeagent.hardware.topology import Cpu, NumaNode, Topology


def topology(document: dict[str, Any], name: str) -> Topology:
    """The machine of that name. `numa_distances` is there in the files that use the topology manager."""
    described = document["topologies"][name]
    cpus = tuple(Cpu(*row) for row in described["cpus"])
    distances = document.get("numa_distances", {}).get(name) or {cpu.numa: () for cpu in cpus}
    nodes = tuple(
        NumaNode(int(node), distances=tuple(distances[node])) for node in sorted(distances, key=int)
    )
    return Topology(cpus, nodes)
