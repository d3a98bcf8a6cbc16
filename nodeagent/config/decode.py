"""Turns a YAML document into a `Section`, strictly: everything that is wrong is found, each with its path."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import msgspec

from nodeagent.api.duration import DurationError, format_nanoseconds, parse_nanoseconds
from nodeagent.api.errors import ErrorKind, FieldError, invalid
from nodeagent.api.quantity import Quantity, QuantityError
from nodeagent.config.setting import (
    NANOSECONDS,
    Section,
    default_of,
    is_duration,
    plain_type,
    rows,
    setting_of,
    type_name,
)

S = TypeVar("S", bound=Section)

TYPE_META: Final = frozenset(("apiVersion", "kind"))
_WRONG: Final = object()


@dataclass(slots=True)
class Decoded:
    """What decoding found beside the value: faults, the fields that are set, those that change a default."""

    errors: list[FieldError] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)


def decode_section(section: type[S], document: Mapping[Any, Any], found: Decoded) -> S:
    """The document as a `section`, defaults applied; faults are added to `found`."""
    names = {row.name for row in rows(section)}
    body = {key: value for key, value in document.items() if key not in TYPE_META}
    return _section(section, body, "", found, names)


def _section(section: type[S], raw: Mapping[Any, Any], path: str, found: Decoded, names: set[str]) -> S:
    fields = {f.encode_name: f for f in msgspec.structs.fields(section)}
    for key in raw:
        if key not in fields:
            found.errors.append(_unknown(f"{path}{key}", str(key), fields, names))
    values = {}
    for name, info in fields.items():
        if raw.get(name) is None:
            continue
        value = _value(info.type, raw[name], path + name, found, names)
        if value is _WRONG or (_is_zero(value) and not setting_of(info.type).zero_counts):
            continue
        values[info.name] = value
        found.given.add(path + name)
        if value != default_of(info):
            found.changed.add(path + name)
    return section(**values)


def _is_zero(value: object) -> bool:
    return not isinstance(value, Section | Quantity) and (not value or value == "0s")


def _value(wanted: Any, raw: object, path: str, found: Decoded, names: set[str]) -> Any:
    """One value of a wanted type, or `_WRONG` after saying why."""
    plain = plain_type(wanted)
    try:
        if isinstance(plain, type) and issubclass(plain, Section):
            return _section(plain, _expect(raw, Mapping, "an object"), f"{path}.", found, names)
        if get_origin(plain) is tuple:
            return _items(
                get_args(plain)[0], _expect(raw, list, f"a {type_name(wanted)}"), path, found, names
            )
        if get_origin(plain) is dict:
            return _entries(
                get_args(plain)[1], _expect(raw, Mapping, f"a {type_name(wanted)}"), path, found, names
            )
        return _scalar(wanted, plain, raw)
    except (_Mismatch, DurationError, QuantityError) as error:
        found.errors.append(invalid(path, raw, str(error)))
        return _WRONG


def _items(wanted: Any, raw: list[object], path: str, found: Decoded, names: set[str]) -> tuple[Any, ...]:
    values = (_value(wanted, item, f"{path}[{index}]", found, names) for index, item in enumerate(raw))
    return tuple(value for value in values if value is not _WRONG)


def _entries(
    wanted: Any, raw: Mapping[Any, object], path: str, found: Decoded, names: set[str]
) -> dict[str, Any]:
    values = {}
    for key, item in raw.items():
        if not isinstance(key, str):
            found.errors.append(invalid(path, key, "expected a string as key; put it in quotes"))
            continue
        value = _value(wanted, item, f"{path}[{key}]", found, names)
        if value is not _WRONG:
            values[key] = value
    return values


def _scalar(wanted: Any, plain: Any, raw: object) -> Any:
    if is_duration(wanted):
        return _duration(wanted, raw)
    if plain is Quantity and type(raw) in (str, int, float):
        return Quantity.parse(str(raw))
    if plain is float and type(raw) is int:
        return float(raw)
    if plain is str and type(raw) in (bool, int, float):
        raise _Mismatch(f'expected a string; write "{str(raw).lower()}" in quotes')
    if type(raw) is not plain:
        raise _Mismatch(f"expected {_article(type_name(wanted))}")
    for limits in _limits(wanted):
        if not limits.ge <= raw <= limits.le:
            raise _Mismatch(f"expected an integer from {limits.ge} to {limits.le}")
    return raw


def _duration(wanted: Any, raw: object) -> str:
    if type(raw) is int and NANOSECONDS in wanted.__metadata__:
        return format_nanoseconds(raw)
    if not isinstance(raw, str):
        raise _Mismatch('expected a duration, such as "30s" or "1m30s"')
    return format_nanoseconds(parse_nanoseconds(raw))


def _expect(raw: object, kind: type, words: str) -> Any:
    if not isinstance(raw, kind):
        raise _Mismatch(f"expected {words}")
    return raw


def _limits(wanted: Any) -> Iterator[Any]:
    """The bounds among a type's annotations, `X | None` looked through."""
    if get_origin(wanted) is Annotated:
        yield from (extra for extra in wanted.__metadata__ if isinstance(extra, msgspec.Meta))
        wanted = get_args(wanted)[0]
    if type(None) in get_args(wanted):
        for argument in get_args(wanted):
            yield from _limits(argument)


def _unknown(path: str, key: str, fields: Mapping[str, object], names: set[str]) -> FieldError:
    by_lower = {name.lower(): name for name in fields}
    near = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=0.6)
    elsewhere = sorted(name for name in names if name.lower().rpartition(".")[2] == key.lower())
    suggestion = elsewhere[0] if elsewhere and not near else by_lower[near[0]] if near else ""
    return FieldError(
        path, ErrorKind.UNKNOWN_FIELD, None, f'did you mean "{suggestion}"?' if suggestion else ""
    )


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


class _Mismatch(ValueError):
    """The value has the wrong type; the message says which was expected."""
