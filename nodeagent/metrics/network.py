"""What has gone through each network interface, from /proc/net/dev."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class Traffic:
    """One direction of an interface."""

    bytes: int
    packets: int
    errors: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Interface:
    """Both directions of an interface, counted since it was made."""

    name: str
    receive: Traffic
    transmit: Traffic


def read_interfaces(proc_root: Path) -> tuple[Interface, ...]:
    """Read all interfaces but loopback; none where the file cannot be read."""
    try:
        text = (proc_root / "net/dev").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ()
    return tuple(_parse(text))


def _parse(text: str) -> Iterator[Interface]:
    for line in text.splitlines():
        # The two lines of headings have no colon.
        name, colon, figures = line.partition(":")
        numbers = [int(figure) for figure in figures.split() if figure.isdecimal()]
        if colon and name.strip() != "lo" and len(numbers) == _COLUMNS:
            yield Interface(name.strip(), Traffic(*numbers[:4]), Traffic(*numbers[8:12]))
