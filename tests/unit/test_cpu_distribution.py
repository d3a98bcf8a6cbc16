"""The fast search for an even distribution against the rule, spelt out."""

from itertools import combinations
from math import floor, sqrt

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.resources.cpu_distribution import distribute

Shares = dict[int, int]


def score(left: list[int]) -> float:
    mean = floor(sum(left) / len(left) * 1000 + 0.5) / 1000
    return floor(sqrt(sum((count - mean) ** 2 for count in left) / len(left)) * 1000 + 0.5) / 1000


def hand_out(left: list[int], takers: tuple[int, ...], groups: int, group: int) -> list[int] | None:
    left = list(left)
    while groups:
        if all(left[taker] < group for taker in takers):
            return None
        for taker in takers:
            if groups and left[taker] >= group:
                left[taker] -= group
                groups -= 1
    return left


def by_the_rule(counts: list[int], number: int, group: int, least_nodes: int) -> Shares | None:
    """Look at every combination and every subset of its members, in order."""
    for size in range(least_nodes, min(number // group, len(counts)) + 1):
        share = number // size // group * group
        groups = (number - share * size) // group
        best: tuple[float, list[int]] | None = None
        for members in combinations(range(len(counts)), size):
            if sum(counts[member] // group * group for member in members) < number:
                continue
            if any(counts[member] < share for member in members):
                continue
            after = [count - share * (index in members) for index, count in enumerate(counts)]
            able = [member for member in members if after[member] >= group]
            outcomes = (
                [after]
                if not groups
                else (
                    outcome
                    for length in range(len(able), 0, -1)
                    for takers in combinations(able, length)
                    if (outcome := hand_out(after, takers, groups, group)) is not None
                )
            )
            for outcome in outcomes:
                if best is None or score(outcome) < best[0]:
                    best = (score(outcome), outcome)
        if best:
            return {i: c - left for i, (c, left) in enumerate(zip(counts, best[1], strict=True)) if c != left}
    return None


@settings(max_examples=400, deadline=None)
@given(st.lists(st.integers(1, 24), min_size=1, max_size=7), st.sampled_from([1, 2, 4]), st.data())
def test_the_search_finds_what_trying_everything_finds(
    counts: list[int], group: int, data: st.DataObject
) -> None:
    number = data.draw(st.integers(1, max(1, sum(counts) // group))) * group
    least_nodes = data.draw(st.integers(1, len(counts)))
    found = distribute(counts, number, group, least_nodes)
    shares = found and {
        member: found.share + extra * group
        for member, extra in zip(found.members, found.extra_groups, strict=True)
    }
    assert shares == by_the_rule(counts, number, group, least_nodes)


def test_one_node_is_enough() -> None:
    found = distribute([12, 12], 12, 1, 1)
    assert found is not None
    assert (found.members, found.share, found.extra_groups) == ((0,), 12, (0,))


def test_the_remainder_goes_to_the_first_of_equal_nodes() -> None:
    found = distribute([12, 12], 13, 1, 2)
    assert found is not None
    assert (found.members, found.share, found.extra_groups) == ((0, 1), 6, (1, 0))
