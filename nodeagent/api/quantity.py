"""Kubernetes resource quantities: exact amounts, kept as an integer of nano-units."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache, total_ordering

NANOS_PER_UNIT = 1_000_000_000
NANOS_PER_MILLI = 1_000_000
LARGEST_BINARY_NANOS = (2**63 - 1) * NANOS_PER_UNIT
# Longer spellings say nothing more; the bounds keep a hostile manifest from costing memory and time.
LONGEST_TEXT = 1024
LARGEST_EXPONENT = 1024

EXPRESSION_ERROR = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX_ERROR = "unable to parse quantity's suffix"

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_STEPS = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BINARY_SUFFIXES = ("", *_BINARY_STEPS)


class Format(StrEnum):
    """The family of suffixes that a quantity is spelled with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


DECIMAL_SI = Format.DECIMAL_SI
BINARY_SI = Format.BINARY_SI
DECIMAL_EXPONENT = Format.DECIMAL_EXPONENT


class QuantityError(ValueError):
    """A text that is no quantity; the message is the API server's."""


@total_ordering
class Quantity:
    """An immutable amount with the spelling that people wrote it in; compared and hashed by amount."""

    __slots__ = ("_format", "_nanos", "_text")

    def __init__(self, nanos: int, format: Format = DECIMAL_SI, text: str | None = None) -> None:
        """Make an amount of `nanos`; `text` is a spelling to keep instead of the canonical one."""
        self._nanos = nanos
        self._format = format
        self._text = text

    @classmethod
    def of(cls, value: int, format: Format = DECIMAL_SI) -> "Quantity":
        """Return the quantity of `value` whole units."""
        return cls(value * NANOS_PER_UNIT, format)

    @classmethod
    def of_milli(cls, milli: int, format: Format = DECIMAL_SI) -> "Quantity":
        """Return the quantity of `milli` thousandths."""
        return cls(milli * NANOS_PER_MILLI, format)

    @staticmethod
    def parse(text: str) -> "Quantity":
        """Read `text` as the API server does; raises QuantityError."""
        return _parse(text)

    @property
    def format(self) -> Format:
        """The family of suffixes that it is spelled with."""
        return self._format

    @property
    def nanos(self) -> int:
        """The exact amount, in billionths."""
        return self._nanos

    @property
    def is_zero(self) -> bool:
        return self._nanos == 0

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self._nanos > 0) - (self._nanos < 0)

    def value(self) -> int:
        """Return whole units, rounded away from zero."""
        return _divide_away_from_zero(self._nanos, NANOS_PER_UNIT)

    def milli_value(self) -> int:
        """Return thousandths, rounded away from zero."""
        return _divide_away_from_zero(self._nanos, NANOS_PER_MILLI)

    def round_up(self, decimals: int = 0) -> "Quantity":
        """Round away from zero to `decimals` (0 to 9) places; the same object if nothing is lost."""
        unit = 10 ** (9 - decimals)
        if self._nanos % unit == 0:
            return self
        return Quantity(_divide_away_from_zero(self._nanos, unit) * unit, self._format)

    def round_up_milli(self) -> "Quantity":
        """Round away from zero to thousandths, as API defaulting does with every resource amount."""
        return self.round_up(3)

    def is_spelled_like(self, other: "Quantity") -> bool:
        """Tell whether both were written alike: 1 and 1000m are equal, but not spelled so."""
        return (self._nanos, self._format, self._text) == (other._nanos, other._format, other._text)

    def canonical(self) -> str:
        """Return the spelling that any arithmetic leads to."""
        if self._format is BINARY_SI:
            return _binary_text(self._nanos)
        return _decimal_text(self._nanos, self._format)

    def __str__(self) -> str:
        return self._text if self._text is not None else self.canonical()

    def __repr__(self) -> str:
        return f"Quantity.parse({str(self)!r})"

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self._nanos + other._nanos, (self if self._nanos else other)._format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self._nanos - other._nanos, (self if self._nanos else other)._format)

    def __neg__(self) -> "Quantity":
        return Quantity(-self._nanos, self._format)

    def __eq__(self, other: object) -> bool:
        return self._nanos == other._nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self._nanos < other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __bool__(self) -> bool:
        """False for zero, as with any number."""
        return self._nanos != 0


ResourceList = Mapping[str, Quantity]
ZERO = Quantity(0)


@lru_cache(maxsize=1024)
def _parse(text: str) -> Quantity:
    if not text or len(text) > LONGEST_TEXT:
        raise QuantityError(EXPRESSION_ERROR)
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise QuantityError(EXPRESSION_ERROR)
    sign, whole, decimals, suffix = shape.groups(default="")
    step = _BINARY_STEPS.get(suffix)
    if step is not None:
        magnitude, format, kept = _binary_amount(whole, decimals, step)
    else:
        exponent = _decimal_exponent(suffix)
        magnitude = _scaled_up(int(whole + decimals or "0"), 9 + exponent - len(decimals))
        format = DECIMAL_EXPONENT if suffix[1:] else DECIMAL_SI
        kept = _keeps_decimal_spelling(whole, decimals, exponent)
    return Quantity(-magnitude if sign == "-" else magnitude, format, text if kept and magnitude else None)


def _decimal_exponent(suffix: str) -> int:
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    if exponent is not None:
        return exponent
    written = _EXPONENT.fullmatch(suffix)
    if written is None or int(written[1]) > LARGEST_EXPONENT:
        raise QuantityError(SUFFIX_ERROR)
    # Whatever is written before it, the amount is then below one nano-unit.
    return max(int(written[1]), -2 * LONGEST_TEXT)


def _binary_amount(whole: str, decimals: str, step: int) -> tuple[int, Format, bool]:
    nanos = _scaled_up(int(whole + decimals or "0") * 1024**step, 9 - len(decimals))
    if 0 < nanos < NANOS_PER_UNIT:
        return nanos, DECIMAL_SI, False
    # The original keeps a spelling that its quick path could read; users see that in what they get back.
    kept = not decimals and int(whole or "0") % 8 != 0 and len(whole.lstrip("0")) + 3 * step <= 14
    return min(nanos, LARGEST_BINARY_NANOS), BINARY_SI, kept


def _keeps_decimal_spelling(whole: str, decimals: str, exponent: int) -> bool:
    digits = (whole.lstrip("0") or "0") + decimals
    scale = exponent - len(decimals)
    return (
        len(digits) <= 18
        and digits[0] != "0"
        and not digits.endswith("000")
        and scale % 3 == 0
        and scale >= -9
    )


def _scaled_up(number: int, power: int) -> int:
    """Return `number` (not negative) times ten to the `power`, rounded up."""
    scale: int = 10 ** abs(power)
    return number * scale if power >= 0 else -(-number // scale)


def _divide_away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number > 0 else number // divisor


def _decimal_text(nanos: int, format: Format) -> str:
    if nanos == 0:
        return "0"
    mantissa, exponent = nanos, -9
    while mantissa % 1000 == 0 and (exponent < 18 or format is DECIMAL_EXPONENT):
        mantissa, exponent = mantissa // 1000, exponent + 3
    if format is DECIMAL_EXPONENT:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIXES[exponent]}"


def _binary_text(nanos: int) -> str:
    mantissa, fraction = divmod(nanos, NANOS_PER_UNIT)
    if fraction or -1024 < mantissa < 1024:
        return _decimal_text(nanos, DECIMAL_SI)
    step = 0
    while mantissa % 1024 == 0 and step < 6:
        mantissa, step = mantissa // 1024, step + 1
    return f"{mantissa}{_BINARY_SUFFIXES[step]}"
