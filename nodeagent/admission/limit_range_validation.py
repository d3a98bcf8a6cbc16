"""LimitRange as an object: defaults within an item, and validation (core/v1)."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice

from msgspec.structs import replace

from nodeagent.api import names
from nodeagent.api.errors import FieldError, duplicate, forbidden, invalid, required
from nodeagent.api.policy import LimitRange, LimitRangeItem
from nodeagent.api.quantity import NANOS_PER_UNIT, Quantity, ResourceList
from nodeagent.api.resource_names import (
    STORAGE,
    allows_overcommit,
    container_resource_name_errors,
    resource_name_errors,
)
from nodeagent.api.validation import MOST_ERRORS, metadata_errors
from nodeagent.api.validation.checks import each

CONTAINER = "Container"
POD = "Pod"
PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
TYPES = (POD, CONTAINER, PERSISTENT_VOLUME_CLAIM)

ONE = Quantity.of(1)


def default_limit_range(limit_range: LimitRange) -> LimitRange:
    """Return the LimitRange with what the API server fills in: a `max` alone is the default limit too."""
    limits = tuple(map(_default_item, limit_range.spec.limits))
    return replace(limit_range, spec=replace(limit_range.spec, limits=limits))


def validate_limit_range(limit_range: LimitRange) -> tuple[FieldError, ...]:
    """Return what is wrong with a defaulted LimitRange: everything, up to a bound."""
    return tuple(islice(_errors(limit_range), MOST_ERRORS))


def _default_item(item: LimitRangeItem) -> LimitRangeItem:
    default, default_request = item.default, item.default_request
    if item.type == CONTAINER:
        default = {**item.max, **default}
        default_request = {**item.min, **default, **default_request}
    return replace(
        item,
        default=_rounded(default),
        default_request=_rounded(default_request),
        max=_rounded(item.max),
        min=_rounded(item.min),
        max_limit_request_ratio=_rounded(item.max_limit_request_ratio),
    )


def _rounded(amounts: ResourceList) -> dict[str, Quantity]:
    return {name: amount.round_up_milli() for name, amount in amounts.items()}


def _errors(limit_range: LimitRange) -> Iterator[FieldError]:
    yield from metadata_errors(limit_range.metadata)
    seen: set[str] = set()
    for index, item in enumerate(limit_range.spec.limits):
        path = f"spec.limits[{index}]"
        yield from _type_errors(item.type, f"{path}.type")
        if item.type in seen:
            yield duplicate(f"{path}.type", item.type)
        seen.add(item.type)
        yield from _item_errors(item, path)


def _type_errors(type: str, path: str) -> Iterator[FieldError]:
    faults = names.qualified_name(type)
    yield from each(faults, path, type)
    if not faults and "/" not in type and type not in TYPES:
        yield invalid(path, type, "must be a standard limit type or fully qualified")


def _item_errors(item: LimitRangeItem, path: str) -> Iterator[FieldError]:
    fields: dict[str, Mapping[str, Quantity]] = {
        "max": item.max,
        "min": item.min,
        "default": item.default,
        "defaultRequest": item.default_request,
        "maxLimitRequestRatio": item.max_limit_request_ratio,
    }
    if item.type == POD:
        for field in ("default", "defaultRequest"):
            if fields[field]:
                yield forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            fields[field] = {}
    if item.type == PERSISTENT_VOLUME_CLAIM and STORAGE not in item.min and STORAGE not in item.max:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", detail)
    check_name = container_resource_name_errors if item.type in (POD, CONTAINER) else resource_name_errors
    for field, amounts in fields.items():
        for name in amounts:
            yield from check_name(name, f"{path}.{field}[{name}]")
    for name in {name: None for amounts in fields.values() for name in amounts}:
        yield from _order_errors(name, {field: amounts.get(name) for field, amounts in fields.items()}, path)


def _order_errors(name: str, amounts: Mapping[str, Quantity | None], path: str) -> Iterator[FieldError]:
    """Check that min <= defaultRequest <= default <= max, and the ratio, for one resource."""
    least, most = amounts["min"], amounts["max"]
    default, request = amounts["default"], amounts["defaultRequest"]
    # field of the error, lower amount and its name, upper amount and its name, and the value that is printed
    rules = (
        ("min", least, "min value", most, "max value", least),
        ("defaultRequest", least, "min value", request, "default request value", request),
        ("defaultRequest", request, "default request value", most, "max value", request),
        ("defaultRequest", request, "default request value", default, "default limit value", request),
        ("default", least, "min value", default, "default value", least),
        ("default", default, "default value", most, "max value", most),
    )
    for field, lower, lower_name, upper, upper_name, printed in rules:
        if lower is not None and upper is not None and lower > upper:
            detail = f"{lower_name} {lower} is greater than {upper_name} {upper}"
            yield invalid(f"{path}.{field}[{name}]", str(printed), detail)
    yield from _ratio_errors(amounts, f"{path}.maxLimitRequestRatio[{name}]")
    if default is not None and request is not None and not allows_overcommit(name) and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(f"{path}.defaultRequest[{name}]", str(request), detail)


def _ratio_errors(amounts: Mapping[str, Quantity | None], path: str) -> Iterator[FieldError]:
    ratio, least, most = amounts["maxLimitRequestRatio"], amounts["min"], amounts["max"]
    if ratio is None:
        return
    if ratio < ONE:
        yield invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if least is None or most is None or least.is_zero:
        return
    if Fraction(ratio.nanos, NANOS_PER_UNIT) > Fraction(most.nanos, least.nanos):
        highest = quotient_text(most.nanos, least.nanos)
        yield invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {highest}")


def quotient_text(dividend: int, divisor: int) -> str:
    """Return a quotient with six decimals, as the API server prints ratios."""
    try:
        return f"{dividend / divisor:f}"
    except OverflowError:
        return str(dividend // divisor)
