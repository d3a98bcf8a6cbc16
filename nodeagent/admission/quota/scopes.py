"""Scopes: which objects a quota is for."""

from collections.abc import Collection, Iterable
from enum import StrEnum

from nodeagent.api.policy import ResourceQuota, ScopedResourceSelectorRequirement

Requirement = ScopedResourceSelectorRequirement


class Scope(StrEnum):
    TERMINATING = "Terminating"
    NOT_TERMINATING = "NotTerminating"
    BEST_EFFORT = "BestEffort"
    NOT_BEST_EFFORT = "NotBestEffort"
    PRIORITY_CLASS = "PriorityClass"
    CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity"
    VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"


class Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


def requirements_of(quota: ResourceQuota) -> tuple[Requirement, ...]:
    """Return everything that an object must fulfil to be charged to `quota`."""
    named = tuple(Requirement(scope_name=scope, operator=Operator.EXISTS) for scope in quota.spec.scopes)
    selector = quota.spec.scope_selector
    return named + selector.match_expressions if selector is not None else named


def chooses(requirement: Requirement, classes: Collection[str]) -> bool:
    """Whether an object of these classes (none, one, or several while it changes) fulfils the requirement."""
    match requirement.operator:
        case Operator.EXISTS:
            return bool(classes)
        case Operator.DOES_NOT_EXIST:
            return not classes
        case Operator.IN:
            return any(name in requirement.values for name in classes)
        case Operator.NOT_IN:
            return not classes or any(name not in requirement.values for name in classes)
    return False


def spelled(requirements: Iterable[Requirement]) -> str:
    """Return requirements as the API server prints them: `[{PriorityClass In [high]}]`."""
    parts = (f"{{{each.scope_name} {each.operator} [{' '.join(each.values)}]}}" for each in requirements)
    return f"[{' '.join(parts)}]"
