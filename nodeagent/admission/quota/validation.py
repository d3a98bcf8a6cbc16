"""ResourceQuota as an object: defaults and validation (core/v1)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from nodeagent.admission.quota.scopes import Operator, Requirement, Scope
from nodeagent.api.errors import FieldError, invalid, required
from nodeagent.api.policy import ResourceQuota, ScopeSelector
from nodeagent.api.quantity import Quantity, ResourceList
from nodeagent.api.resource_names import (
    STORAGE,
    amount_errors,
    is_standard,
    resource_name_errors,
)
from nodeagent.api.validation import MOST_ERRORS, metadata_errors

PODS = frozenset({"pods"})
PODS_AND_COMPUTE = PODS | {
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
}
CLAIMS_AND_STORAGE = frozenset({"persistentvolumeclaims", "requests.storage"})
_ALLOWED_UNDER: dict[str, frozenset[str]] = {
    Scope.TERMINATING: PODS_AND_COMPUTE,
    Scope.NOT_TERMINATING: PODS_AND_COMPUTE,
    Scope.BEST_EFFORT: PODS,
    Scope.NOT_BEST_EFFORT: PODS_AND_COMPUTE,
    Scope.PRIORITY_CLASS: PODS_AND_COMPUTE,
    Scope.CROSS_NAMESPACE_POD_AFFINITY: PODS_AND_COMPUTE,
    Scope.VOLUME_ATTRIBUTES_CLASS: CLAIMS_AND_STORAGE,
}
_SCOPES = frozenset(Scope)
_CONFLICTING = (
    {Scope.BEST_EFFORT, Scope.NOT_BEST_EFFORT},
    {Scope.TERMINATING, Scope.NOT_TERMINATING},
)
_WITHOUT_CLASSES = (
    Scope.BEST_EFFORT,
    Scope.NOT_BEST_EFFORT,
    Scope.TERMINATING,
    Scope.NOT_TERMINATING,
    Scope.CROSS_NAMESPACE_POD_AFFINITY,
)
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
    "ResourceQuotaScopeCrossNamespacePodAffinity"
)
_NEEDS_VALUES = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
_TAKES_NO_VALUES = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
SELECTOR_PATH = "spec.scopeSelector.matchExpressions"


def default_resource_quota(quota: ResourceQuota) -> ResourceQuota:
    """Return the quota as the API server stores it: amounts rounded up to thousandths."""
    status = quota.status
    return replace(
        quota,
        spec=replace(quota.spec, hard=_rounded(quota.spec.hard)),
        status=replace(status, hard=_rounded(status.hard), used=_rounded(status.used)),
    )


def validate_resource_quota(quota: ResourceQuota) -> tuple[FieldError, ...]:
    """Return what is wrong with a ResourceQuota: everything, up to a bound."""
    return tuple(islice(_errors(quota), MOST_ERRORS))


def _rounded(amounts: ResourceList) -> dict[str, Quantity]:
    return {name: amount.round_up_milli() for name, amount in amounts.items()}


def _errors(quota: ResourceQuota) -> Iterator[FieldError]:
    spec = quota.spec
    yield from metadata_errors(quota.metadata)
    for name, amount in spec.hard.items():
        path = f"spec.hard[{name}]"
        yield from resource_name_errors(name, path)
        if "/" not in name and not _is_standard(name):
            yield invalid(path, name, "must be a standard resource for quota")
        yield from amount_errors(name, amount, path)
    misplaced = _misplaced(spec.scopes, spec.hard)
    for scope in spec.scopes:
        if scope not in _SCOPES:
            yield invalid("spec.scopes", spec.scopes, "unsupported scope")
        for _ in range(misplaced[scope]):
            yield invalid("spec.scopes", spec.scopes, "unsupported scope applied to resource")
    if _conflict(spec.scopes):
        yield invalid("spec.scopes", spec.scopes, "conflicting scopes")
    if spec.scope_selector is not None:
        yield from _selector_errors(spec.scope_selector, quota)


def _selector_errors(selector: ScopeSelector, quota: ResourceQuota) -> Iterator[FieldError]:
    scopes = [each.scope_name for each in selector.match_expressions]
    misplaced = _misplaced(scopes, quota.spec.hard)
    for requirement in selector.match_expressions:
        if requirement.scope_name not in _SCOPES:
            yield invalid(f"{SELECTOR_PATH}.scopeName", requirement.scope_name, "unsupported scope")
        for _ in range(misplaced[requirement.scope_name]):
            yield invalid(SELECTOR_PATH, _as_go_prints(selector), "unsupported scope applied to resource")
        yield from _operator_errors(requirement)
    if _conflict(scopes):
        # As in the original, what is printed is the other list.
        yield invalid(SELECTOR_PATH, quota.spec.scopes or None, "conflicting scopes")


def _operator_errors(requirement: Requirement) -> Iterator[FieldError]:
    operator, values = requirement.operator, requirement.values
    if requirement.scope_name in _WITHOUT_CLASSES and operator != Operator.EXISTS:
        yield invalid(f"{SELECTOR_PATH}.operator", operator, _ONLY_EXISTS)
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not values:
                yield required(f"{SELECTOR_PATH}.values", _NEEDS_VALUES)
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                yield invalid(f"{SELECTOR_PATH}.values", values, _TAKES_NO_VALUES)
        case _:
            yield invalid(f"{SELECTOR_PATH}.operator", operator, "not a valid selector operator")


def _is_standard(name: str) -> bool:
    return is_standard(name) and name != STORAGE


def _misplaced(scopes: Iterable[str], hard: ResourceList) -> Counter[str]:
    """Count for each scope the resources that mean nothing under it; names with "/" are let through."""
    standard = set(filter(_is_standard, hard))
    return Counter({scope: len(standard - _ALLOWED_UNDER[scope]) for scope in _SCOPES.intersection(scopes)})


def _conflict(scopes: Iterable[str]) -> bool:
    present = set(scopes)
    return any(pair <= present for pair in _CONFLICTING)


def _as_go_prints(selector: ScopeSelector) -> object:
    return {
        "MatchExpressions": [
            {"ScopeName": each.scope_name, "Operator": each.operator, "Values": list(each.values) or None}
            for each in selector.match_expressions
        ]
    }
