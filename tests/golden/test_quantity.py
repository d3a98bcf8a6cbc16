"""Quantities, against Kubernetes' own resource.Quantity (quantity.json)."""

import math
from fractions import Fraction
from typing import Any

import pytest

from nodeagent.api.quantity import Format, Quantity, QuantityError
from tests.golden.bugs import check

Case = dict[str, Any]


def _away_from_zero(number: Fraction) -> int:
    return math.ceil(number) if number > 0 else math.floor(number)


def _amount(quantity: Quantity) -> Fraction:
    return Fraction(quantity.nanos, 10**9)


def _rounds_away_from_zero(quantity: Quantity, amount: Fraction) -> None:
    assert quantity.value() == _away_from_zero(amount)
    assert quantity.milli_value() == _away_from_zero(amount * 1000)


def _parsed(case: Case) -> Quantity:
    quantity = Quantity.parse(case["s"])
    assert _amount(quantity) == Fraction(case["dec"])
    assert (quantity.format, quantity.sign, quantity.is_zero) == (
        case["format"],
        case["sign"],
        case["isZero"],
    )
    return quantity


def _parsed_and_spelled(case: Case) -> Quantity:
    quantity = _parsed(case)
    assert (str(quantity), quantity.canonical()) == (case["string"], case["canonical"])
    for rounded, name in ((quantity.round_up_milli(), "roundUpMilli"), (quantity.round_up(), "roundUp0")):
        assert (str(rounded), rounded == quantity) == (case[name], case[f"{name}Exact"])
    return quantity


def _parse_exactly(case: Case) -> None:
    quantity = _parsed_and_spelled(case)
    for figure, name in ((quantity.value(), "value"), (quantity.milli_value(), "milli")):
        # The original wraps around beyond 64 bits; these integers do not.
        if not case.get(f"{name}Wraps"):
            assert figure == case[name]
    _rounds_away_from_zero(quantity, Fraction(case["dec"]))


def _parse_with_right_figures(case: Case) -> None:
    _rounds_away_from_zero(_parsed_and_spelled(case), Fraction(case["dec"]))


def _parse_beyond_exa(case: Case) -> None:
    quantity = _parsed(case)
    assert str(quantity) == "1000E"
    _rounds_away_from_zero(quantity, Fraction(case["dec"]))


@pytest.mark.golden("quantity.json", "parse")
def test_parse(case: Case) -> None:
    if "error" in case:
        with pytest.raises(QuantityError) as raised:
            Quantity.parse(case["s"])
        assert str(raised.value) == case["error"]
        return
    check(
        case,
        _parse_exactly,
        {
            "overflowed int64": _parse_with_right_figures,
            "a negative": _parse_with_right_figures,
            "10^21 prints as 1": _parse_beyond_exa,
        },
    )


def _calculated(case: Case) -> Quantity:
    left = Quantity.parse(case["a"])
    match case["op"]:
        case "neg":
            return -left
        case "add":
            return left + Quantity.parse(case["b"])
        case "sub":
            return left - Quantity.parse(case["b"])
    raise AssertionError(f"unknown operation {case['op']}")


def _calculate_exactly(case: Case) -> None:
    if case["op"] == "cmp":
        left, right = Quantity.parse(case["a"]), Quantity.parse(case["b"])
        assert (left > right) - (left < right) == case["result"]
        return
    result = _calculated(case)
    assert (str(result), result.format) == (case["string"], case["format"])
    assert (result.value(), result.milli_value()) == (case["value"], case["milli"])


def _calculate_with_right_figures(case: Case) -> None:
    result = _calculated(case)
    assert (str(result), result.format) == (case["string"], case["format"])
    signs = {"add": 1, "sub": -1}
    left, right = (_amount(Quantity.parse(case[side])) for side in "ab")
    _rounds_away_from_zero(result, left + signs[case["op"]] * right)


@pytest.mark.golden("quantity.json", "arith")
def test_arithmetic(case: Case) -> None:
    check(
        case,
        _calculate_exactly,
        {"overflowed int64": _calculate_with_right_figures, "a negative": _calculate_with_right_figures},
    )


def _made_exactly(case: Case) -> None:
    assert str(Quantity.of(case["n"], Format(case["format"]))) == case["string"]
    _made_of_milli(case)


def _made_of_milli(case: Case) -> None:
    assert str(Quantity.of_milli(case["n"], Format(case["format"]))) == case["milliString"]


def _made_of_smallest_integer(case: Case) -> None:
    assert str(Quantity.of(case["n"], Format(case["format"]))) == "-8Ei"
    _made_of_milli(case)


@pytest.mark.golden("quantity.json", "newquantity")
def test_new_quantity(case: Case) -> None:
    check(case, _made_exactly, {"the smallest int64 prints its digits": _made_of_smallest_integer})
