"""Who has which memory of which NUMA nodes: the value that the memory manager's state file holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """One kind of memory of one NUMA node, in bytes. `reserved` is what containers have."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int

    def move(self, size: int) -> "MemoryTable":
        """Give `size` bytes to containers (or take them back, where negative)."""
        return replace(self, reserved=self.reserved + size, free=self.free - size)


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """A NUMA node: how many blocks lie on it, and with which nodes it forms a group (itself: none)."""

    assignments: int
    cells: tuple[int, ...]
    tables: Mapping[str, MemoryTable]

    def free(self, kind: str) -> int:
        table = self.tables.get(kind)
        return table.free if table else 0

    def allocatable(self, kind: str) -> int:
        table = self.tables.get(kind)
        return table.allocatable if table else 0


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of one kind of memory on one NUMA node or a group of nodes."""

    nodes: tuple[int, ...]
    kind: str
    size: int


Machine = Mapping[int, NodeMemory]
Blocks = Mapping[str, Mapping[str, tuple[Block, ...]]]
"""Pod UID -> container -> blocks."""


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The NUMA nodes' books, and the blocks that they come from."""

    machine: Machine = field(default_factory=dict)
    blocks: Blocks = field(default_factory=dict)

    def blocks_of(self, pod_uid: str, container: str) -> tuple[Block, ...] | None:
        """Return a container's blocks, or None where it has none."""
        return self.blocks.get(pod_uid, {}).get(container)

    def with_blocks(self, pod_uid: str, container: str, blocks: tuple[Block, ...]) -> "MemoryState":
        """Enter blocks without touching the books."""
        of_pod = {**self.blocks.get(pod_uid, {}), container: blocks}
        return MemoryState(self.machine, {**self.blocks, pod_uid: of_pod})

    def reserve(self, nodes: tuple[int, ...], kind: str, size: int) -> "MemoryState":
        """Enter one block in the books: the nodes become a group, and give `size` in ascending order."""
        machine = dict(self.machine)
        for number in nodes:
            node = machine[number]
            given = min(size, max(0, node.free(kind)))
            size -= given
            tables = {**node.tables, kind: node.tables[kind].move(given)} if given else node.tables
            machine[number] = NodeMemory(node.assignments + 1, nodes, tables)
        return MemoryState(machine, self.blocks)

    def release(self, pod_uid: str, container: str) -> "MemoryState":
        """Take a container's blocks back; a node without blocks leaves its group."""
        blocks = self.blocks_of(pod_uid, container)
        if blocks is None:
            return self
        machine = dict(self.machine)
        for block in blocks:
            size = block.size
            for number in block.nodes:
                node = machine[number]
                table = node.tables[block.kind]
                given = min(size, table.reserved)
                size -= given
                left = node.assignments - 1
                machine[number] = NodeMemory(
                    left, node.cells if left else (number,), {**node.tables, block.kind: table.move(-given)}
                )
        others = {name: kept for name, kept in self.blocks[pod_uid].items() if name != container}
        rest = {uid: containers for uid, containers in self.blocks.items() if uid != pod_uid}
        if others:
            rest[pod_uid] = others
        return MemoryState(machine, rest)


def node_mask(nodes: Iterable[int]) -> int:
    return sum(1 << node for node in nodes)
