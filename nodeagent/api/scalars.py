"""YAML scalars as Kubernetes resolves them: YAML 1.1 words for booleans, no dates, no base 60."""

import re

_TRUE = ("y", "yes", "true", "on")
_FALSE = ("n", "no", "false", "off")
_NULL = ("~", "null")


def _spellings(*words: str) -> frozenset[str]:
    return frozenset(spelling for word in words for spelling in (word, word.capitalize(), word.upper()))


_WORDS: dict[str, bool | None] = {
    "": None,
    **dict.fromkeys(_spellings(*_TRUE), True),
    **dict.fromkeys(_spellings(*_FALSE), False),
    **dict.fromkeys(_spellings(*_NULL), None),
}
_INTEGER = re.compile(r"([-+]?)(?:0b([01]+)|0o?([0-7]+)|0x([0-9a-f]+)|(0|[1-9][0-9]*))", re.IGNORECASE)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_A_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# Python refuses to read endless digits; no number that anything here asks for is this long.
LONGEST_NUMBER = 1024

_PREFIX = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {
    f"{_PREFIX}bool": (bool,),
    f"{_PREFIX}int": (int,),
    f"{_PREFIX}float": (float, int),
    f"{_PREFIX}null": (type(None),),
}


class TagError(ValueError):
    """A scalar that is not what its tag says, or whose tag means nothing here."""


def resolve(text: str, tag: str | None = None, *, plain: bool = True) -> str | int | float | bool | None:
    """Return the value of a scalar; `plain` says that it stands without quotes. Raises TagError."""
    if tag in ("!", f"{_PREFIX}str", f"{_PREFIX}timestamp") or (tag is None and not plain):
        return text
    value = _plain_value(text)
    if tag is None:
        return value
    wanted = _TYPES.get(tag)
    if wanted is None:
        raise TagError(f"the tag {tag} means nothing here")
    if type(value) not in wanted:
        raise TagError(f"{text!r} is no {tag.removeprefix(_PREFIX)}, as its tag says")
    return float(value) if tag.endswith("float") and isinstance(value, int) else value


def _plain_value(text: str) -> str | int | float | bool | None:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > LONGEST_NUMBER:
        return text
    if _NOT_A_NUMBER.fullmatch(text):
        raise TagError(f"{text} is no number that JSON knows")
    digits = text.replace("_", "") if text[0] != "." else text
    integer = _INTEGER.fullmatch(digits)
    if integer is not None:
        return _integer(*integer.groups())
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        return number if abs(number) != float("inf") else text
    return text


def _integer(sign: str, binary: str, octal: str, hexadecimal: str, decimal: str) -> int:
    for digits, base in ((decimal, 10), (octal, 8), (hexadecimal, 16), (binary, 2)):
        if digits is not None:
            return int(sign + digits, base)
    raise AssertionError("one of the four spellings matched")
