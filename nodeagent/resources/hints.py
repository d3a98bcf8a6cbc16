"""On which NUMA nodes a request could be served: what the managers tell the topology manager."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import combinations
from typing import NamedTuple


class Hint(NamedTuple):
    """A bitmask of NUMA nodes (None: any nodes) that would do, and whether it is as few as possible."""

    mask: int | None
    preferred: bool


ANYWHERE = Hint(None, True)
NO_AFFINITY = Hint(None, False)

Hints = Mapping[str, tuple[Hint, ...] | None] | None
"""By resource. None or no entries: no wish. An empty tuple: cannot be served."""


class NumaMasks:
    """All sets of the given NUMA nodes as bitmasks: by size, then in the nodes' order."""

    def __init__(self, nodes: Iterable[int]) -> None:
        self.nodes = tuple(sorted(nodes))

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """Made when first asked for: without a topology policy nobody does, however many nodes there are."""
        singles = [1 << node for node in self.nodes]
        return tuple(
            sum(members) for size in range(1, len(singles) + 1) for members in combinations(singles, size)
        )

    def sums(self, amounts: Mapping[int, int]) -> dict[int, int]:
        """Return for each mask the sum of its nodes' amounts."""
        of_bit = {1 << node: amount for node, amount in amounts.items()}
        sums = {0: 0}
        for mask in self.masks:
            lowest = mask & -mask
            sums[mask] = sums[mask ^ lowest] + of_bit[lowest]
        return sums
