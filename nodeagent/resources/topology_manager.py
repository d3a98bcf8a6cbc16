"""Merge the managers' hints into one: on which NUMA nodes a container is to be served, if at all."""

from collections.abc import Callable, Iterable, Sequence, Set
from functools import reduce

from nodeagent.hardware.cpuset import bits
from nodeagent.hardware.topology import NumaNode
from nodeagent.resources.hints import ANYWHERE, NO_AFFINITY, Hint, Hints, intersections
from nodeagent.resources.topology_options import Policy, TopologySettings

HintList = tuple[Hint, ...]
Key = Callable[[int], tuple[float, ...]]


class TopologyManager:
    """Merges and judges under one policy. Pure: knows the machine's NUMA nodes, nothing else."""

    def __init__(self, settings: TopologySettings, nodes: Sequence[NumaNode]) -> None:
        self.settings = settings
        self.all_nodes = sum(1 << node.node for node in nodes)
        self._distances = {
            (one.node, other.node): distance
            for one in nodes
            for other, distance in zip(nodes, one.distances, strict=False)
        }

    def merge(self, providers: Iterable[Hints]) -> Hint:
        """Return the best hint that agrees with one hint of every list. Policy none looks at nothing."""
        if self.settings.policy is Policy.NONE:
            return NO_AFFINITY
        lists = [hints for provider in providers for hints in _lists_of(provider)]
        single = self.settings.policy is Policy.SINGLE_NUMA_NODE
        if single:
            lists = [tuple(hint for hint in hints if _is_single(hint)) for hints in lists]
        best = self._best(lists)
        # All nodes of a machine say nothing about where to go.
        return Hint(None, best.preferred) if single and best.mask == self.all_nodes else best

    def admits(self, hint: Hint) -> bool:
        strict = self.settings.policy in (Policy.RESTRICTED, Policy.SINGLE_NUMA_NODE)
        return hint.preferred or not strict

    def _best(self, lists: Sequence[HintList]) -> Hint:
        """Pick the fittest of all combinations without walking through them.

        A combination is preferred when all its hints are, and all their masks (where given) are equal; any
        preferred one beats the others. What decides among the rest depends on the masks alone.
        """
        agreed = self._agreed_masks(lists)
        if agreed:
            return Hint(min(agreed, key=self._narrowness), True)
        masks: Set[int] = {self.all_nodes}
        for hints in lists:
            of_hints = {self.all_nodes if hint.mask is None else hint.mask for hint in hints}
            masks = intersections(masks, of_hints)
        masks -= {0}
        if not masks:
            return Hint(self.all_nodes, False)
        return Hint(min(masks, key=self._closeness_to(_widest_minimum(lists))), False)

    def _agreed_masks(self, lists: Sequence[HintList]) -> set[int]:
        """Return the masks of all preferred combinations."""
        demanding = []
        for hints in lists:
            if ANYWHERE not in hints:
                demanding.append({hint.mask for hint in hints if hint.preferred and hint.mask is not None})
        if demanding:
            agreed = reduce(set.intersection, demanding)
        else:
            agreed = {
                hint.mask for hints in lists for hint in hints if hint.preferred and hint.mask is not None
            }
            agreed |= {self.all_nodes}
        return {mask & self.all_nodes for mask in agreed if mask & self.all_nodes}

    def _closeness_to(self, size: int) -> Key:
        """Order masks by how near they are to the size that the hardest request needs: smaller ones first."""

        def key(mask: int) -> tuple[float, ...]:
            nodes = mask.bit_count()
            rank = (0, 0) if nodes == size else (1, -nodes) if nodes < size else (2, nodes)
            return (*rank, *self._narrowness(mask))

        return key

    def _narrowness(self, mask: int) -> tuple[float, ...]:
        """Order masks by size, then by distance where that is wanted, then by value."""
        return (mask.bit_count(), self._mean_distance(mask), mask)

    def _mean_distance(self, mask: int) -> float:
        if not self.settings.prefer_closest or self.settings.policy is Policy.SINGLE_NUMA_NODE:
            return 0.0
        nodes = list(bits(mask))
        total = sum(self._distances[one, other] for one in nodes for other in nodes)
        return total / len(nodes) ** 2


def _lists_of(provider: Hints) -> list[HintList]:
    """Without a wish any node will do; what cannot be served fits any node badly."""
    if not provider:
        return [(ANYWHERE,)]
    return [(ANYWHERE,) if hints is None else hints or (NO_AFFINITY,) for hints in provider.values()]


def _is_single(hint: Hint) -> bool:
    return hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)


def _widest_minimum(lists: Iterable[HintList]) -> int:
    """Return the size of the narrowest mask of the list whose narrowest is widest."""
    sizes = ([hint.mask.bit_count() for hint in hints if hint.mask is not None] for hints in lists)
    return max((min(of_list) for of_list in sizes if of_list), default=0)
