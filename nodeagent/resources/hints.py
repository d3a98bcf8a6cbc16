"""On which NUMA nodes a request could be served: what the managers tell the topology manager."""

from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property
from itertools import combinations
from operator import add, mul, sub
from typing import NamedTuple


class Hint(NamedTuple):
    """A bitmask of NUMA nodes (None: any nodes) that would do, and whether it is as few as possible."""

    mask: int | None
    preferred: bool


ANYWHERE = Hint(None, True)
NO_AFFINITY = Hint(None, False)

Hints = Mapping[str, tuple[Hint, ...] | None] | None
"""By resource. None or no entries: no wish. An empty tuple: cannot be served."""


MOST_NODES_EXPLAINED = 8
"""On that many nodes a refusal can afford to say which wider sets would have done."""


class NumaMasks:
    """All sets of the given NUMA nodes as bitmasks: by size, then in the nodes' order."""

    def __init__(self, nodes: Iterable[int], *, single: bool = False) -> None:
        """`single`: nobody will take more than one node, so many nodes need no wider sets."""
        self.nodes = tuple(sorted(nodes))
        self._widest = 1 if single and len(self.nodes) > MOST_NODES_EXPLAINED else len(self.nodes)

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """Made when first asked for: without a topology policy nobody does, however many nodes there are."""
        singles = [1 << node for node in self.nodes]
        return tuple(
            sum(members) for size in range(1, self._widest + 1) for members in combinations(singles, size)
        )

    def sums(self, amounts: Mapping[int, int]) -> dict[int, int]:
        """Return for each mask the sum of its nodes' amounts."""
        of_bit = {1 << node: amount for node, amount in amounts.items()}
        sums = {0: 0}
        for mask in self.masks:
            lowest = mask & -mask
            sums[mask] = sums[mask ^ lowest] + of_bit[lowest]
        return sums


MOST_PAIRS = 1 << 18
WIDEST_COUNT = 20
"""Bits of the largest table of all masks that is worth making."""


def intersections(one: Set[int], other: Set[int], most_pairs: int = MOST_PAIRS) -> Set[int]:
    """Return every mask that is the intersection of a mask of one family with a mask of the other.

    Two families over 16 nodes make four thousand million pairs, which kubelet walks through. Here the pairs
    are counted instead: sums over all supersets turn intersections into products.
    """
    width = max((mask.bit_length() for mask in (*one, *other)), default=0)
    if len(one) * len(other) <= most_pairs or width > WIDEST_COUNT:
        return {mask & another for mask in one for another in other}
    tables = []
    for family in (one, other):
        table = [0] * (1 << width)
        for mask in family:
            table[mask] = 1
        tables.append(_over_supersets(table, add))
    counts = _over_supersets(list(map(mul, *tables)), sub)
    return {mask for mask, count in enumerate(counts) if count}


def _over_supersets(table: list[int], operation: Callable[[int, int], int]) -> list[int]:
    """Add to each mask's entry those of all its supersets; with `sub`, undo that."""
    half = 1
    while half < len(table):
        for start in range(0, len(table), 2 * half):
            middle, end = start + half, start + 2 * half
            table[start:middle] = map(operation, table[start:middle], table[middle:end])
        half *= 2
    return table
