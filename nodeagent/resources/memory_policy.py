"""The Static policy: from which NUMA nodes a container gets its memory, as decisions on a state value."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from nodeagent.hardware.cpuset import bits
from nodeagent.resources.errors import AllocationError
from nodeagent.resources.hints import Hint, Hints, NumaMasks
from nodeagent.resources.memory_state import MEMORY, Block, Machine, MemoryState, NodeMemory, node_mask
from nodeagent.resources.requests import ContainerRequest, Kind, PodRequest

Sizes = Mapping[str, int]
"""Bytes by kind of memory."""


@dataclass(frozen=True, slots=True)
class MemoryAllocation:
    """What a container got, and the affinity it was to follow (None: none)."""

    blocks: tuple[Block, ...]
    affinity: int | None = None
    preferred: bool = False
    extended: bool = False
    """The affinity's nodes had too little, so more nodes were added."""
    kept: bool = False
    """It had them already."""


class StaticMemoryPolicy:
    """Memory of as few NUMA nodes as can be, for the containers of Guaranteed pods."""

    name = "Static"

    def __init__(self, unused: Machine) -> None:
        self.unused = unused
        self._masks = NumaMasks(unused)

    @cached_property
    def _nodes(self) -> dict[int, tuple[int, ...]]:
        return {mask: tuple(bits(mask)) for mask in self._masks.masks}

    def allocate(
        self, state: MemoryState, pod: PodRequest, container: ContainerRequest, affinity: Hint
    ) -> tuple[MemoryState, MemoryAllocation | None]:
        """Give a container its blocks; None where it has none of its own. Raises AllocationError."""
        if container.memory == ():
            return state, None
        kept = state.blocks_of(pod.uid, container.name)
        if kept is not None:
            return state, MemoryAllocation(kept, kept=True)
        if container.memory is None:
            raise AllocationError("[memorymanager] failed to represent quantity as int64")
        sizes = dict(container.memory)
        mask, extended = self._choose(state, pod, sizes, affinity)
        if self._violates_groups(state.machine, mask):
            raise AllocationError("[memorymanager] preferred hint violates NUMA node allocation")
        nodes = self._nodes[mask]
        blocks = tuple(Block(nodes, kind, size) for kind, size in sizes.items())
        for block in blocks:
            reusable = _reusable(state, pod, nodes, block.kind)
            state = state.reserve(nodes, block.kind, max(0, block.size - reusable))
        state = _without_reused(state, pod, container, blocks)
        state = state.with_blocks(pod.uid, container.name, blocks)
        return state, MemoryAllocation(blocks, affinity.mask, affinity.preferred, extended)

    def _choose(self, state: MemoryState, pod: PodRequest, sizes: Sizes, affinity: Hint) -> tuple[int, bool]:
        """Return the nodes to take, and whether the affinity's had too little and were added to."""
        hints = self._hints(state, pod, sizes).get(MEMORY, ())
        mask = affinity.mask
        if mask is None or not self._known(sizes):
            default = _best(hints)
            if default is None:
                raise AllocationError(
                    "[memorymanager] failed to get the default NUMA affinity, "
                    "no NUMA nodes with enough memory is available"
                )
            if affinity.preferred and not default.preferred:
                raise AllocationError("[memorymanager] failed to find the default preferred hint")
            # The best hint's own preference counts from here on, as it stands in for the affinity.
            affinity = default
            mask = default.mask
        assert mask is not None
        if all(
            sum(state.machine[node].free(kind) for node in bits(mask)) >= size for kind, size in sizes.items()
        ):
            return mask, False
        wider = _best(hint for hint in hints if hint.mask is not None and mask & ~hint.mask == 0)
        if wider is None or wider.mask is None:
            raise AllocationError(
                "[memorymanager] failed to find NUMA nodes to extend the current topology hint"
            )
        if affinity.preferred and not wider.preferred:
            raise AllocationError("[memorymanager] failed to find the extended preferred hint")
        return wider.mask, wider.mask != mask

    def container_hints(self, state: MemoryState, pod: PodRequest, container: ContainerRequest) -> Hints:
        if not container.memory:
            return None
        sizes = dict(container.memory)
        kept = state.blocks_of(pod.uid, container.name)
        return self._hints(state, pod, sizes) if kept is None else _hints_of_blocks(kept, sizes)

    def pod_hints(self, state: MemoryState, pod: PodRequest) -> Hints:
        sizes = pod_memory(pod)
        if not sizes:
            return None
        for container in pod.containers:
            kept = state.blocks_of(pod.uid, container.name)
            if kept is not None:
                return _hints_of_blocks(kept, sizes)
        return self._hints(state, pod, sizes)

    def _hints(self, state: MemoryState, pod: PodRequest, sizes: Sizes) -> dict[str, tuple[Hint, ...]]:
        """List the sets of nodes with enough free memory of every kind; no entries where there are none.

        Preferred are those of the smallest size that could hold the request on an unused machine.
        """
        if not self._known(sizes):
            return {}
        machine = state.machine
        allocatable = self._sums(sizes, lambda node, kind: node.allocatable(kind), machine)
        free = self._sums(sizes, lambda node, kind: node.free(kind), machine)
        least = len(machine)
        masks = []
        for mask in self._masks.masks:
            if any(allocatable[kind][mask] < size for kind, size in sizes.items()):
                continue
            least = min(least, mask.bit_count())
            if self._allowed(machine, mask) and all(
                free[kind][mask] + _reusable(state, pod, self._nodes[mask], kind) >= size
                for kind, size in sizes.items()
            ):
                masks.append(mask)
        hints = tuple(Hint(mask, mask.bit_count() == least) for mask in masks)
        return dict.fromkeys(sizes, hints) if hints else {}

    def _sums(
        self, sizes: Sizes, figure: Callable[[NodeMemory, str], int], machine: Machine
    ) -> dict[str, dict[int, int]]:
        return {
            kind: self._masks.sums({number: figure(node, kind) for number, node in machine.items()})
            for kind in sizes
        }

    def _allowed(self, machine: Machine, mask: int) -> bool:
        """A node belongs either to one group or to itself."""
        nodes = self._nodes[mask]
        if len(nodes) == 1:
            return len(machine[nodes[0]].cells) == 1
        return not self._violates_groups(machine, mask)

    def _violates_groups(self, machine: Machine, mask: int) -> bool:
        """A single node is not tested: the affinity may force one that belongs to a group."""
        nodes = self._nodes[mask]
        return len(nodes) > 1 and any(
            machine[node].assignments and machine[node].cells != nodes for node in nodes
        )

    def _known(self, sizes: Sizes) -> bool:
        """Whether the machine has every kind of memory that is asked for."""
        return all(any(kind in node.tables for node in self.unused.values()) for kind in sizes)

    def situation(self, state: MemoryState, pod: PodRequest, container: ContainerRequest | None) -> str:
        """Compare a request with what is free on each NUMA node, for a refusal's explanation."""
        sizes = pod_memory(pod) if container is None else dict(container.memory or ())
        parts = []
        for kind, size in sizes.items():
            nodes = ", ".join(
                f"node {number}: {node.free(kind)} of {node.allocatable(kind)}"
                + (f" in the group {list(node.cells)}" if len(node.cells) > 1 else "")
                for number, node in state.machine.items()
            )
            parts.append(f"{size} bytes of {kind} were asked for; free are {nodes}")
        return "; ".join(parts)


def pod_memory(pod: PodRequest) -> Sizes:
    """Return what a pod needs at most at one time, of the kinds that its app containers request.

    Nothing where an amount is no whole number of bytes.
    """
    if any(container.memory is None for container in pod.containers):
        return {}
    sidecars: Counter[str] = Counter()
    apps: Counter[str] = Counter()
    largest: dict[str, int] = {}
    kinds = []
    for container in pod.containers:
        for kind, size in container.memory or ():
            if container.kind is Kind.SIDECAR:
                sidecars[kind] += size
            elif container.kind is Kind.INIT:
                largest[kind] = max(largest.get(kind, 0), sidecars[kind] + size)
            else:
                apps[kind] += size
                kinds.append(kind)
    return {kind: max(largest.get(kind, 0), sidecars[kind] + apps[kind]) for kind in sorted(set(kinds))}


def _reusable(state: MemoryState, pod: PodRequest, nodes: tuple[int, ...], kind: str) -> int:
    """Return what the pod's init containers hold on exactly these nodes: the next container may have it."""
    return sum(
        block.size
        for container in pod.of_kind(Kind.INIT)
        for block in state.blocks_of(pod.uid, container.name) or ()
        if block.nodes == nodes and block.kind == kind
    )


def _without_reused(
    state: MemoryState, pod: PodRequest, user: ContainerRequest, blocks: tuple[Block, ...]
) -> MemoryState:
    """Shorten the blocks of earlier init containers by what `user` has of them now: each byte counts once."""
    used = {(block.nodes, block.kind): block.size for block in blocks}
    for container in pod.containers:
        if container.name == user.name:
            break
        kept = state.blocks_of(pod.uid, container.name)
        if container.kind is not Kind.INIT or not kept:
            continue
        shortened = []
        for block in kept:
            taken = min(block.size, used.get((block.nodes, block.kind), 0))
            if taken:
                used[block.nodes, block.kind] -= taken
            shortened.append(Block(block.nodes, block.kind, block.size - taken))
        state = state.with_blocks(pod.uid, container.name, tuple(shortened))
    return state


def _hints_of_blocks(blocks: tuple[Block, ...], sizes: Sizes) -> Hints:
    """A container that has its memory is to stay there; null where it has something else than it asks for."""
    if len(blocks) != len(sizes) or any(sizes.get(block.kind) != block.size for block in blocks):
        return None
    return {block.kind: (Hint(node_mask(block.nodes), True),) for block in blocks}


def _best(hints: Iterable[Hint]) -> Hint | None:
    """A preferred hint wins, then fewer nodes, then the lower ones."""
    given = [(not hint.preferred, hint.mask.bit_count(), hint.mask, hint) for hint in hints if hint.mask]
    return min(given)[-1] if given else None
