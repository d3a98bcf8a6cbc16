"""Columns and ages, laid out as kubectl lays them out."""

from collections.abc import Iterable, Sequence
from datetime import datetime

NONE = "<none>"
UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def columns(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "") -> str:
    """Return a table with columns three spaces apart, a line a row."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "\n".join((indent + line).rstrip() for line in lines)


def age(since: datetime | None, now: datetime) -> str:
    """Return how long ago a moment was, in the two units that matter."""
    if since is None:
        return UNKNOWN
    return human_duration((now - since).total_seconds())


def human_duration(seconds: float) -> str:
    """Return a length of time with as much detail as people read: 119s, 5m30s, 2h, 3d4h."""
    whole = max(int(seconds), 0)
    if seconds < -1:
        return "<invalid>"
    for below, unit, minor in (
        (2 * _MINUTE, (1, "s"), None),
        (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
        (3 * _HOUR, (_MINUTE, "m"), None),
        (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
        (2 * _DAY, (_HOUR, "h"), None),
        (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
        (2 * _YEAR, (_DAY, "d"), None),
        (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
    ):
        if whole < below:
            size, name = unit
            rest = whole % size // minor[0] if minor else 0
            return f"{whole // size}{name}" + (f"{rest}{minor[1]}" if minor and rest else "")
    return f"{whole // _YEAR}y"


def size(amount: int | None) -> str:
    """Return a number of bytes in the largest binary unit that keeps three digits."""
    if amount is None:
        return NONE
    value, units = float(amount), ["", "Ki", "Mi", "Gi", "Ti", "Pi"]
    while abs(value) >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f}{units[0]}" if value >= 100 or value == int(value) else f"{value:.1f}{units[0]}"
