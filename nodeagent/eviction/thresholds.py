"""Eviction thresholds: read from a KubeletConfiguration, as kubelet reads them."""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from nodeagent.api.duration import DurationError, parse_duration
from nodeagent.api.quantity import BINARY_SI, NANOS_PER_UNIT, Quantity, QuantityError
from nodeagent.eviction.signals import OWN_SIGNALS, Filesystem, Signal

Statements = Mapping[str, str] | None

# What Go's ParseFloat reads: no spaces and no digits of other scripts, but hexadecimal with an exponent.
_DIGITS = "[0-9](_?[0-9])*"
_DECIMAL = re.compile(rf"[+-]?(?=\.?[0-9])({_DIGITS})?(\.({_DIGITS})?)?([eE][+-]?{_DIGITS})?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?=\.?[0-9a-fA-F])[0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


_KUBELETS_SIGNALS = frozenset(signal.value for signal in Signal if signal not in OWN_SIGNALS)


class ThresholdError(ValueError):
    """A setting that is no threshold: `field` is where, `message` is what kubelet would say."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


@dataclass(frozen=True, slots=True)
class Amount:
    """How much: a quantity, or a fraction of what there is."""

    quantity: Quantity | None = None
    fraction: float = 0.0

    def of(self, capacity: int) -> Quantity:
        """Return the amount where there is `capacity`."""
        if self.quantity is not None:
            return self.quantity
        return Quantity.of(int(capacity * self.fraction), BINARY_SI)

    def nanos_of(self, capacity: int) -> int:
        """Return the amount in billionths: exact, and cheap to compare."""
        if self.quantity is not None:
            return self.quantity.nanos
        return int(capacity * self.fraction) * NANOS_PER_UNIT


@dataclass(frozen=True, slots=True)
class Threshold:
    """Acts when less than `value` is left of a signal for `grace_period_seconds`."""

    signal: Signal
    value: Amount
    grace_period_seconds: float = 0.0
    minimum_reclaim: Amount | None = None

    @property
    def is_hard(self) -> bool:
        """A threshold without grace: pods die at once."""
        return self.grace_period_seconds == 0

    def __str__(self) -> str:
        return f"{'hard' if self.is_hard else 'soft'} {self.signal}"


def parse_thresholds(
    *,
    enforce_node_allocatable: Sequence[str] | None = (),
    eviction_hard: Statements = None,
    eviction_soft: Statements = None,
    eviction_soft_grace_period: Statements = None,
    eviction_minimum_reclaim: Statements = None,
) -> tuple[Threshold, ...]:
    """Read the settings of a KubeletConfiguration; raises ThresholdError."""
    hard = _parse_statements("evictionHard", eviction_hard)
    soft = _parse_statements("evictionSoft", eviction_soft)
    graces = _parse_grace_periods(eviction_soft_grace_period)
    reclaims = _parse_minimum_reclaims(eviction_minimum_reclaim)
    for threshold in soft:
        if threshold.signal not in graces:
            raise ThresholdError(
                "evictionSoftGracePeriod",
                f"grace period must be specified for the soft eviction threshold {threshold.signal}",
            )
    given = [*hard, *(replace(each, grace_period_seconds=graces[each.signal]) for each in soft)]
    given = [replace(each, minimum_reclaim=reclaims.get(each.signal)) for each in given]
    if "pods" in (enforce_node_allocatable or ()):
        given += [
            replace(each, signal=Signal.ALLOCATABLE_MEMORY_AVAILABLE)
            for each in given
            if each.signal is Signal.MEMORY_AVAILABLE and each.is_hard
        ]
    return tuple(given)


def with_containerfs(
    thresholds: Iterable[Threshold], *, dedicated_imagefs: bool, split_containerfs: bool
) -> tuple[Threshold, ...]:
    """Give containerfs the thresholds of the filesystem that it is really on, in place of any of its own."""
    source = Filesystem.IMAGEFS if dedicated_imagefs and not split_containerfs else Filesystem.NODEFS
    derived = {
        source.available: Signal.CONTAINERFS_AVAILABLE,
        source.inodes_free: Signal.CONTAINERFS_INODES_FREE,
    }
    kept = [each for each in thresholds if each.signal not in derived.values()]
    return (
        *kept,
        *(replace(each, signal=derived[each.signal]) for each in kept if each.signal in derived),
    )


def has_own_containerfs(thresholds: Iterable[Threshold]) -> bool:
    """Tell whether containerfs was given thresholds, which are ignored: worth a warning."""
    return any(
        each.signal in (Signal.CONTAINERFS_AVAILABLE, Signal.CONTAINERFS_INODES_FREE) for each in thresholds
    )


def _parse_statements(setting: str, statements: Statements) -> list[Threshold]:
    thresholds = []
    for name, text in (statements or {}).items():
        field = f"{setting}[{name}]"
        value = parse_amount(field, _signal(field, name), text)
        if value is not None:
            thresholds.append(Threshold(Signal(name), value))
    return thresholds


def parse_amount(field: str, signal: Signal, text: str) -> Amount | None:
    """Read a threshold's amount, None if it is switched off; raises ThresholdError."""
    if text in ("0%", "100%"):
        return None
    if text.endswith("%"):
        fraction = _parse_percentage(field, text)
        if fraction < 0:
            raise ThresholdError(field, f"eviction percentage threshold {signal} must be >= 0%: {text}")
        if fraction > 1:
            raise ThresholdError(field, f"eviction percentage threshold {signal} must be <= 100%: {text}")
        return Amount(fraction=fraction)
    quantity = _parse_quantity(field, text)
    if quantity.sign <= 0:
        raise ThresholdError(field, f"eviction threshold {signal} must be positive: {quantity}")
    return Amount(quantity)


def _parse_grace_periods(statements: Statements) -> dict[Signal, float]:
    periods = {}
    for name, text in (statements or {}).items():
        field = f"evictionSoftGracePeriod[{name}]"
        signal = _signal(field, name)
        try:
            seconds = parse_duration(text)
        except DurationError as error:
            raise ThresholdError(field, str(error)) from None
        if seconds < 0:
            raise ThresholdError(
                field, f"invalid eviction grace period specified: {text}, must be a positive value"
            )
        periods[signal] = seconds
    return periods


def _parse_minimum_reclaims(statements: Statements) -> dict[Signal, Amount]:
    amounts = {}
    for name, text in (statements or {}).items():
        field = f"evictionMinimumReclaim[{name}]"
        signal = _signal(field, name)
        if text.endswith("%"):
            fraction = _parse_percentage(field, text)
            if fraction <= 0:
                raise ThresholdError(
                    field, f"eviction percentage minimum reclaim {signal} must be positive: {text}"
                )
            amounts[signal] = Amount(fraction=fraction)
            continue
        quantity = _parse_quantity(field, text)
        if quantity.sign < 0:
            raise ThresholdError(field, f"negative eviction minimum reclaim specified for {signal}")
        amounts[signal] = Amount(quantity)
    return amounts


def _signal(field: str, name: str) -> Signal:
    if name not in _KUBELETS_SIGNALS:
        raise ThresholdError(field, f"unsupported eviction signal {name}")
    return Signal(name)


def _parse_quantity(field: str, text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise ThresholdError(field, str(error)) from None


def _parse_percentage(field: str, text: str) -> float:
    """Return the fraction as a float32, the precision in which kubelet keeps it."""
    number = text.rstrip("%")
    quoted = '"' + number.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if number.lower() == "nan":
        raise ThresholdError(field, f"eviction percentage must be a number: {text}")
    if _INFINITE.fullmatch(number):
        return float(number)
    try:
        if _DECIMAL.fullmatch(number):
            return _float32(_float32(float(number)) / 100)
        if _HEXADECIMAL.fullmatch(number):
            return _float32(_float32(float.fromhex(number)) / 100)
    except OverflowError:
        raise ThresholdError(field, f"strconv.ParseFloat: parsing {quoted}: value out of range") from None
    raise ThresholdError(field, f"strconv.ParseFloat: parsing {quoted}: invalid syntax")


def _float32(value: float) -> float:
    if abs(value) == inf:
        raise OverflowError("beyond the range of a float64")
    return float(struct.unpack("f", struct.pack("f", value))[0])
