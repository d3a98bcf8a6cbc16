"""The Static policy: from which NUMA nodes a container gets its memory, as decisions on a state value."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from nodeagent.hardware.cpuset import bits
from nodeagent.resources.errors import AllocationError
from nodeagent.resources.hints import Hint, Hints, NumaMasks
from nodeagent.resources.memory_state import MEMORY, Block, Machine, MemoryState, node_mask
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

    def __init__(self, unused: Machine, *, single_node: bool = False) -> None:
        """`single_node`: the topology manager takes one NUMA node only."""
        self.unused = unused
        self._masks = NumaMasks(unused)
        self._offered = NumaMasks(unused, single=single_node)

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
        if _Groups(state.machine).violated_by(mask):
            raise AllocationError("[memorymanager] preferred hint violates NUMA node allocation")
        nodes = tuple(bits(mask))
        blocks = tuple(Block(nodes, kind, size) for kind, size in sizes.items())
        reusable = _reusable(state, pod)
        for block in blocks:
            needed = max(0, block.size - reusable.get((mask, block.kind), 0))
            state = state.reserve(nodes, block.kind, needed)
        state = _without_reused(state, pod, container, blocks)
        state = state.with_blocks(pod.uid, container.name, blocks)
        return state, MemoryAllocation(blocks, affinity.mask, affinity.preferred, extended)

    def _choose(self, state: MemoryState, pod: PodRequest, sizes: Sizes, affinity: Hint) -> tuple[int, bool]:
        """Return the nodes to take, and whether the affinity's had too little and were added to."""
        mask, preferred = affinity
        if mask is None or not self._known(sizes):
            default = self._best(state, pod, sizes)
            if default is None:
                raise AllocationError(
                    "[memorymanager] failed to get the default NUMA affinity, "
                    "no NUMA nodes with enough memory is available"
                )
            if preferred and not default.preferred:
                raise AllocationError("[memorymanager] failed to find the default preferred hint")
            # From here on it stands in for the affinity, with its own preference.
            mask, preferred = default.mask or 0, default.preferred
        if self._holds(state.machine, mask, sizes):
            return mask, False
        wider = self._best(state, pod, sizes, within=mask)
        if wider is None:
            raise AllocationError(
                "[memorymanager] failed to find NUMA nodes to extend the current topology hint"
            )
        if preferred and not wider.preferred:
            raise AllocationError("[memorymanager] failed to find the extended preferred hint")
        return wider.mask or 0, wider.mask != mask

    def _holds(self, machine: Machine, mask: int, sizes: Sizes) -> bool:
        """Whether the nodes have the sizes free, without what init containers leave."""
        return all(
            sum(machine[node].free(kind) for node in bits(mask)) >= size for kind, size in sizes.items()
        )

    def _best(self, state: MemoryState, pod: PodRequest, sizes: Sizes, within: int = 0) -> Hint | None:
        """Return the best own hint that holds the nodes `within`: preferred, then fewer, then lower nodes."""
        hints = self._hints(state, pod, sizes, self._masks).get(MEMORY, ())
        suitable = [hint for hint in hints if hint.mask is not None and within & ~hint.mask == 0]
        return min(suitable, key=lambda hint: (not hint.preferred, *_narrowness(hint)), default=None)

    def container_hints(self, state: MemoryState, pod: PodRequest, container: ContainerRequest) -> Hints:
        if not container.memory:
            return None
        sizes = dict(container.memory)
        kept = state.blocks_of(pod.uid, container.name)
        return self._offers(state, pod, sizes) if kept is None else _hints_of_blocks(kept, sizes)

    def pod_hints(self, state: MemoryState, pod: PodRequest) -> Hints:
        sizes = pod_memory(pod)
        if not sizes:
            return None
        for container in pod.containers:
            kept = state.blocks_of(pod.uid, container.name)
            if kept is not None:
                return _hints_of_blocks(kept, sizes)
        return self._offers(state, pod, sizes)

    def _offers(self, state: MemoryState, pod: PodRequest, sizes: Sizes) -> Hints:
        """No hints would mean no wish, so where no single node fits the wider sets must be looked at."""
        return self._hints(state, pod, sizes, self._offered) or self._hints(state, pod, sizes, self._masks)

    def _hints(
        self, state: MemoryState, pod: PodRequest, sizes: Sizes, among: NumaMasks
    ) -> dict[str, tuple[Hint, ...]]:
        """List the sets of nodes with enough free memory of every kind; no entries where there are none.

        Preferred are those of the smallest size that could hold the request on an unused machine.
        """
        if not self._known(sizes):
            return {}
        machine = state.machine
        allocatable = {
            kind: among.sums({number: node.allocatable(kind) for number, node in machine.items()})
            for kind in sizes
        }
        free = {
            kind: among.sums({number: node.free(kind) for number, node in machine.items()}) for kind in sizes
        }
        reusable = _reusable(state, pod)
        groups = _Groups(machine)
        least = len(machine)
        masks = []
        for mask in among.masks:
            if any(allocatable[kind][mask] < size for kind, size in sizes.items()):
                continue
            least = min(least, mask.bit_count())
            if groups.allow(mask) and all(
                free[kind][mask] + reusable.get((mask, kind), 0) >= size for kind, size in sizes.items()
            ):
                masks.append(mask)
        hints = tuple(Hint(mask, mask.bit_count() == least) for mask in masks)
        return dict.fromkeys(sizes, hints) if hints else {}

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


def _reusable(state: MemoryState, pod: PodRequest) -> dict[tuple[int, str], int]:
    """Return what the pod's init containers hold, by exact nodes and kind: the next container may have it."""
    held: Counter[tuple[int, str]] = Counter()
    for container in pod.of_kind(Kind.INIT):
        for block in state.blocks_of(pod.uid, container.name) or ():
            held[node_mask(block.nodes), block.kind] += block.size
    return held


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


def _narrowness(hint: Hint) -> tuple[int, int]:
    mask = hint.mask or 0
    return mask.bit_count(), mask


class _Groups:
    """Which sets of nodes may be taken: a node serves either one group of nodes, or itself alone."""

    def __init__(self, machine: Machine) -> None:
        used = [(number, node) for number, node in machine.items() if node.assignments]
        self._alone = node_mask(number for number, node in used if len(node.cells) == 1)
        self._group_of = {number: node_mask(node.cells) for number, node in used if len(node.cells) > 1}
        self._grouped = node_mask(self._group_of)

    def allow(self, mask: int) -> bool:
        """Whether hints may offer these nodes: no single node out of a group either."""
        return not self.violated_by(mask) and not (mask.bit_count() == 1 and mask & self._grouped)

    def violated_by(self, mask: int) -> bool:
        """A single node violates nothing: an affinity may force one that belongs to a group."""
        if mask.bit_count() == 1:
            return False
        return mask & self._alone != 0 or any(
            self._group_of[number] != mask for number in bits(mask & self._grouped)
        )
