"""How what a parent has is shared among its children: exact integers, no floats in shares."""

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Share(NamedTuple):
    """One child's side in the sharing of one resource, in units; `request` is capped by its max already."""

    name: str
    weight: int
    request: int
    minimum: int
    guarantee: int
    lends: bool


def redistribute(total: int, shares: Sequence[Share]) -> dict[str, int]:
    """Return what each child may use of `total`.

    Everyone gets its minimum (a lender only what it asks for); who wants more shares the rest by weight, and
    what one does not need goes to the others. The minimums are not cut to fit.
    """
    runtime: dict[str, int] = {}
    wanting: list[tuple[str, int, int]] = []
    left = total
    # Unpacked, not by name: with ten thousand groups this loop is what everybody waits for.
    for name, weight, request, minimum, guarantee, lends in shares:
        floor = minimum if minimum > guarantee else guarantee
        if request > floor:
            wanting.append((name, weight, request))
        elif lends:
            floor = request
        runtime[name] = floor
        left -= floor
    while left > 0 and wanting:
        weights = sum([weight for _, weight, _ in wanting])
        if weights <= 0:
            break
        _hand_out(left, weights, wanting, runtime)
        left = 0
        unsatisfied = []
        for each in wanting:
            name, _, request = each
            excess = runtime[name] - request
            if excess >= 0:
                runtime[name] = request
                left += excess
            else:
                unsatisfied.append(each)
        wanting = unsatisfied
    return runtime


def _hand_out(
    left: int, weights: int, wanting: Sequence[tuple[str, int, int]], runtime: dict[str, int]
) -> None:
    """Add to each its part of `left`, rounded down, and what rounding left over to the largest remainders."""
    remainders: list[tuple[int, str]] = []
    over = left
    for name, weight, _ in wanting:
        if weight > 0:
            whole, remainder = divmod(weight * left, weights)
            runtime[name] += whole
            over -= whole
            if remainder:
                remainders.append((-remainder, name))
    for _, name in heapq.nsmallest(over, remainders):
        runtime[name] += 1


def scaled_minimums(
    total: Mapping[str, int], minimums: Sequence[Mapping[str, int]], fixed: Sequence[Mapping[str, int]] = ()
) -> list[dict[str, int]]:
    """Return by child the minimums that must shrink because the parent cannot satisfy all of them.

    Only resources of `total` shrink, in proportion; `fixed` minimums do not, and are served first.
    """
    scaled: list[dict[str, int]] = [{} for _ in minimums]
    for name, available in total.items():
        shrinking = sum(minimum.get(name, 0) for minimum in minimums)
        kept = sum(minimum.get(name, 0) for minimum in fixed)
        if available >= shrinking + kept:
            continue
        left = available - kept
        for minimum, result in zip(minimums, scaled, strict=True):
            result[name] = _proportion(left, minimum.get(name, 0), shrinking) if left > 0 else 0
    return scaled


def _proportion(left: int, minimum: int, total: int) -> int:
    # Doubles, as the original's: what users see written must be the same to the unit.
    return int(float(left) * float(minimum) / float(total)) if total else 0
