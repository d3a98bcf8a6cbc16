"""Plain values to objects: strictly, and with every fault named by its field path."""

import re
from functools import cache
from typing import Any, TypeVar

import msgspec
import msgspec.inspect

from nodeagent.api.errors import ErrorKind, FieldError, invalid
from nodeagent.api.quantity import Quantity, QuantityError

T = TypeVar("T", bound=msgspec.Struct)

MOST_ERRORS = 50
LONGEST_NAME_IN_PATH = 100
LONGEST_NAME_TO_GUESS = 64


class InvalidObject(ValueError):
    """A value that is not an object of the type asked for; `errors` holds everything that is wrong."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


def decode_hook(type: type[Any], value: object) -> Any:
    """Make a Quantity of the text or the number that a document has; msgspec calls it."""
    if type is Quantity:
        return _quantity(value)
    raise NotImplementedError(f"{type} is no type of the API")


def encode_hook(value: object) -> Any:
    """Return a Quantity's spelling; msgspec calls it."""
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"{type(value)} is no type of the API")


def from_builtins(value: object, type: type[T], path: str = "") -> T:
    """Return `value`, made of plain dicts, lists and scalars, as an object of `type`.

    As in Go, a null leaves a field at its default. Raises InvalidObject; `path` begins the paths in it.
    """
    try:
        return msgspec.convert(value, type, dec_hook=decode_hook)
    except msgspec.ValidationError:
        pass
    # The quick way says only what it met first, and takes neither nulls nor absent fields of a status.
    examination = _Examination()
    accepted = examination.value(value, _described(type), path)
    if examination.errors:
        raise InvalidObject(tuple(examination.errors))
    try:
        return msgspec.convert(accepted, type, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise InvalidObject((FieldError(path, ErrorKind.INVALID, accepted, str(error)),)) from error


def _quantity(value: object) -> Quantity:
    match value:
        case str():
            return Quantity.parse(value)
        case bool():
            pass
        case int():
            return Quantity.parse(str(value))
        case float():
            whole = value.is_integer() and abs(value) < 1e21
            return Quantity.parse(str(int(value)) if whole else repr(value))
    raise QuantityError(f"expected a quantity such as 500m or 1Gi, got {_named(value)}")


@cache
def _described(type: type[msgspec.Struct]) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(type)


_ZEROS: tuple[tuple[type[msgspec.inspect.Type], object], ...] = (
    (msgspec.inspect.StrType, ""),
    (msgspec.inspect.IntType, 0),
    (msgspec.inspect.BoolType, False),
    (msgspec.inspect.CustomType, "0"),
    (msgspec.inspect.StructType, {}),
)


def _zero(type: msgspec.inspect.Type) -> object:
    """Return what Go has where nothing is written."""
    return next((zero for kind, zero in _ZEROS if isinstance(type, kind)), None)


class _Examination:
    """Walks a value along its type, collecting errors, and returns it with Go's leniencies applied."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def value(self, value: object, type: msgspec.inspect.Type, path: str) -> object:
        match type:
            case msgspec.inspect.UnionType():
                return self._union(value, type, path)
            case msgspec.inspect.StructType():
                return self._struct(value, type, path)
            case msgspec.inspect.DictType():
                return self._dict(value, type, path)
            case msgspec.inspect.VarTupleType():
                return self._list(value, type, path)
            case msgspec.inspect.IntType():
                return self._integer(value, type, path)
            case msgspec.inspect.StrType():
                return self._text(value, type, path)
            case msgspec.inspect.BoolType():
                return value if isinstance(value, bool) else self._wrong(value, "true or false", path)
            case msgspec.inspect.CustomType(cls) if cls is Quantity:
                return self._amount(value, path)
        return value

    def _wrong(self, value: object, expected: str, path: str, advice: str = "") -> object:
        return self._fault(invalid(path, value, f"expected {expected}, got {_named(value)}{advice}"))

    def _fault(self, error: FieldError) -> object:
        """Note an error and stand in for the value that there is not."""
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(error)
        return None

    def _union(self, value: object, union: msgspec.inspect.UnionType, path: str) -> object:
        if value is None:
            return None
        types = [type for type in union.types if not isinstance(type, msgspec.inspect.NoneType)]
        if len(types) == 1:
            return self.value(value, types[0], path)
        if isinstance(value, str):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self.value(value, types[0], path)
        return self._wrong(value, "an integer or a string", path)

    def _struct(self, value: object, type: msgspec.inspect.StructType, path: str) -> object:
        if not isinstance(value, dict):
            return self._wrong(value, "a mapping", path)
        fields = {field.encode_name: field for field in type.fields}
        accepted = {
            name: _zero(field.type)
            for name, field in fields.items()
            if field.required and value.get(name) is None
        }
        for name, part in value.items():
            if len(self.errors) == MOST_ERRORS:
                break
            known = fields.get(name)
            if known is None:
                hint = _hint(name, fields)
                self._fault(FieldError(_child(path, name), ErrorKind.UNKNOWN_FIELD, None, hint))
            elif part is not None:
                accepted[name] = self.value(part, known.type, _child(path, name))
        return accepted

    def _dict(self, value: object, type: msgspec.inspect.DictType, path: str) -> object:
        if not isinstance(value, dict):
            return self._wrong(value, "a mapping", path)
        zero = _zero(type.value_type)
        return {
            key: zero if part is None else self.value(part, type.value_type, f"{path}[{_short(key)}]")
            for key, part in value.items()
        }

    def _list(self, value: object, type: msgspec.inspect.VarTupleType, path: str) -> object:
        if not isinstance(value, list):
            return self._wrong(value, "a list", path)
        return [self.value(part, type.item_type, f"{path}[{index}]") for index, part in enumerate(value)]

    def _integer(self, value: object, type: msgspec.inspect.IntType, path: str) -> object:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            return self._wrong(value, "an integer", path)
        low, high = type.ge, type.le
        if low is not None and high is not None and not low <= value <= high:
            return self._fault(invalid(path, value, f"must be between {low} and {high}, inclusive"))
        return value

    def _text(self, value: object, type: msgspec.inspect.StrType, path: str) -> object:
        if not isinstance(value, str):
            is_scalar = isinstance(value, (bool, int, float))
            return self._wrong(value, "a string", path, ": write it in quotes" if is_scalar else "")
        # Time stamps are the only strings whose type has a pattern.
        if type.pattern is not None and not re.search(type.pattern, value):
            detail = "expected a time as in RFC 3339, for example 2025-01-31T12:00:00Z"
            return self._fault(invalid(path, value, detail))
        return value

    def _amount(self, value: object, path: str) -> object:
        try:
            _quantity(value)
        except QuantityError as error:
            return self._fault(invalid(path, value, str(error)))
        return value


def _named(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case dict():
            return "a mapping"
    return "a list"


def _child(path: str, name: str) -> str:
    return f"{path}.{_short(name)}" if path else _short(name)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME_IN_PATH else f"{name[:LONGEST_NAME_IN_PATH]}..."


def _hint(name: str, known: dict[str, Any]) -> str:
    """Return which name was probably meant."""
    by_letters = {field.lower(): field for field in known}
    guess = by_letters.get(name.lower())
    if guess is None and len(name) <= LONGEST_NAME_TO_GUESS:
        from difflib import get_close_matches

        guess = next(iter(get_close_matches(name, known, n=1)), None)
    return f'did you mean "{guess}"?' if guess is not None else f"known here are {_listed(known)}"


def _listed(names: dict[str, Any]) -> str:
    shown = sorted(names)[:12]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "")
