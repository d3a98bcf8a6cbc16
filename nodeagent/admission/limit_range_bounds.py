"""The bounds of a LimitRange, each compared with what an object asks for, in the API server's words."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from nodeagent.admission.limit_range_validation import PERSISTENT_VOLUME_CLAIM
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
    for rule, complain in _rules(item.type).items():
        for resource, bound in bounds[rule].items():
            request, limit = requests.get(resource), limits.get(resource)
            complaint = complain(f"{resource} {{}} per {item.type} is {bound}", bound, request, limit)
            yield Comparison(limit_range, of, rule, resource, bound, request, limit, complaint)


Rule = Callable[[str, Quantity, Amount, Amount], str]


def _below_minimum(subject: str, bound: Quantity, request: Amount, limit: Amount) -> str:
    subject = f"minimum {subject.format('usage')}"
    if request is None:
        return f"{subject}.  No request is specified"
    asked, limited, least = _in_common_units(request, limit, bound)
    if asked < least:
        return f"{subject}, but request is {request}"
    return f"{subject}, but limit is {limit}" if limit is not None and limited < least else ""


def _above_maximum(subject: str, bound: Quantity, request: Amount, limit: Amount) -> str:
    subject = f"maximum {subject.format('usage')}"
    if limit is None:
        return f"{subject}.  No limit is specified"
    asked, limited, most = _in_common_units(request, limit, bound)
    if limited > most:
        return f"{subject}, but limit is {limit}"
    return f"{subject}, but request is {request}" if asked > most else ""


def _above_maximum_request(subject: str, bound: Quantity, request: Amount, limit: Amount) -> str:
    subject = f"maximum {subject.format('usage')}"
    if request is None:
        return f"{subject}.  No request is specified"
    asked, _, most = _in_common_units(request, limit, bound)
    return f"{subject}, but request is {request}" if asked > most else ""


def _above_ratio(subject: str, bound: Quantity, request: Amount, limit: Amount) -> str:
    subject = subject.format("max limit to request ratio")
    asked, limited, _ = _in_common_units(request, limit, bound)
    if asked == 0:
        return f"{subject}, but no request is specified or request is 0"
    if limited == 0:
        return f"{subject}, but no limit is specified or limit is 0"
    ratio = Fraction(limited, asked)
    return (
        f"{subject}, but provided ratio is {limited / asked:f}"
        if ratio > Fraction(bound.nanos, NANOS_PER_UNIT)
        else ""
    )


_RULES: Mapping[str, Rule] = {
    "min": _below_minimum,
    "max": _above_maximum,
    "maxLimitRequestRatio": _above_ratio,
}
# A claim has no limit that counts.
_CLAIM_RULES: Mapping[str, Rule] = {"min": _below_minimum, "max": _above_maximum_request}


def _rules(type: str) -> Mapping[str, Rule]:
    return _CLAIM_RULES if type == PERSISTENT_VOLUME_CLAIM else _RULES


def _in_common_units(*amounts: Amount) -> list[int]:
    """Return amounts in one unit, absent ones as zero."""
    known = [amount or ZERO for amount in amounts]
    if all(amount.value() <= LARGEST_COMPARED_IN_MILLI for amount in known):
        return [amount.milli_value() for amount in known]
    return [amount.value() for amount in known]


def _shown(amount: Amount) -> str:
    return "nothing" if amount is None else str(amount)
