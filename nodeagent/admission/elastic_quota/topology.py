"""Faults of a quota group that show beside the groups around it, in Koordinator's words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.amounts import Amounts, plus, raised
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.quantity import ZERO, Quantity

KEYS_FAULT = "failed to check sub and parent group quotaKey, err: checkSubAndParentGroupQuotaKey failed: "


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The groups there are, by name, without the change that is checked; the gates that loosen the rules."""

    groups: Mapping[str, ElasticQuota]
    has_bound_pods: bool = False
    keys_may_differ: bool = False
    guarantees: bool = False

    def children(self, name: str) -> list[ElasticQuota]:
        """Return the groups right below one, in name order."""
        found = (each for each in self.groups.values() if each.metadata.name != names.ROOT)
        return sorted(
            (each for each in found if names.parent_of(each.metadata) == name),
            key=lambda each: each.metadata.name,
        )


def faults(quota: ElasticQuota, old: ElasticQuota | None, around: Surroundings) -> Iterator[str]:
    """Yield what is wrong, the first first; `old` is the stored object that is changed."""
    meta = quota.metadata
    if meta.name == names.ROOT:
        return
    parent_name = names.parent_of(meta)
    children = [each for each in around.children(meta.name) if each.metadata.name != meta.name]
    yield from _changed_role(quota, old, around)
    yield from _tree_id(quota, old, around.groups.get(parent_name), children)
    if parent_name != names.ROOT or names.is_parent(meta):
        yield from _place(quota, parent_name, children, around)
    yield from _own_ancestor(quota, around)


def _changed_role(quota: ElasticQuota, old: ElasticQuota | None, around: Surroundings) -> Iterator[str]:
    if old is None or names.is_parent(old.metadata) == names.is_parent(quota.metadata):
        return
    name = quota.metadata.name
    if names.is_parent(quota.metadata):
        if around.has_bound_pods:
            yield f"quota has bound pods, isParent is forbidden to modify as true, quotaName: {name}"
    elif around.children(name):
        yield f"quota has children, isParent is forbidden to modify as false, quotaName:{name}"


def _tree_id(
    quota: ElasticQuota, old: ElasticQuota | None, parent: ElasticQuota | None, children: list[ElasticQuota]
) -> Iterator[str]:
    name, own = quota.metadata.name, _tree(quota)
    if old is not None and _tree(old) != own:
        yield f"{name} tree id changed [{_tree(old)}] vs [{own}]"
    if parent is not None and parent.metadata.name != names.ROOT and _tree(parent) != own:
        yield f"{name} tree id is different from parent {parent.metadata.name}, [{own}] vs [{_tree(parent)}]"
    for child in children:
        if _tree(child) != own:
            yield f"{name} tree id is different from child {child.metadata.name}, [{own}] vs [{_tree(child)}]"


def _place(
    quota: ElasticQuota, parent_name: str, children: list[ElasticQuota], around: Surroundings
) -> Iterator[str]:
    name = quota.metadata.name
    parent = around.groups.get(parent_name)
    if parent_name != names.ROOT:
        if parent is None:
            yield f"{name} has parentName {parent_name} but not find parentInfo in quotaInfoMap"
            return
        if not names.is_parent(parent.metadata):
            yield f"{name} has parentName {parent_name} but the parentQuotaInfo's IsParent is false"
        yield from _keys(parent, quota, around)
    for child in children:
        yield from _keys(quota, child, around)
    if quota.metadata.labels.get(names.ALLOW_FORCE_UPDATE) != names.TRUE and not _is_root(quota):
        if parent is not None and parent_name != names.ROOT:
            brothers = [each for each in around.children(parent_name) if each.metadata.name != name]
            if not _covers(parent.spec.min, _sum_of_min([*brothers, quota])):
                yield f"checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: {parent_name}"
        if not _covers(quota.spec.min, _sum_of_min(children)):
            yield f"checkMinQuotaSum all children's MinQuota > current MinQuota, current: {name}"
    if around.guarantees:
        yield from _guarantee(quota, around)


def _keys(parent: ElasticQuota, child: ElasticQuota, around: Surroundings) -> Iterator[str]:
    above, below = parent.metadata.name, child.metadata.name
    if around.keys_may_differ:
        if not child.spec.max.keys() <= parent.spec.max.keys():
            yield f"{KEYS_FAULT}{below}'s max keys are not all included in {above}'s"
    elif child.spec.max.keys() != parent.spec.max.keys():
        yield f"{KEYS_FAULT}{above}'s max keys are not the same with {below}'s"
    if not child.spec.min.keys() <= parent.spec.min.keys():
        yield f"{KEYS_FAULT}{below}'s min keys are not all included in {above}'s"


def _guarantee(quota: ElasticQuota, around: Surroundings) -> Iterator[str]:
    """Some group above must be guaranteed enough for the minimum, with what its other children are."""
    if not _tree(quota) or _is_root(quota) or _covers(_guaranteed(quota), quota.spec.min):
        return
    need: Amounts = dict(quota.spec.min)
    level, seen = quota, {quota.metadata.name}
    while (parent := around.groups.get(names.parent_of(level.metadata))) is not None:
        if parent.metadata.name in seen or parent.metadata.name == names.ROOT:
            break
        for other in around.children(parent.metadata.name):
            if other.metadata.name != level.metadata.name:
                need = plus(need, _guaranteed(other))
        need = raised(need, parent.spec.min)
        level = parent
        seen.add(level.metadata.name)
        if _covers(_guaranteed(level), need):
            return
    yield f"tree root quota {level.metadata.name} can't guarantee for min {quota.metadata.name}"


def _own_ancestor(quota: ElasticQuota, around: Surroundings) -> Iterator[str]:
    """Nothing in the original stops a group from being put below itself; its pods would be in no tree."""
    name, level, seen = quota.metadata.name, names.parent_of(quota.metadata), set[str]()
    while level in around.groups and level not in seen:
        if level == name:
            yield f"{name} cannot be its own ancestor: choose a parent that is not below {name}"
            return
        seen.add(level)
        level = names.parent_of(around.groups[level].metadata)


def _tree(quota: ElasticQuota) -> str:
    return quota.metadata.labels.get(names.TREE_ID, "")


def _is_root(quota: ElasticQuota) -> bool:
    return quota.metadata.labels.get(names.IS_ROOT) == names.TRUE


def _guaranteed(quota: ElasticQuota) -> Amounts:
    try:
        return names.read_amounts(quota.metadata.annotations.get(names.GUARANTEED, ""))
    except ValueError:
        return {}


def _sum_of_min(groups: list[ElasticQuota]) -> Amounts:
    total: Amounts = {}
    for group in groups:
        total = plus(total, group.spec.min)
    return total


def _covers(available: Mapping[str, Quantity], needed: Mapping[str, Quantity]) -> bool:
    """Tell whether there is enough of everything; what is missing is zero."""
    return all(quantity <= available.get(name, ZERO) for name, quantity in needed.items())
