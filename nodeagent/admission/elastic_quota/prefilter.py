"""May a pod use what it asks for, by the quota of its group?"""

from collections.abc import Mapping
from dataclasses import dataclass

from nodeagent.admission.elastic_quota import amounts, names
from nodeagent.admission.elastic_quota.amounts import Amounts, exceeded, masked, plus
from nodeagent.admission.elastic_quota.group import Group
from nodeagent.admission.elastic_quota.quotas import Quotas
from nodeagent.api.pod import Pod
from nodeagent.api.quantity import Quantity

SUCCESS, SKIP, UNSCHEDULABLE, ERROR = "Success", "Skip", "Unschedulable", "Error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, and the group that gave it."""

    code: str
    message: str = ""
    quota: str = ""

    def __str__(self) -> str:
        """Tell it as a sentence."""
        if self.code == SKIP:
            return "no elastic quota counts this pod"
        return self.message or f"elastic quota {self.quota} has room for what the pod asks for"

    @property
    def admits(self) -> bool:
        return self.code in (SUCCESS, SKIP)


def prefilter(quotas: Quotas, pod: Pod) -> Verdict:
    """Compare what the group uses, with the pod, against what it may use just now."""
    group = quotas.group_for(pod)
    if group is None:
        name = pod.metadata.labels.get(names.QUOTA_NAME, "")
        return (
            Verdict(SKIP)
            if not quotas.settings.default_quota
            else Verdict(ERROR, f"Could not find the specified ElasticQuotaManager for quota: {name}, tree: ")
        )
    if quotas.settings.runtime_quota:
        quotas.refresh(group.name)
    asked = masked(quotas.request_of(pod), group.max.keys())
    refusal = _own_quota(quotas, group, asked)
    if refusal is None and not names.is_preemptible(pod):
        refusal = _guaranteed_part(group, asked)
    if refusal is None and quotas.settings.check_parents:
        refusal = _parents(quotas, group, asked)
    return refusal or Verdict(SUCCESS, quota=group.name)


def fits(quotas: Quotas, group: Group, used: Amounts, asked: Amounts) -> bool:
    """Tell whether the group may use `asked` more; only what is asked for counts."""
    return not exceeded(masked(plus(used, asked), asked.keys()), quotas.limit(group))


def _own_quota(quotas: Quotas, group: Group, asked: Amounts) -> Verdict | None:
    limit, used = quotas.limit(group), group.all.used
    over = exceeded(plus(used, asked), limit)
    if not over:
        return None
    return Verdict(
        UNSCHEDULABLE,
        f"Insufficient quotas, quotaName: {group.name}, {_compared(limit, used, asked, over)}",
        group.name,
    )


def _guaranteed_part(group: Group, asked: Amounts) -> Verdict | None:
    """What cannot be taken back must lie within what is guaranteed."""
    used = group.all.non_preemptible_used
    over = exceeded(plus(used, asked), group.min)
    if not over:
        return None
    return Verdict(
        UNSCHEDULABLE,
        f"Insufficient non-preemptible quotas, quotaName: {group.name}, min: {amounts.text(group.min)}, "
        f"nonPreemptibleUsed: {amounts.text(used)}, pod's request: {amounts.text(asked)}, "
        f"exceedDimensions: [{' '.join(over)}]",
        group.name,
    )


def _parents(quotas: Quotas, group: Group, asked: Amounts) -> Verdict | None:
    _, *path = quotas.tree_of(group.name).path(group.name)
    for place in range(len(path) - 2, -1, -1):
        parent = path[place]
        limit, used = quotas.limit(parent), parent.all.used
        over = exceeded(masked(plus(used, asked), asked.keys()), limit)
        if over:
            way = " ".join(level.name for level in path[place:])
            return Verdict(
                UNSCHEDULABLE,
                f"Insufficient quotas, quotaNameTopo: [{way}], {_compared(limit, used, asked, over)}",
                parent.name,
            )
    return None


def _compared(limit: Mapping[str, Quantity], used: Amounts, asked: Amounts, over: tuple[str, ...]) -> str:
    return (
        f"runtime: {amounts.text(limit)}, used: {amounts.text(used)}, pod's request: {amounts.text(asked)}, "
        f"exceedDimensions: [{' '.join(over)}]"
    )
