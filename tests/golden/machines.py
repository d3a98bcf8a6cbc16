"""Build what the CPU golden files describe."""

from typing import Any

from nodeagent.hardware.cpuset import bits
from nodeagent.hardware.topology import Cpu, NumaNode, Topology
from nodeagent.resources.hints import Hint, Hints


def topology(document: dict[str, Any], name: str) -> Topology:
    """The machine of that name. `numa_distances` is there in the files that use the topology manager."""
    described = document["topologies"][name]
    cpus = tuple(Cpu(*row) for row in described["cpus"])
    distances = document.get("numa_distances", {}).get(name) or {cpu.numa: () for cpu in cpus}
    nodes = tuple(
        NumaNode(int(node), distances=tuple(distances[node])) for node in sorted(distances, key=int)
    )
    return Topology(cpus, nodes)


def hints(provider: dict[str, Any] | None) -> Hints:
    """A provider's hints, with masks as lists of NUMA nodes in the file."""
    if provider is None:
        return None
    return {
        resource: None
        if listed is None
        else tuple(
            Hint(None if mask is None else sum(1 << node for node in mask), preferred)
            for mask, preferred in listed
        )
        for resource, listed in provider.items()
    }


def shown_mask(mask: int | None) -> list[int] | None:
    return None if mask is None else list(bits(mask))


def shown_hints(found: Hints) -> dict[str, Any] | None:
    """Hints as the files have them."""
    if found is None:
        return None
    return {
        resource: None if listed is None else [[shown_mask(mask), preferred] for mask, preferred in listed]
        for resource, listed in found.items()
    }


def shown_affinity(affinity: Hint) -> list[Any]:
    return [shown_mask(affinity.mask), affinity.preferred]
