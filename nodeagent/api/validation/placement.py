"""Is what a pod says of where it may run as the API server would take it? (core/v1 validation)"""

from collections.abc import Iterable

from nodeagent.api import names
from nodeagent.api.errors import forbidden, invalid, not_supported, required
from nodeagent.api.meta import LabelSelector
from nodeagent.api.pod import (
    Affinity,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from nodeagent.api.validation.checks import Errors, each, one_of

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TOLERATION_OPERATORS = ("Equal", "Exists")
UNSATISFIABLE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
LARGEST_WEIGHT = 100


def placement_errors(spec: PodSpec) -> Errors:
    """Check node selector, affinity, tolerations and topology spread."""
    for key, value in spec.node_selector.items():
        yield from each(names.qualified_name(key), "spec.nodeSelector", key)
        yield from each(names.label_value(value), "spec.nodeSelector", value)
    if spec.affinity is not None:
        yield from _affinity_errors(spec.affinity, "spec.affinity")
    for index, toleration in enumerate(spec.tolerations):
        yield from toleration_errors(toleration, f"spec.tolerations[{index}]")
    for index, constraint in enumerate(spec.topology_spread_constraints):
        yield from _spread_errors(constraint, f"spec.topologySpreadConstraints[{index}]")


def toleration_errors(toleration: Toleration, path: str) -> Errors:
    key, operator = toleration.key or "", toleration.operator or ""
    if key:
        yield from each(names.qualified_name(key), f"{path}.key", key)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", toleration.effect or "", detail)
    value = toleration.value or ""
    if operator in ("", "Equal"):
        yield from each(names.label_value(value), f"{path}.operator", value)
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield not_supported(f"{path}.operator", operator, TOLERATION_OPERATORS)
    yield from one_of(toleration.effect, TAINT_EFFECTS, f"{path}.effect")


def _affinity_errors(affinity: Affinity, path: str) -> Errors:
    if affinity.node_affinity is not None:
        yield from _node_affinity_errors(affinity.node_affinity, f"{path}.nodeAffinity")
    for name, pods in {
        "podAffinity": affinity.pod_affinity,
        "podAntiAffinity": affinity.pod_anti_affinity,
    }.items():
        if pods is not None:
            yield from _pod_affinity_errors(pods, f"{path}.{name}")


def _node_affinity_errors(affinity: NodeAffinity, path: str) -> Errors:
    needed = affinity.required_during_scheduling_ignored_during_execution
    if needed is not None:
        place = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        if not needed.node_selector_terms:
            yield required(place, "must have at least one node selector term")
        for index, term in enumerate(needed.node_selector_terms):
            yield from _node_term_errors(term, True, f"{place}[{index}]")
    wished = affinity.preferred_during_scheduling_ignored_during_execution
    for index, preference in enumerate(wished):
        place = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        yield from _weight_errors(preference.weight, f"{place}.weight")
        # A preference may ask for what no label can be: it is then never met.
        yield from _node_term_errors(preference.preference, False, f"{place}.preference")


def _node_term_errors(term: NodeSelectorTerm, check_values: bool, path: str) -> Errors:
    for index, requirement in enumerate(term.match_expressions):
        yield from _expression_errors(requirement, check_values, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.match_fields):
        yield from _field_errors(requirement, f"{path}.matchFields[{index}]")


def _expression_errors(requirement: NodeSelectorRequirement, check_values: bool, path: str) -> Errors:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{path}.values", detail)
        case "Exists" | "DoesNotExist":
            if requirement.values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{path}.values", detail)
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{path}.values", detail)
        case _:
            yield invalid(f"{path}.operator", requirement.operator, "not a valid selector operator")
    yield from each(names.qualified_name(requirement.key), f"{path}.key", requirement.key)
    if check_values:
        for index, value in enumerate(requirement.values):
            yield from each(names.label_value(value), f"{path}.values[{index}]", value)


def _field_errors(requirement: NodeSelectorRequirement, path: str) -> Errors:
    if requirement.operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", requirement.operator, "not a valid selector operator")
    elif len(requirement.values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if requirement.key != "metadata.name":
        yield invalid(f"{path}.key", requirement.key, "not a valid field selector key")


def _pod_affinity_errors(affinity: PodAffinity | PodAntiAffinity, path: str) -> Errors:
    needed = f"{path}.requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        yield from _pod_term_errors(term, f"{needed}[{index}]")
    wished = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield from _weight_errors(weighted.weight, f"{wished}[{index}].weight")
        yield from _pod_term_errors(weighted.pod_affinity_term, f"{wished}[{index}].podAffinityTerm")


def _pod_term_errors(term: PodAffinityTerm, path: str) -> Errors:
    yield from _selector_errors(term.label_selector, f"{path}.labelSelector")
    yield from _selector_errors(term.namespace_selector, f"{path}.namespaceSelector")
    for name in term.namespaces:
        yield from each(names.label(name), f"{path}.namespace", name)
    if not term.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from each(names.qualified_name(term.topology_key), f"{path}.topologyKey", term.topology_key)


def _selector_errors(selector: LabelSelector | None, path: str) -> Errors:
    if selector is None:
        return
    for key, value in selector.match_labels.items():
        yield from each(names.qualified_name(key), f"{path}.matchLabels", key)
        yield from each(names.label_value(value), f"{path}.matchLabels", value)
    for index, requirement in enumerate(selector.match_expressions):
        place = f"{path}.matchExpressions[{index}]"
        match requirement.operator:
            case "In" | "NotIn":
                if not requirement.values:
                    detail = "must be specified when `operator` is 'In' or 'NotIn'"
                    yield required(f"{place}.values", detail)
            case "Exists" | "DoesNotExist":
                if requirement.values:
                    detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield forbidden(f"{place}.values", detail)
            case _:
                yield invalid(f"{place}.operator", requirement.operator, "not a valid selector operator")
        yield from each(names.qualified_name(requirement.key), f"{place}.key", requirement.key)
        yield from _label_values(requirement.values, f"{place}.values")


def _label_values(values: Iterable[str], path: str) -> Errors:
    for index, value in enumerate(values):
        yield from each(names.label_value(value), f"{path}[{index}]", value)


def _spread_errors(constraint: TopologySpreadConstraint, path: str) -> Errors:
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "must be greater than zero")
    if not constraint.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        key = constraint.topology_key
        yield from each(names.qualified_name(key), f"{path}.topologyKey", key)
    if constraint.when_unsatisfiable not in UNSATISFIABLE_ACTIONS:
        action = constraint.when_unsatisfiable
        yield not_supported(f"{path}.whenUnsatisfiable", action, UNSATISFIABLE_ACTIONS)
    if constraint.min_domains is not None and constraint.min_domains <= 0:
        yield invalid(f"{path}.minDomains", constraint.min_domains, "must be greater than 0")
    yield from _selector_errors(constraint.label_selector, f"{path}.labelSelector")


def _weight_errors(weight: int, path: str) -> Errors:
    if not 1 <= weight <= LARGEST_WEIGHT:
        yield invalid(path, weight, f"must be in the range 1-{LARGEST_WEIGHT}")
