"""Errors as values: what is wrong, at which field, in the words of the API server."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """The kinds of field errors, as the API server prints them."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    DUPLICATE = "Duplicate value"
    NOT_SUPPORTED = "Unsupported value"
    NOT_FOUND = "Not found"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"
    UNKNOWN_FIELD = "Unknown field"
    UNREADABLE = "Cannot be read"


_WITHOUT_VALUE = {
    ErrorKind.REQUIRED,
    ErrorKind.FORBIDDEN,
    ErrorKind.TOO_LONG,
    ErrorKind.UNKNOWN_FIELD,
    ErrorKind.UNREADABLE,
}
LONGEST_PRINTED_VALUE = 300
_encoder = json.JSONEncoder(ensure_ascii=False, default=str, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault at one field; `str()` prints it as Kubernetes does."""

    path: str
    kind: str
    value: object = None
    detail: str = ""

    def __str__(self) -> str:
        parts = [self.path] if self.path else []
        parts.append(self.kind)
        if self.kind not in _WITHOUT_VALUE:
            parts.append(_printed(self.value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)


@dataclass(frozen=True, slots=True)
class ObjectError:
    """An object that was refused: where it came from, what it is, and everything that is wrong with it."""

    source: str
    index: int
    kind: str = ""
    name: str = ""
    errors: tuple[FieldError, ...] = ()

    def __str__(self) -> str:
        where = [self.source, f"document {self.index + 1}"]
        if self.kind or self.name:
            where.append(f"{self.kind or 'object'} {self.name!r}" if self.name else self.kind)
        return "\n".join(": ".join((*where, str(error))) for error in self.errors)


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, ErrorKind.REQUIRED, "", detail)


def invalid(path: str, value: object, detail: str) -> FieldError:
    return FieldError(path, ErrorKind.INVALID, value, detail)


def duplicate(path: str, value: object) -> FieldError:
    return FieldError(path, ErrorKind.DUPLICATE, value)


def not_supported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    """Return the error of a value outside of a closed list, which it names in the order given."""
    values = ", ".join(json.dumps(choice) for choice in supported)
    return FieldError(path, ErrorKind.NOT_SUPPORTED, value, f"supported values: {values}")


def not_found(path: str, value: object) -> FieldError:
    return FieldError(path, ErrorKind.NOT_FOUND, value)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, ErrorKind.FORBIDDEN, "", detail)


def too_long(path: str, value: object, limit: int) -> FieldError:
    return FieldError(path, ErrorKind.TOO_LONG, value, f"may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldError:
    return FieldError(path, ErrorKind.TOO_MANY, count, f"must have at most {limit} items")


def _printed(value: object) -> str:
    """Return a value as JSON, cut where nobody reads on."""
    text = ""
    for part in _encoder.iterencode(value):
        text += part
        if len(text) > LONGEST_PRINTED_VALUE:
            return f"{text[:LONGEST_PRINTED_VALUE]}..."
    return text
