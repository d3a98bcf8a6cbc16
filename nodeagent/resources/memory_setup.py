"""From the configuration to the memory manager's books of an unused machine."""

from collections.abc import Mapping, Sequence

from nodeagent.api.quantity import BINARY_SI, ZERO, Quantity, ResourceList
from nodeagent.api.resources import HUGEPAGES_PREFIX
from nodeagent.hardware.topology import HugePages, NumaNode
from nodeagent.resources.errors import OptionError
from nodeagent.resources.memory_policy import StaticMemoryPolicy
from nodeagent.resources.memory_state import MEMORY, Machine, MemoryTable, NodeMemory
from nodeagent.resources.topology_options import Policy

ReservedMemory = Sequence[tuple[int, ResourceList]]
"""NUMA node and its reserved amounts, as in the configuration's reservedMemory."""

MOST_NODES = 16
"""Every set of nodes is weighed, and their number doubles with each node."""


def make_memory_policy(
    policy: str,
    nodes: Sequence[NumaNode],
    *,
    reserved_memory: ReservedMemory,
    node_reservation: ResourceList,
    topology_policy: str = Policy.NONE,
) -> StaticMemoryPolicy | None:
    """Return the policy, None for `None`. Raises OptionError.

    `node_reservation` is what the node keeps from all pods: it must be spread over the NUMA nodes in full.
    """
    if policy == "None":
        return None
    if policy == "BestEffort":
        raise OptionError('policy "BestEffort" is not available for platform "linux"')
    if policy != "Static":
        raise OptionError(f'unknown policy: "{policy}"')
    if len(nodes) > MOST_NODES:
        raise OptionError(
            f"the Static memory manager is unsupported on machines with more than {MOST_NODES} NUMA nodes"
        )
    reserved = _reserved_bytes(nodes, reserved_memory)
    _check_total(reserved_memory, node_reservation)
    if not any(amounts.get(MEMORY) for amounts in reserved.values()):
        raise OptionError("[memorymanager] you should specify the system reserved memory")
    return StaticMemoryPolicy(
        unused_machine(nodes, reserved), single_node=topology_policy == Policy.SINGLE_NUMA_NODE
    )


def unused_machine(nodes: Sequence[NumaNode], reserved: Mapping[int, Mapping[str, int]]) -> Machine:
    """Return the books before any container: memory for all is what huge pages and the system leave."""
    machine = {}
    for node in nodes:
        of_system = reserved.get(node.node, {})
        totals = {
            huge_pages_name(pages): pages.pages * pages.page_size_kib * 1024 for pages in node.huge_pages
        }
        huge_bytes = sum(totals.values())
        totals[MEMORY] = node.memory_bytes
        tables = {}
        for kind, total in sorted(totals.items()):
            kept = of_system.get(kind, 0)
            allocatable = total - kept - (huge_bytes if kind == MEMORY else 0)
            if allocatable < 0:
                huge = f" and {huge_bytes} bytes of huge pages" if kind == MEMORY and huge_bytes else ""
                raise OptionError(
                    f"NUMA node {node.node} has {total} bytes of {kind}, which is less than the {kept} bytes "
                    f"that are reserved on it{huge}"
                )
            tables[kind] = MemoryTable(total, kept, allocatable, 0, allocatable)
        machine[node.node] = NodeMemory(0, (node.node,), tables)
    return machine


def huge_pages_name(pages: HugePages) -> str:
    """Return the resource's name, such as hugepages-2Mi."""
    return HUGEPAGES_PREFIX + Quantity.of(pages.page_size_kib * 1024, BINARY_SI).canonical()


def _reserved_bytes(nodes: Sequence[NumaNode], reserved_memory: ReservedMemory) -> dict[int, dict[str, int]]:
    known = {node.node for node in nodes}
    reserved: dict[int, dict[str, int]] = {}
    for node, amounts in reserved_memory:
        if node not in known:
            raise OptionError(
                f"the reserved memory configuration references a NUMA node {node} "
                "that does not exist on this machine"
            )
        of_node = reserved.setdefault(node, {})
        for kind, amount in amounts.items():
            of_node[kind] = of_node.get(kind, 0) + amount.value()
    return reserved


def _check_total(reserved_memory: ReservedMemory, node_reservation: ResourceList) -> None:
    totals: dict[str, Quantity] = {}
    for _, amounts in reserved_memory:
        for kind, amount in amounts.items():
            totals[kind] = totals[kind] + amount if kind in totals else amount
    for kind in sorted({*totals, *node_reservation}):
        if kind != MEMORY and not kind.startswith(HUGEPAGES_PREFIX):
            continue
        total, expected = totals.get(kind, ZERO), node_reservation.get(kind, ZERO)
        if total != expected:
            raise OptionError(
                f'the total amount "{total.canonical()}" of type "{kind}" is not equal to the value '
                f'"{expected.canonical()}" determined by Node Allocatable feature'
            )
