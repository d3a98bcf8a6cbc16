"""Does a node suit a pod by its labels, name and taints."""

from collections.abc import Iterable, Mapping

from nodeagent.api.meta import LabelSelector, LabelSelectorRequirement
from nodeagent.api.node import Taint
from nodeagent.api.pod import NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration


def selects_node(spec: PodSpec, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether the node has the labels of `nodeSelector` and satisfies the required node affinity."""
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity else None
    if required is None:
        return True
    return any(_term_matches(term, node_name, labels) for term in required.node_selector_terms)


def _term_matches(term: NodeSelectorTerm, node_name: str, labels: Mapping[str, str]) -> bool:
    # A term without requirements selects no node at all, unlike an absent affinity.
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node_name}
    return all(requirement_matches(each, labels) for each in term.match_expressions) and all(
        requirement_matches(each, fields) for each in term.match_fields
    )


def label_selector_matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether the labels satisfy the selector; an empty one takes every object."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        requirement_matches(each, labels) for each in selector.match_expressions
    )


def requirement_matches(
    requirement: NodeSelectorRequirement | LabelSelectorRequirement, labels: Mapping[str, str]
) -> bool:
    """Whether one `key operator values` holds for the labels; what cannot be read as a rule never holds."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement.operator, value, requirement.values)
        case _:
            return False


def _compares(operator: str, value: str | None, bounds: tuple[str, ...]) -> bool:
    if value is None or len(bounds) != 1:
        return False
    try:
        actual, bound = int(value), int(bounds[0])
    except ValueError:
        return False
    return actual > bound if operator == "Gt" else actual < bound


def untolerated_taint(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], effects: frozenset[str]
) -> Taint | None:
    """The first taint with one of the effects that no toleration covers."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration covers the taint; an absent key or effect covers every one."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (taint.value or "")
