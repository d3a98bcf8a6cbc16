"""Which NUMA nodes share a request evenly, and how much each gives (distribute-cpus-across-numa)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, sqrt

MOST_CHOICES = 10_000
"""Bounds the search on more than 16 nodes when hardly two have the same number free: best so far wins."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """CPUs for each member (an index into the counts), and groups on top for those the remainder falls to."""

    members: tuple[int, ...]
    share: int
    extra_groups: tuple[int, ...]
    score: float
    """Standard deviation of what is left on all nodes: the lowest wins."""


@dataclass(frozen=True, slots=True)
class _Balance:
    """Scores what is left. The mean is the same for every choice, so the sum of squares decides alone."""

    nodes: int
    left: int
    squares: int

    def score(self, squares: int) -> float:
        mean = _rounded(self.left / self.nodes)
        variance = (squares - 2 * mean * self.left + self.nodes * mean * mean) / self.nodes
        return _rounded(sqrt(max(0.0, variance)))


def distribute(counts: Sequence[int], number: int, group: int, least_nodes: int) -> Distribution | None:
    """Share `number` CPUs, in groups of `group`, over as few nodes with `counts` free CPUs as can do it.

    Among the combinations of that many nodes the first with the lowest score wins. None when no
    combination can hold the request. `number` is a multiple of `group`.
    """
    balance = _Balance(len(counts), sum(counts) - number, sum(count * count for count in counts))
    budget = iter(range(MOST_CHOICES))
    for size in range(least_nodes, min(number // group, len(counts)) + 1):
        best = _best_of_size(balance, counts, number, group, size, budget)
        if best:
            return best
    return None


def _best_of_size(
    balance: _Balance, counts: Sequence[int], number: int, group: int, size: int, budget: Iterator[int]
) -> Distribution | None:
    """Look only at combinations whose sum of counts can reach the score that the fullest nodes reach."""
    share = number // size // group * group
    groups = (number - share * size) // group
    able = [index for index, count in enumerate(counts) if count >= share]
    values = [counts[index] for index in able]
    fullest = sorted(values, reverse=True)[:size]
    if len(fullest) < size or sum(count // group * group for count in fullest) < number:
        return None

    def squares_left(total: int) -> int:
        return balance.squares - 2 * share * total + size * share * share

    def evaluate(choice: tuple[int, ...]) -> Distribution:
        chosen = [values[index] for index in choice]
        squares = squares_left(sum(chosen))
        score, extra = _remainder(
            balance, squares, [count - share for count in chosen], groups, group, budget
        )
        return Distribution(tuple(able[index] for index in choice), share, extra, score)

    most = sum(fullest)
    gain = _greedy_gain([count - share for count in fullest], groups, group)
    lowest = balance.score(squares_left(most) - gain)
    best = evaluate(next(_choices(values, size, most)))
    least = most
    while least > number and balance.score(squares_left(least - 1) - gain) <= best.score:
        least -= 1
    found = False
    for choice, _ in zip(_choices(values, size, least), budget, strict=False):
        if sum(values[index] // group * group for index in choice) < number:
            continue
        candidate = evaluate(choice)
        if candidate.score < best.score or (candidate.score == best.score and not found):
            best, found = candidate, True
            if best.score == lowest:
                break
    return best


def _remainder(
    balance: _Balance, squares: int, after: Sequence[int], groups: int, group: int, budget: Iterator[int]
) -> tuple[float, tuple[int, ...]]:
    """Hand `groups` groups out, one a turn, to the subset of the members that leaves the lowest score.

    Larger subsets are tried first, then in order. In a subset of at least `groups` members only its first
    `groups` get one each, so those are found without trying every subset.
    """
    extra = [0] * len(after)
    if not groups:
        return balance.score(squares), tuple(extra)
    able = [index for index, count in enumerate(after) if count >= group]
    values = [after[index] for index in able]
    room = [count // group for count in values]

    def score(given: Sequence[tuple[int, int]]) -> float:
        return balance.score(squares - _gain(values, given, group))

    if groups <= len(values):
        best = [(index, 1) for index in _single_takers(balance, squares, values, groups, group)]
    else:
        best = list(enumerate(_in_turn(room, groups)))
    best_score = score(best)
    if balance.score(squares - _greedy_gain(values, groups, group)) < best_score:
        smaller = (
            choice
            for size in range(min(groups, len(values)) - 1, 0, -1)
            for choice in _choices(values, size, groups * group)
            if sum(room[index] for index in choice) >= groups
        )
        for choice, _ in zip(smaller, budget, strict=False):
            given = list(zip(choice, _in_turn([room[index] for index in choice], groups), strict=True))
            if score(given) < best_score:
                best, best_score = given, score(given)
    for index, count in best:
        extra[able[index]] = count
    return best_score, tuple(extra)


def _single_takers(
    balance: _Balance, squares: int, values: Sequence[int], groups: int, group: int
) -> tuple[int, ...]:
    """Return the first `groups` members of the first subset with the lowest score.

    Larger subsets come first, and the rest of a subset lies behind its takers: so the takers whose last one
    is foremost win.
    """
    most = sum(sorted(values)[-groups:])

    def score(total: int) -> float:
        return balance.score(squares - 2 * group * total + groups * group * group)

    least = most
    while least > 0 and score(least - 1) == score(most):
        least -= 1
    for end in range(groups, len(values)):
        if takers := next(_choices(values[:end], groups, least), None):
            return takers
    return next(_choices(values, groups, least))


def _in_turn(room: Sequence[int], groups: int) -> list[int]:
    """Hand out one group a turn, passing over members without room. The room is enough for all groups."""
    takes = [0] * len(room)
    while groups:
        for index, most in enumerate(room):
            if groups and takes[index] < most:
                takes[index] += 1
                groups -= 1
    return takes


def _gain(values: Sequence[int], given: Sequence[tuple[int, int]], group: int) -> int:
    """Return by how much the sum of squares sinks when each member gives its number of groups."""
    return sum(values[index] ** 2 - (values[index] - count * group) ** 2 for index, count in given)


def _greedy_gain(values: Sequence[int], groups: int, group: int) -> int:
    """Return the most that the sum of squares can sink: each group from whatever is fullest then."""
    rest = list(values)
    gain = 0
    for _ in range(groups):
        fullest = max(range(len(rest)), key=rest.__getitem__)
        gain += rest[fullest] ** 2 - (rest[fullest] - group) ** 2
        rest[fullest] -= group
    return gain


def _choices(values: Sequence[int], size: int, least_sum: int) -> Iterator[tuple[int, ...]]:
    """Yield `size` indexes in lexicographic order, the first choice of every distinct sequence of values.

    Choices with the same sequence have the same score. Only sums of at least `least_sum` are yielded.
    """
    best = [
        [sum(ordered[:count]) for count in range(size + 1)]
        for ordered in (sorted(values[start:], reverse=True) for start in range(len(values) + 1))
    ]

    def extend(start: int, missing: int, lacking: int) -> Iterator[tuple[int, ...]]:
        if not missing:
            yield ()
            return
        seen = set()
        for index in range(start, len(values) - missing + 1):
            value = values[index]
            if value not in seen and value + best[index + 1][missing - 1] >= lacking:
                seen.add(value)
                for rest in extend(index + 1, missing - 1, lacking - value):
                    yield (index, *rest)

    return extend(0, size, least_sum)


def _rounded(value: float) -> float:
    """Three decimals, half up, as the scores are compared."""
    return floor(value * 1000 + 0.5) / 1000
