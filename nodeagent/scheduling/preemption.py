"""The scheduler's preemption (DefaultPreemption beside NodeResourcesFit): on which node, at whose expense."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodeagent.api.meta import LabelSelector, parse_time
from nodeagent.api.pod import Pod
from nodeagent.api.qos import pod_priority
from nodeagent.api.resources import pod_requests
from nodeagent.scheduling.affinity import label_selector_matches
from nodeagent.scheduling.fit import NodeView, amounts, compare_resources

UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."
# Makes every priority positive, so that a sum of them grows with the number of victims.
_PRIORITY_OFFSET = 2**31


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many of the selected pods may still be disrupted; those already counted cost nothing more."""

    namespace: str
    selector: LabelSelector
    disruptions_allowed: int
    disrupted_pods: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why a pod does not fit a node."""

    code: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which the pod fits once the victims, most important first, are gone."""

    node: str
    victims: tuple[Pod, ...]
    budget_violations: int


@dataclass(frozen=True, slots=True)
class Nomination:
    """The decision and all that it was made from; `node` is None where preemption cannot help."""

    refusals: Mapping[str, NodeRefusal]
    candidates: tuple[Candidate, ...] = ()
    not_candidates: Mapping[str, NodeRefusal] = field(default_factory=dict)
    node: str | None = None
    not_eligible: str = ""


def nominate(
    pod: Pod,
    nodes: Mapping[str, tuple[NodeView, Sequence[Pod]]],
    budgets: Sequence[DisruptionBudget] = (),
) -> Nomination:
    """Choose a node, of those with their running pods, for a pod that fits none of them."""
    refusals = {
        name: check for name, (node, running) in nodes.items() if (check := refusal(pod, node, running))
    }
    if pod.spec.preemption_policy == "Never":
        return Nomination(refusals, not_eligible=NEVER)
    candidates: list[Candidate] = []
    not_candidates: dict[str, NodeRefusal] = {}
    for name, why in refusals.items():
        if why.code == UNSCHEDULABLE:
            outcome = find_victims(pod, *nodes[name], budgets)
            if isinstance(outcome, Candidate):
                candidates.append(outcome)
            else:
                not_candidates[name] = outcome
    best = min(candidates, key=_cost, default=None)
    return Nomination(refusals, tuple(candidates), not_candidates, best.node if best else None)


def refusal(pod: Pod, node: NodeView, running: Collection[Pod]) -> NodeRefusal | None:
    """Why the node lacks the resources for the pod; None when it has them."""
    comparisons = compare_resources(amounts(pod_requests(pod)), amounts(node.allocatable), running)
    short = [each for each in comparisons if not each.fits]
    if not short:
        return None
    # More than the node has at all: nobody's end could help.
    hopeless = any(each.requested > each.capacity for each in short if each.resource != "pods")
    reasons = tuple("Too many pods" if each.resource == "pods" else each.description for each in short)
    return NodeRefusal(UNRESOLVABLE if hopeless else UNSCHEDULABLE, reasons)


def find_victims(
    pod: Pod, node: NodeView, running: Sequence[Pod], budgets: Sequence[DisruptionBudget]
) -> Candidate | NodeRefusal:
    """Remove all pods of lower priority, then let back in, most important first, those that still fit."""
    priority = pod_priority(pod)
    lower = sorted((each for each in running if pod_priority(each) < priority), key=importance)
    if not lower:
        return NodeRefusal(UNRESOLVABLE, (NO_VICTIMS,))
    staying = [each for each in running if pod_priority(each) >= priority]
    still = refusal(pod, node, staying)
    if still is not None:
        return still
    violating = budget_violators(lower, budgets)
    victims: list[Pod] = []
    # Those whose end breaks a budget are let back in first.
    for each in sorted(lower, key=lambda each: id(each) not in violating):
        staying.append(each)
        if refusal(pod, node, staying) is not None:
            staying.pop()
            victims.append(each)
    violations = sum(id(each) in violating for each in victims)
    return Candidate(node.name, tuple(sorted(victims, key=importance)), violations)


def importance(pod: Pod) -> tuple[int, float]:
    """Sort key, most important first: the higher priority, then the earlier start."""
    return -pod_priority(pod), started_at(pod)


def started_at(pod: Pod) -> float:
    """Seconds since the epoch; a pod that has not started counts as started last."""
    return parse_time(pod.status.start_time).timestamp() if pod.status.start_time else math.inf


def budget_violators(pods: Iterable[Pod], budgets: Sequence[DisruptionBudget]) -> set[int]:
    """The identities of the pods whose end, after that of those before them, some budget does not allow."""
    allowed = [budget.disruptions_allowed for budget in budgets]
    violating = set()
    for pod in pods:
        for index, budget in enumerate(budgets):
            if _covers(budget, pod):
                allowed[index] -= 1
                if allowed[index] < 0:
                    violating.add(id(pod))
    return violating


def _covers(budget: DisruptionBudget, pod: Pod) -> bool:
    meta, selector = pod.metadata, budget.selector
    is_empty = not selector.match_labels and not selector.match_expressions
    if budget.namespace != meta.namespace or is_empty or not meta.labels:
        return False
    return meta.name not in budget.disrupted_pods and label_selector_matches(selector, meta.labels)


def _cost(candidate: Candidate) -> tuple[int, int, int, int, float]:
    """Sort key, the cheapest candidate first."""
    priorities = [pod_priority(victim) for victim in candidate.victims]
    top = max(priorities)
    first_start = min(started_at(victim) for victim in candidate.victims if pod_priority(victim) == top)
    total = sum(priority + _PRIORITY_OFFSET for priority in priorities)
    return candidate.budget_violations, top, total, len(priorities), -first_start
