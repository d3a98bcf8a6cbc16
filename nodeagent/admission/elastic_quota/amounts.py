"""Arithmetic of amounts by resource. A key that is missing is no limit; one that is zero is."""

from collections.abc import Collection, Mapping

from nodeagent.api.quantity import BINARY_SI, Quantity
from nodeagent.api.resources import CPU, MEMORY

Amounts = dict[str, Quantity]


def plus(a: Mapping[str, Quantity], b: Mapping[str, Quantity]) -> Amounts:
    """Return the sum; keys of both."""
    total = dict(a)
    for name, more in b.items():
        known = total.get(name)
        total[name] = more if known is None else known + more
    return total


def minus(a: Mapping[str, Quantity], b: Mapping[str, Quantity]) -> Amounts:
    """Return the difference; keys of both."""
    left = dict(a)
    for name, less in b.items():
        known = left.get(name)
        left[name] = -less if known is None else known - less
    return left


def masked(amounts: Mapping[str, Quantity], keys: Collection[str]) -> Amounts:
    """Keep the listed keys."""
    return {name: quantity for name, quantity in amounts.items() if name in keys}


def capped(amounts: Mapping[str, Quantity], bound: Mapping[str, Quantity]) -> Amounts:
    """Return the lesser of each amount and its bound, where it has one."""
    return {
        name: bound[name] if name in bound and bound[name] < quantity else quantity
        for name, quantity in amounts.items()
    }


def raised(amounts: Mapping[str, Quantity], floor: Mapping[str, Quantity]) -> Amounts:
    """Return the greater of each amount and its floor; keys of both."""
    result = dict(amounts)
    for name, least in floor.items():
        if name not in result or result[name] < least:
            result[name] = least
    return result


def exceeded(amounts: Mapping[str, Quantity], limit: Mapping[str, Quantity]) -> tuple[str, ...]:
    """Return the keys whose amount is above the limit, in order."""
    return tuple(
        sorted(name for name, quantity in amounts.items() if name in limit and quantity > limit[name])
    )


def is_nothing(amounts: Mapping[str, Quantity]) -> bool:
    """Tell whether every amount is zero."""
    return not any(amounts.values())


def same(a: Mapping[str, Quantity], b: Mapping[str, Quantity]) -> bool:
    """Tell whether two are equal when zeros are left out."""
    return {k: v for k, v in a.items() if v} == {k: v for k, v in b.items() if v}


def units(name: str, quantity: Quantity) -> int:
    """Return what calculations go by: thousandths of a CPU, whole units of all else, rounded up."""
    return quantity.milli_value() if name == CPU else quantity.value()


def in_units(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    """Return the same as integers."""
    return {name: units(name, quantity) for name, quantity in amounts.items()}


def of_units(name: str, number: int) -> Quantity:
    """Return a result of a calculation as it is written."""
    if name == CPU:
        return Quantity.of_milli(number)
    return Quantity.of(number, BINARY_SI) if name == MEMORY and number else Quantity.of(number)


def text(amounts: Mapping[str, Quantity]) -> str:
    """Write amounts as refusals do: `cpu:2,memory:1Gi`."""
    return ",".join(f"{name}:{amounts[name].canonical()}" for name in sorted(amounts)) or "<empty>"
