"""What one row of the configuration table says, and the checks a row can carry."""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from nodeagent.api.duration import format_nanoseconds, parse_nanoseconds
from nodeagent.api.quantity import Quantity, QuantityError

Check = Callable[[str, Any], str | None]
"""Takes a field's name and value; returns what is wrong with it, in kubelet's words, or None."""
Fault = tuple[str, str]
"""The dotted name of a field, and a sentence in kubelet's words."""


class Effect(StrEnum):
    """What setting a field does here."""

    HERE = "implemented"
    LATER = "not yet implemented"
    NONE = "accepted without effect"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: the documentation of a field, what it does here, and its check.

    `zero_counts`: a zero, false or empty value is a value of its own. Where it is False such a value means
    "not set", as in Kubernetes: the default takes its place, and output leaves it out.
    """

    doc: str
    effect: Effect = Effect.HERE
    check: Check | None = None
    zero_counts: bool = False


def later(doc: str, check: Check | None = None, *, zero_counts: bool = False) -> Setting:
    """A row that a later version acts on."""
    return Setting(doc, Effect.LATER, check, zero_counts)


def ignored(doc: str, check: Check | None = None, *, zero_counts: bool = False) -> Setting:
    """A row that has no meaning here."""
    return Setting(doc, Effect.NONE, check, zero_counts)


@dataclass(frozen=True, slots=True)
class Row:
    """A setting with its place: the dotted name and the attributes behind it, its type and its default."""

    name: str
    attributes: tuple[str, ...]
    type_name: str
    default: object
    setting: Setting


DURATION: Final = "duration"
NANOSECONDS: Final = "nanoseconds"
Duration = Annotated[str, DURATION]
"""A Go duration, kept as text in Go's own spelling; `nodeagent.api.duration` gives seconds."""
DurationOrNanoseconds = Annotated[str, DURATION, NANOSECONDS]
"""The same where Kubernetes also takes a bare number of nanoseconds."""

_INITIALISMS: Final = frozenset(
    ["api", "ca", "cfs", "cidr", "dns", "gc", "id", "ip", "oom", "pid", "qos", "qps", "tls", "ttl", "url"]
)
_IRREGULAR: Final = {"cpus": "CPUs", "ids": "IDs", "iptables": "IPTables"}


def kubernetes_name(attribute: str) -> str:
    """The name a Python attribute has in Kubernetes: image_gc_low_threshold -> imageGCLowThreshold."""
    first, *rest = attribute.split("_")
    return first + "".join(_IRREGULAR.get(p) or (p.upper() if p in _INITIALISMS else p.title()) for p in rest)


class Section(msgspec.Struct, frozen=True, kw_only=True, rename=kubernetes_name):
    """Part of a configuration document: every field is annotated with its `Setting`."""


def rows(section: type[Section], prefix: str = "", attributes: tuple[str, ...] = ()) -> Iterator[Row]:
    """The table of a configuration document, sections inside it included, in the order of declaration."""
    for field in msgspec.structs.fields(section):
        name = prefix + field.encode_name
        setting, inner = setting_of(field.type), plain_type(field.type)
        if isinstance(inner, type) and issubclass(inner, Section):
            yield from rows(inner, f"{name}.", (*attributes, field.name))
        else:
            yield Row(name, (*attributes, field.name), type_name(field.type), default_of(field), setting)


def setting_of(annotated: Any) -> Setting:
    """The row's facts inside a field's type; every field of a Section has them."""
    return next(extra for extra in annotated.__metadata__ if isinstance(extra, Setting))


def default_of(field: msgspec.structs.FieldInfo) -> object:
    """A field's default value, freshly made."""
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def plain_type(annotated: Any) -> Any:
    """The type without annotations and without `| None`."""
    if get_origin(annotated) is Annotated:
        return plain_type(get_args(annotated)[0])
    if _optional(annotated):
        return plain_type(next(argument for argument in get_args(annotated) if argument is not type(None)))
    return annotated


def is_duration(annotated: Any) -> bool:
    """Whether a field's type, below annotations and `| None`, is `Duration`."""
    if get_origin(annotated) is Annotated:
        return DURATION in annotated.__metadata__ or is_duration(get_args(annotated)[0])
    return _optional(annotated) and any(is_duration(argument) for argument in get_args(annotated))


def type_name(annotated: Any) -> str:
    """The type in the words of a YAML author."""
    if is_duration(annotated):
        return "duration"
    plain = plain_type(annotated)
    names = {bool: "boolean", int: "integer", float: "number", str: "string", Quantity: "quantity"}
    if get_origin(plain) is tuple:
        return f"list of {type_name(get_args(plain)[0])}s"
    if get_origin(plain) is dict:
        return f"map of {type_name(get_args(plain)[1])}s"
    return names.get(plain, "object")


def _optional(annotated: Any) -> bool:
    return type(None) in get_args(annotated)


# ---- checks


def not_negative(flag: str) -> Check:
    """The number must be 0 or more."""

    def check(name: str, value: int) -> str | None:
        return f"{name} ({flag}) {value} must not be a negative number" if value < 0 else None

    return check


def between(low: int, high: int, flag: str) -> Check:
    """The number must lie between the two, inclusive."""

    def check(name: str, value: int) -> str | None:
        if low <= value <= high:
            return None
        return f"{name} ({flag}) {value} must be between {low} and {high}, inclusive"

    return check


def at_least(low: int, words: str) -> Check:
    """The number must be `low` or more; `words` end the sentence."""
    return lambda name, value: f"{name} {words.format(value=value)}" if value < low else None


def port_number(flag: str, *, lowest: int = 1, or_zero: bool = False) -> Check:
    """The number must be a port; `or_zero` lets 0 pass without a word."""

    def check(name: str, value: int) -> str | None:
        if lowest <= value <= 65535 or (or_zero and value == 0):
            return None
        return f"{name} ({flag}) {value} must be between {lowest} and 65535, inclusive"

    return check


def option(flag: str, *choices: str) -> Check:
    """The text must be one of the choices ("Valid options are ...")."""

    def check(name: str, value: str) -> str | None:
        if value in choices:
            return None
        known = ", ".join(map(quoted, choices[:-1])) + f" or {quoted(choices[-1])}"
        return (
            f"option {quoted(value)} specified for {name}{flag and f' ({flag})'}. Valid options are {known}"
        )

    return check


def quantity(name: str, value: str) -> str | None:
    """The text must be a positive Kubernetes quantity."""
    try:
        return None if Quantity.parse(value).sign > 0 else f"{name} {quoted(value)} must be greater than 0"
    except QuantityError as error:
        return f"{name} {quoted(value)}: {error}"


def absolute_path(name: str, value: str) -> str | None:
    """The text must be empty or an absolute path without "." or ".." steps."""
    if not value or (value.startswith("/") and posixpath.normpath(value) == (value.rstrip("/") or "/")):
        return None
    return f"{name} {quoted(value)} must be an absolute path without '.' or '..' elements"


def duration_between(low: str, high: str, words: str) -> Check:
    """The duration must lie between the two, inclusive; `words` end the sentence."""
    bottom, top = parse_nanoseconds(low), parse_nanoseconds(high)

    def check(name: str, value: str) -> str | None:
        if value is None or bottom <= parse_nanoseconds(value) <= top:
            return None
        return f"{name} {words.format(value=value)}"

    return check


def ip_address(name: str, value: str) -> str | None:
    """The text must be an IPv4 or IPv6 address."""
    import ipaddress

    try:
        ipaddress.ip_address(value)
    except ValueError:
        return f"{name} {quoted(value)} must be an IP address, such as 127.0.0.1 or ::"
    return None


def cpu_list(name: str, value: str) -> str | None:
    """The text must be empty or a Linux CPU list such as "0-3,8"."""
    try:
        cpu_numbers(value)
    except ValueError as error:
        return f"unable to parse {name} (--reserved-cpus) {value}, error: {error}"
    return None


def cpu_numbers(text: str) -> frozenset[int]:
    """The CPUs in a Linux CPU list; raises ValueError. (`nodeagent.hardware` stands above this room.)"""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
        if match is None:
            raise ValueError(f"{quoted(part)} is neither a CPU nor a range of CPUs")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"invalid range {quoted(part)} ({first} > {last})")
        numbers.update(range(first, last + 1))
    return frozenset(numbers)


def quoted(text: str) -> str:
    """The text as Go's %q prints it."""
    return msgspec.json.encode(text).decode()


def normal_duration(text: str) -> str:
    """The duration in Go's own spelling. Raises DurationError."""
    return format_nanoseconds(parse_nanoseconds(text))
