"""Thresholds, as kubelet reads and derives them."""

import math
from typing import Any

import pytest

from nodeagent.eviction.thresholds import (
    Amount,
    Threshold,
    ThresholdError,
    has_own_containerfs,
    parse_thresholds,
    with_containerfs,
)
from tests.golden.bugs import check


def parse(case: dict[str, Any]) -> tuple[Threshold, ...]:
    return parse_thresholds(
        enforce_node_allocatable=case.get("enforceNodeAllocatable"),
        eviction_hard=case.get("evictionHard"),
        eviction_soft=case.get("evictionSoft"),
        eviction_soft_grace_period=case.get("evictionSoftGracePeriod"),
        eviction_minimum_reclaim=case.get("evictionMinimumReclaim"),
    )


def amount(value: Amount) -> Any:
    if value.quantity is not None:
        return {"quantity": str(value.quantity), "value": value.quantity.value()}
    return {"percentage": pytest.approx(value.fraction, rel=1e-7)}


def described(threshold: Threshold) -> dict[str, Any]:
    found = {
        "signal": threshold.signal.value,
        "operator": "LessThan",
        "hard": threshold.is_hard,
        "gracePeriodSeconds": pytest.approx(threshold.grace_period_seconds),
        "value": amount(threshold.value),
    }
    if threshold.minimum_reclaim is not None:
        found["minReclaim"] = amount(threshold.minimum_reclaim)
    return found


def assert_same(thresholds: tuple[Threshold, ...], expected: list[dict[str, Any]]) -> None:
    """Compare without regard to order, as the original's is arbitrary."""
    left = [described(threshold) for threshold in thresholds]
    for each in expected:
        assert each in left
        left.remove(each)
    assert left == []


@pytest.mark.golden("eviction_parse.json", "parse")
def test_parse(case: dict[str, Any]) -> None:
    def exact(case: dict[str, Any]) -> None:
        texts = case.get("errorOneOf") or [text for text in (case.get("error"),) if text]
        if texts:
            with pytest.raises(ThresholdError) as refused:
                parse(case)
            assert refused.value.message in texts
        else:
            assert_same(parse(case), case.get("thresholds") or [])

    def refuses_nan(case: dict[str, Any]) -> None:
        with pytest.raises(ThresholdError, match="must be a number: NaN%"):
            parse(case)

    check(case, exact, {"NaN% is accepted": refuses_nan})


@pytest.mark.golden("eviction_parse.json", "threshold_quantity")
def test_threshold_quantity(case: dict[str, Any]) -> None:
    (threshold,) = parse_thresholds(eviction_hard={"memory.available": case["percentage"]})
    quantity = threshold.value.of(case["capacity"])
    assert (quantity.value(), str(quantity)) == (case["quantity"], case["string"])
    assert not math.isnan(threshold.value.fraction)


@pytest.mark.golden("eviction_parse.json", "containerfs_thresholds")
def test_containerfs_thresholds(case: dict[str, Any]) -> None:
    given = parse(case)
    effective = with_containerfs(
        given, dedicated_imagefs=case["dedicatedImageFs"], split_containerfs=case["splitContainerFs"]
    )
    assert_same(effective, case["effectiveThresholds"])
    assert has_own_containerfs(given) == case.get("warn", False)
