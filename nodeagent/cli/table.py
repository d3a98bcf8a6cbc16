"""Columns, laid out as kubectl lays them out."""

from collections.abc import Iterable, Sequence

NONE = "<none>"


def columns(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "") -> str:
    """Return a table with columns three spaces apart, a line a row."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "\n".join((indent + line).rstrip() for line in lines)


def size(amount: int | None) -> str:
    """Return a number of bytes in the largest binary unit that keeps three digits."""
    if amount is None:
        return NONE
    value, units = float(amount), ["", "Ki", "Mi", "Gi", "Ti", "Pi"]
    while abs(value) >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f}{units[0]}" if value >= 100 or value == int(value) else f"{value:.1f}{units[0]}"
