"""Go durations: values, spellings and error texts worked out from Go's documentation of its time package."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.duration import (
    DurationError,
    format_duration,
    format_nanoseconds,
    parse_duration,
    parse_nanoseconds,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("-0", 0.0),
        ("0s", 0.0),
        ("5m", 300.0),
        ("1h15m30.918s", 4530.918),
        ("100ms", 0.1),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("5.s", 5.0),
        ("-1.5h", -5400.0),
        ("+30s", 30.0),
        ("10us", 0.00001),
        ("10\u00b5s", 0.00001),
        ("10\u03bcs", 0.00001),
        ("3ns", 3e-9),
        ("1s1s", 2.0),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("s", 'time: invalid duration "s"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1m5", 'time: missing unit in duration "1m5"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1h-5m", 'time: unknown unit "h-" in duration "1h-5m"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("99999999999999999999s", 'time: invalid duration "99999999999999999999s"'),
        ('1"', r'time: unknown unit "\"" in duration "1\""'),
        ("1\u00e9", r'time: unknown unit "\xc3\xa9" in duration "1\xc3\xa9"'),
        ("9" * 6000, f'time: invalid duration "{"9" * 6000}"'),
    ],
)
def test_errors_use_the_words_of_go(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


def test_the_range_is_that_of_64_bits() -> None:
    assert parse_nanoseconds("9223372036854775807ns") == 2**63 - 1
    assert parse_nanoseconds("-9223372036854775808ns") == -(2**63)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (60, "1m0s"),
        (90.5, "1m30.5s"),
        (14400, "4h0m0s"),
        (0.1, "100ms"),
        (0.0015, "1.5ms"),
        (1.1e-6, "1.1\u00b5s"),
        (1e-9, "1ns"),
        (-1, "-1s"),
        (86400, "24h0m0s"),
    ],
)
def test_durations_are_spelled_as_go_spells_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_what_is_printed_reads_back_exactly(nanoseconds: int) -> None:
    assert parse_nanoseconds(format_nanoseconds(nanoseconds)) == nanoseconds


@given(st.text(alphabet="0123456789.hmsnu\u00b5-+ ", max_size=12))
def test_any_text_gives_a_number_or_a_duration_error(text: str) -> None:
    try:
        nanoseconds = parse_nanoseconds(text)
    except DurationError as error:
        assert str(error).startswith("time: ")
    else:
        assert -(2**63) <= nanoseconds < 2**63
