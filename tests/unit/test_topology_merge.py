"""The quick merge of hints against the rule, spelt out: every combination, one after the other."""

from collections.abc import Iterator
from functools import reduce
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.hardware.machine import NumaNode
from nodeagent.resources.hints import Hint
from nodeagent.resources.topology_manager import TopologyManager
from nodeagent.resources.topology_options import Policy, TopologySettings

Lists = list[list[Hint]]


class Rule:
    """Walks through all combinations, and keeps the fitter of two."""

    def __init__(self, chosen: TopologySettings, nodes: tuple[NumaNode, ...]) -> None:
        self.single = chosen.policy is Policy.SINGLE_NUMA_NODE
        self.closest = chosen.prefer_closest and not self.single
        self.numbers = [node.node for node in nodes]
        self.distances = [node.distances for node in nodes]
        self.everything = sum(1 << number for number in self.numbers)

    def merge(self, lists: Lists) -> Hint:
        if self.single:
            lists = [
                [hint for hint in hints if hint.preferred and (hint.mask is None or size(hint.mask) == 1)]
                for hints in lists
            ]
        narrowest = [[size(hint.mask) for hint in hints if hint.mask is not None] for hints in lists]
        widest = max((min(sizes) for sizes in narrowest if sizes), default=0)
        best: Hint | None = None
        for candidate in self.candidates(lists):
            if best is None or self.replaces(candidate, best, widest):
                best = candidate
        best = best or Hint(self.everything, False)
        return Hint(None, best.preferred) if self.single and best.mask == self.everything else best

    def candidates(self, lists: Lists) -> Iterator[Hint]:
        for hints in product(*lists):
            masks = [hint.mask for hint in hints if hint.mask is not None]
            mask = reduce(int.__and__, masks, self.everything)
            if mask:
                yield Hint(mask, all(hint.preferred for hint in hints) and len(set(masks)) <= 1)

    def replaces(self, new: Hint, best: Hint, widest: int) -> bool:
        if new.preferred != best.preferred:
            return new.preferred
        assert new.mask and best.mask
        fitter = self.fitness(new.mask) < self.fitness(best.mask)
        new_size, best_size = size(new.mask), size(best.mask)
        if best.preferred or best_size > widest:
            return fitter
        if best_size == widest:
            return fitter if new_size == widest else False
        if new_size > widest:
            return False
        if new_size == widest or new_size > best_size:
            return True
        return fitter if new_size == best_size else False

    def fitness(self, mask: int) -> tuple[float, ...]:
        places = [place for place, number in enumerate(self.numbers) if mask >> number & 1]
        total = sum(self.distances[one][other] for one in places for other in places)
        return size(mask), total / len(places) ** 2 if self.closest else 0, mask


def size(mask: int) -> int:
    return mask.bit_count()


@settings(max_examples=600, deadline=None)
@given(data=st.data())
def test_the_best_of_all_combinations_is_found(data: st.DataObject) -> None:
    numbers = sorted(data.draw(st.sets(st.integers(0, 6), min_size=1, max_size=4)))
    row = st.lists(st.integers(11, 40), min_size=len(numbers), max_size=len(numbers))
    nodes = tuple(NumaNode(number, distances=tuple(data.draw(row))) for number in numbers)
    everything = [sum(1 << number for number in numbers)]
    masks = [mask for mask in range(1, everything[0] + 1) if mask & ~everything[0] == 0]
    hint = st.builds(Hint, st.sampled_from([*masks, None]), st.booleans())
    lists = data.draw(st.lists(st.lists(hint, min_size=1, max_size=5), min_size=1, max_size=4))
    policy = data.draw(st.sampled_from([each for each in Policy if each is not Policy.NONE]))
    chosen = TopologySettings(policy, prefer_closest=data.draw(st.booleans()))

    found = TopologyManager(chosen, nodes).merge([{str(i): tuple(each)} for i, each in enumerate(lists)])
    assert found == Rule(chosen, nodes).merge(lists)
