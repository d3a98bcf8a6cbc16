"""The bounds of a LimitRange, each compared with what an object asks for, in the API server's words."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from nodeagent.admission.limit_range_validation import PERSISTENT_VOLUME_CLAIM, quotient_text
from nodeagent.api.policy import LimitRangeItem
from nodeagent.api.quantity import NANOS_PER_UNIT, ZERO, Quantity, ResourceList

# Beyond it whole units are compared: in the original, thousandths of more do not fit 64 bits.
LARGEST_COMPARED_IN_MILLI = (2**63 - 1) // 1000

Amount = Quantity | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One bound, what was held to it, and the complaint if it was crossed."""

    limit_range: str
    of: str
    rule: str
    resource: str
    bound: Quantity
    request: Amount
    limit: Amount
    complaint: str = ""

    def __str__(self) -> str:
        verdict = self.complaint or "kept"
        return (
            f"LimitRange {self.limit_range}: {self.rule} {self.resource} {self.bound} for {self.of}, "
            f"which requests {_shown(self.request)} and is limited to {_shown(self.limit)}: {verdict}"
        )


def compare(
    limit_range: str, item: LimitRangeItem, of: str, requests: ResourceList, limits: ResourceList
) -> Iterator[Comparison]:
    """Hold the amounts of one object, or of one container, to every bound of `item`."""
    bounds = {"min": item.min, "max": item.max, "maxLimitRequestRatio": item.max_limit_request_ratio}
    for rule, fault in _rules(item.type).items():
        for resource, bound in bounds[rule].items():
            request, limit = requests.get(resource), limits.get(resource)
            complaint = fault(bound, request, limit)
            if complaint:
                complaint = f"{_SUBJECTS[rule].format(resource)} per {item.type} is {bound}{complaint}"
            yield Comparison(limit_range, of, rule, resource, bound, request, limit, complaint)


_SUBJECTS = {
    "min": "minimum {} usage",
    "max": "maximum {} usage",
    "maxLimitRequestRatio": "{} max limit to request ratio",
}


def _below_minimum(bound: Quantity, request: Amount, limit: Amount) -> str:
    if request is None:
        return ".  No request is specified"
    asked, limited, least = _in_common_units(request, limit, bound)
    if asked < least:
        return f", but request is {request}"
    return f", but limit is {limit}" if limit is not None and limited < least else ""


def _above_maximum(bound: Quantity, request: Amount, limit: Amount) -> str:
    if limit is None:
        return ".  No limit is specified"
    asked, limited, most = _in_common_units(request, limit, bound)
    if limited > most:
        return f", but limit is {limit}"
    return f", but request is {request}" if asked > most else ""


def _above_maximum_request(bound: Quantity, request: Amount, limit: Amount) -> str:
    if request is None:
        return ".  No request is specified"
    asked, _, most = _in_common_units(request, limit, bound)
    return f", but request is {request}" if asked > most else ""


def _above_ratio(bound: Quantity, request: Amount, limit: Amount) -> str:
    asked, limited, _ = _in_common_units(request, limit, bound)
    if asked == 0:
        return ", but no request is specified or request is 0"
    if limited == 0:
        return ", but no limit is specified or limit is 0"
    exceeds = Fraction(limited, asked) > Fraction(bound.nanos, NANOS_PER_UNIT)
    return f", but provided ratio is {quotient_text(limited, asked)}" if exceeds else ""


_RULES: Mapping[str, Callable[[Quantity, Amount, Amount], str]] = {
    "min": _below_minimum,
    "max": _above_maximum,
    "maxLimitRequestRatio": _above_ratio,
}
# A claim has no limit that counts.
_CLAIM_RULES = {"min": _below_minimum, "max": _above_maximum_request}


def _rules(type: str) -> Mapping[str, Callable[[Quantity, Amount, Amount], str]]:
    return _CLAIM_RULES if type == PERSISTENT_VOLUME_CLAIM else _RULES


def _in_common_units(*amounts: Amount) -> list[int]:
    """Return amounts in one unit, absent ones as zero."""
    known = [amount or ZERO for amount in amounts]
    if all(amount.nanos <= LARGEST_COMPARED_IN_MILLI * NANOS_PER_UNIT for amount in known):
        return [amount.milli_value() for amount in known]
    return [amount.value() for amount in known]


def _shown(amount: Amount) -> str:
    return "nothing" if amount is None else str(amount)
