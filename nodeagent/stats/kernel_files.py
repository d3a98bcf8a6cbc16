"""The shapes in which the kernel writes its figures: flat keyed files and pressure files."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PressureLine:
    """How long tasks waited: averages over 10, 60 and 300 s in percent, and the total in microseconds."""

    average_10: float
    average_60: float
    average_300: float
    total_microseconds: int


@dataclass(frozen=True, slots=True)
class Pressure:
    """Pressure stall information: `some` tasks waited, or all of them (`full`)."""

    some: PressureLine
    full: PressureLine | None = None


def parse_flat_keyed(text: str) -> dict[str, int]:
    """Read lines of `key value`; lines whose value is no number are left out."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if value.isdecimal():
            found[key] = int(value)
    return found


def parse_limit(text: str | None) -> int | None:
    """Read a file that holds one number; None for `max` and for a file that is not there."""
    return int(text) if text is not None and text.isdecimal() else None


def parse_pressure(text: str | None) -> Pressure | None:
    """Read a pressure file; None where the kernel keeps no such figures."""
    lines: dict[str, PressureLine] = {}
    for line in (text or "").splitlines():
        kind, *pairs = line.split()
        values = dict(pair.split("=", 1) for pair in pairs)
        lines[kind] = PressureLine(
            float(values["avg10"]), float(values["avg60"]), float(values["avg300"]), int(values["total"])
        )
    return Pressure(lines["some"], lines.get("full")) if "some" in lines else None
