"""Quantity is exact: invariants over amounts of every spelling."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.quantity import DECIMAL_EXPONENT, Format, Quantity, QuantityError

SUFFIXES = {
    **{
        suffix: Fraction(1000) ** power for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G"), -3)
    },
    **{suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti"), 1)},
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}
NANO = Fraction(1, 10**9)


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, Fraction]:
    """Draw a text and the amount that it stands for, worked out apart from the code under test."""
    sign = draw(st.sampled_from(("", "+", "-")))
    whole = draw(st.integers(0, 10**9))
    decimals = draw(st.text("0123456789", max_size=6))
    suffix = draw(st.sampled_from(list(SUFFIXES)))
    number = Fraction(f"{whole}.{decimals or 0}") * SUFFIXES[suffix]
    # Below one billionth the magnitude is rounded up.
    amount = -(-number // NANO) * NANO
    if suffix.endswith("i"):
        amount = min(amount, Fraction(2**63 - 1))
    text = f"{sign}{whole}{'.' if decimals else ''}{decimals}{suffix}"
    return text, -amount if sign == "-" else amount


quantities = st.builds(Quantity, st.integers(-(10**25), 10**25), st.sampled_from(Format))


def amount_of(quantity: Quantity) -> Fraction:
    return Fraction(quantity.nanos, 10**9)


@given(spellings())
def test_reads_the_amount_that_is_written(case: tuple[str, Fraction]) -> None:
    text, amount = case
    assert amount_of(Quantity.parse(text)) == amount


@given(spellings())
def test_what_is_printed_reads_back(case: tuple[str, Fraction]) -> None:
    quantity = Quantity.parse(case[0])
    for text in (str(quantity), quantity.canonical()):
        again = Quantity.parse(text)
        assert again == quantity
        assert str(again) == text


@given(quantities, quantities)
def test_adding_and_subtracting_lose_nothing(left: Quantity, right: Quantity) -> None:
    assert left + right - right == left
    assert -(left - right) == right - left
    assert amount_of(left + right) == amount_of(left) + amount_of(right)


@given(quantities, quantities)
def test_ordered_and_hashed_by_amount(left: Quantity, right: Quantity) -> None:
    assert (left < right) == (amount_of(left) < amount_of(right))
    assert (left >= right) == (amount_of(left) >= amount_of(right))
    assert (left == right) == (amount_of(left) == amount_of(right))
    assert hash(left) == hash(Quantity(left.nanos, DECIMAL_EXPONENT, "some spelling"))


@given(quantities)
def test_figures_are_rounded_away_from_zero(quantity: Quantity) -> None:
    for figure, unit in ((quantity.value(), Fraction(1)), (quantity.milli_value(), Fraction(1, 1000))):
        excess = abs(figure * unit) - abs(amount_of(quantity))
        assert 0 <= excess < unit
        assert figure == 0 or (figure > 0) == (quantity.sign > 0)


@given(st.text(max_size=20))
def test_any_text_is_an_amount_or_a_quantity_error(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert Quantity.parse(str(quantity)) == quantity


@pytest.mark.parametrize("text", ["9" * 100_000, "1e999999999999", "1" + "0" * 2000 + "Ei", "1e1025"])
def test_endless_numbers_are_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_a_vanishing_amount_is_one_billionth() -> None:
    assert str(Quantity.parse("1e-99999999999")) == "1e-9"


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [("0", "1Gi", "1Gi"), ("1", "1Gi", "1073741825"), ("1Ki", "1", "1025"), ("1Mi", "1024Ki", "2Mi")],
)
def test_a_sum_is_spelled_as_its_left_part_unless_that_is_zero(left: str, right: str, total: str) -> None:
    assert str(Quantity.parse(left) + Quantity.parse(right)) == total


def test_zero_is_false() -> None:
    assert not Quantity.parse("0Mi")
    assert Quantity.parse("1n")
