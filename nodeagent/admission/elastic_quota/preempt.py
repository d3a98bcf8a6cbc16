"""Whom of its own group a pod may displace on a node."""

from collections.abc import Sequence
from dataclasses import dataclass

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.amounts import Amounts, masked, minus, plus
from nodeagent.admission.elastic_quota.group import Group
from nodeagent.admission.elastic_quota.prefilter import SUCCESS, fits
from nodeagent.admission.elastic_quota.quotas import Quotas
from nodeagent.api.pod import Pod
from nodeagent.api.qos import pod_priority
from nodeagent.scheduling.fit import NodeView
from nodeagent.scheduling.preemption import (
    UNRESOLVABLE,
    DisruptionBudget,
    budget_violators,
    importance,
    refusal,
)


@dataclass(frozen=True, slots=True)
class Displacement:
    """Who must go, in the order in which they were tried; `violations` of them break a disruption budget."""

    code: str = SUCCESS
    message: str = ""
    victims: tuple[Pod, ...] = ()
    violations: int = 0


def select_victims(
    quotas: Quotas, pod: Pod, node: NodeView, running: Sequence[Pod], budgets: Sequence[DisruptionBudget] = ()
) -> Displacement:
    """Take off all pods that may be displaced, then put back, most important first, those that still fit."""
    group = quotas.group_for(pod)
    allowed = sorted((each for each in running if _may_displace(quotas, group, pod, each)), key=importance)
    if group is None or not allowed:
        message = f"No victims found on node {node.name} for preemptor pod {pod.metadata.name}"
        return Displacement(UNRESOLVABLE, message)
    staying = [each for each in running if not any(each is victim for victim in allowed)]
    still = refusal(pod, node, staying)
    if still is not None:
        return Displacement(still.code, ", ".join(still.reasons))
    asked = masked(quotas.request_of(pod), group.max.keys())
    used = group.all.used
    for each in allowed:
        used = minus(used, _counted(group, each))
    violating = budget_violators(allowed, budgets)
    victims = []
    for each in sorted(allowed, key=lambda each: id(each) not in violating):
        with_pod = plus(used, _counted(group, each))
        if refusal(pod, node, [*staying, each]) is None and fits(quotas, group, with_pod, asked):
            staying.append(each)
            used = with_pod
        else:
            victims.append(each)
    return Displacement(victims=tuple(victims), violations=sum(id(each) in violating for each in victims))


def _may_displace(quotas: Quotas, group: Group | None, pod: Pod, victim: Pod) -> bool:
    if group is None or not names.is_preemptible(victim) or pod_priority(victim) >= pod_priority(pod):
        return False
    if group.name == names.DEFAULT and not quotas.settings.default_quota_preemption:
        return False
    return quotas.group_of_pod(names.pod_key(victim)) is group


def _counted(group: Group, pod: Pod) -> Amounts:
    known = group.pods.get(names.pod_key(pod))
    return known.counted if known is not None and known.is_assigned else {}
