"""Text made of `Key: value` lines in nested blocks, aligned block by block."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

from nodeagent.cli.table import NONE

Value: TypeAlias = Union[str, Sequence[str], "Block"]
Entry: TypeAlias = tuple[str, Value]


class Block(list[Entry]):
    """Lines that stand below a key, a step further in; an empty one reads `<none>`."""


def render(entries: Sequence[Entry], indent: str = "") -> str:
    """Return the lines: texts beside their key, one under the other, and blocks below theirs."""
    flat = [key for key, value in entries if not isinstance(value, Block) or not value]
    width = max((len(key) for key in flat), default=0) + len(":  ")
    lines = []
    for key, value in entries:
        if isinstance(value, Block) and value:
            lines += [f"{indent}{key}:", render(value, indent + "  ")]
            continue
        texts = [value] if isinstance(value, str) else [text for text in value if isinstance(text, str)]
        first, *others = texts or [NONE]
        lines.append(f"{indent}{f'{key}:'.ljust(width)}{first}")
        lines += [f"{indent}{' ' * width}{other}" for other in others]
    return "\n".join(line.rstrip() for line in lines)


def given(*entries: tuple[str, str | None]) -> list[Entry]:
    """The entries that have a value."""
    return [(key, value) for key, value in entries if value]


def pairs(entries: Mapping[str, str], sign: str = "=") -> list[str]:
    """Labels and the like, sorted, one a line."""
    return [f"{key}{sign}{value}" for key, value in sorted(entries.items())]
