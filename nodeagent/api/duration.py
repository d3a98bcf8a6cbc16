"""Go durations ("1m30s", "100ms"): the spelling every duration has in a Kubernetes configuration."""

from __future__ import annotations

from typing import Final

NANOSECONDS_PER_SECOND: Final = 1_000_000_000

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter mu
    "ms": 1_000_000,
    "s": NANOSECONDS_PER_SECOND,
    "m": 60 * NANOSECONDS_PER_SECOND,
    "h": 3600 * NANOSECONDS_PER_SECOND,
}
_DIGITS: Final = frozenset("0123456789")
_LIMIT: Final = 1 << 63
_LIMIT_DIGITS: Final = 19


class DurationError(ValueError):
    """The text is no Go duration; the message is the one Go gives."""


def parse_duration(text: str) -> float:
    """Seconds of a Go duration. Raises DurationError."""
    return parse_nanoseconds(text) / NANOSECONDS_PER_SECOND


def parse_nanoseconds(text: str) -> int:
    """Exact nanoseconds of a Go duration, within 64 bits. Raises DurationError."""
    invalid = DurationError(f"time: invalid duration {_quote(text)}")
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    total = 0
    while rest:
        whole, rest = _take(rest, _DIGITS)
        fraction = ""
        if rest.startswith("."):
            fraction, rest = _take(rest[1:], _DIGITS)
        if not whole and not fraction:
            raise invalid
        # The limit comes before the unit, as in Go: a number too large is "invalid", whatever follows.
        if len(whole.lstrip("0")) > _LIMIT_DIGITS or int(whole or "0") > _LIMIT:
            raise invalid
        unit, rest = _take_until(rest, _DIGITS | {"."})
        if not unit:
            raise DurationError(f"time: missing unit in duration {_quote(text)}")
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
        total += int(whole or "0") * _UNITS[unit] + _fraction_nanoseconds(fraction, _UNITS[unit])
        if total > _LIMIT:
            raise invalid
    if total == _LIMIT and not negative:
        raise invalid
    return -total if negative else total


def format_duration(seconds: float) -> str:
    """The Go spelling of a number of seconds, to the nanosecond: 90 -> "1m30s", 0.1 -> "100ms", 0 -> "0s"."""
    return format_nanoseconds(round(seconds * NANOSECONDS_PER_SECOND))


def format_nanoseconds(nanoseconds: int) -> str:
    """The Go spelling of an exact number of nanoseconds."""
    if nanoseconds == 0:
        return "0s"
    sign, amount = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if amount < NANOSECONDS_PER_SECOND:
        unit = "ns" if amount < 1_000 else "\u00b5s" if amount < 1_000_000 else "ms"
        return f"{sign}{_decimal(amount, _UNITS[unit])}{unit}"
    minutes, below_minute = divmod(amount, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(below_minute, NANOSECONDS_PER_SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _take(text: str, wanted: frozenset[str]) -> tuple[str, str]:
    end = next((i for i, character in enumerate(text) if character not in wanted), len(text))
    return text[:end], text[end:]


def _take_until(text: str, stop: frozenset[str]) -> tuple[str, str]:
    end = next((i for i, character in enumerate(text) if character in stop), len(text))
    return text[:end], text[end:]


def _fraction_nanoseconds(digits: str, unit: int) -> int:
    """Go keeps as many digits as fit 63 bits, then multiplies in floating point and cuts off."""
    kept, scale = 0, 1.0
    for digit in digits:
        longer = kept * 10 + int(digit)
        if longer > _LIMIT:
            break
        kept, scale = longer, scale * 10
    return int(float(kept) * (unit / scale)) if kept else 0


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".") if rest else str(whole)


def _quote(text: str) -> str:
    """Quotes as Go's time package does: characters outside printable ASCII appear as bytes."""
    out = []
    for character in text:
        if character in '"\\':
            out.append("\\" + character)
        elif " " <= character < "\x80":
            out.append(character)
        else:
            out.extend(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    return '"' + "".join(out) + '"'
