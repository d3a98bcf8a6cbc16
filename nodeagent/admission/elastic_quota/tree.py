"""One tree of quota groups: sums go up as pods come and go, what may be used comes down when asked for."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.amounts import Amounts, in_units, is_nothing, minus, plus
from nodeagent.admission.elastic_quota.group import CountedPod, Group, Tally
from nodeagent.admission.elastic_quota.runtime import redistribute, scaled_minimums
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.meta import ObjectMeta

_PARTS = ("request", "used", "non_preemptible_request", "non_preemptible_used")


class QuotaTree:
    """The groups below one root. `guarantees` is Koordinator's gate ElasticQuotaGuaranteeUsage."""

    def __init__(self, tree_id: str, *, scales_min: bool = True, guarantees: bool = False) -> None:
        self.tree_id = tree_id
        labels = {names.IS_PARENT: names.TRUE, names.ALLOW_LENT: names.FALSE}
        self.root = Group(ElasticQuota(metadata=ObjectMeta(name=names.ROOT, labels=labels)))
        self.groups: dict[str, Group] = {names.ROOT: self.root}
        self.total: Amounts = {}
        """What all groups share."""
        self._scales_min = scales_min
        self._guarantees = guarantees
        self._orphans: dict[str, dict[str, Group]] = {}
        """By the name of a parent that is not there yet."""
        self._limited: Counter[str] = Counter()
        self._limited_keys: frozenset[str] = frozenset()

    def set_total(self, total: Amounts) -> None:
        """Set what there is to share."""
        if total != self.total or total.keys() != self.total.keys():
            self.total = total
            self.root.is_settled = False

    def put(self, quota: ElasticQuota) -> Group:
        """Add a group, or change it to what its object says now."""
        group = self.groups.get(quota.metadata.name)
        if group is None:
            return self._add(quota)
        before = (group.parent, group.is_parent, group.lends)
        self._leave(group)
        group.describe(quota, guarantees=self._guarantees)
        self._enter(group)
        if before == (group.parent, group.is_parent, group.lends):
            self._tell_above(group)
        else:
            self._count_afresh()
        return group

    def remove(self, name: str) -> Group | None:
        """Remove a group with the pods in it."""
        group = self.groups.pop(name, None)
        if group is not None:
            self._leave(group)
            if group.children:
                self._orphans[name] = group.children
            self._count_afresh()
        return group

    def count(self, group: Group, key: str, pod: CountedPod | None) -> None:
        """Put a pod into a group, change it, or take it out (None), and carry the change up."""
        before, after = group.count(key, pod)
        for part in _PARTS:
            change = minus(getattr(after, part), getattr(before, part))
            if is_nothing(change):
                continue
            setattr(group.own, part, plus(getattr(group.own, part), change))
            if part == "request":
                self._request(group, change)
            else:
                for level in self._upwards(group):
                    setattr(level.all, part, plus(getattr(level.all, part), change))
        if self._guarantees:
            self._guarantee(group)

    def path(self, name: str) -> list[Group]:
        """Return the groups from the root down to this one, both included."""
        group = self.groups[name]
        return [self.root, *reversed(list(self._upwards(group)))] if group is not self.root else [self.root]

    def refresh(self, name: str) -> None:
        """Work out what the groups on the way to this one, and all beside them, may use."""
        *above, _ = self.path(name) if name != names.ROOT else (self.root,)
        for parent in above:
            self._settle(parent)

    def refresh_all(self) -> None:
        """Work out what every group may use."""
        pending = [self.root]
        while pending:
            parent = pending.pop()
            self._settle(parent)
            pending += [child for child in parent.children.values() if child.children]

    def _add(self, quota: ElasticQuota) -> Group:
        group = Group(quota, guarantees=self._guarantees)
        self.groups[group.name] = group
        # A child may have come before its parent.
        waiting = self._orphans.pop(group.name, {})
        self._enter(group)
        if waiting:
            for child in waiting.values():
                self._attach(child, group)
            self._count_afresh()
        else:
            self._tell_above(group)
        return group

    def _tell_above(self, group: Group) -> None:
        """Let those above see what a group asks for and is guaranteed after its limits have changed."""
        self._ask(group)
        if self._guarantees:
            self._guarantee(group)

    def _enter(self, group: Group) -> None:
        group.is_settled = False
        if group.is_special:
            return
        self._limit(group, 1)
        parent = self.groups.get(group.parent)
        if parent is not None:
            self._attach(group, parent)
        else:
            self._orphans.setdefault(group.parent, {})[group.name] = group

    def _attach(self, group: Group, parent: Group) -> None:
        parent.children[group.name] = group
        parent.sum_of_min.update(group.min_units)
        parent.is_settled = False

    def _leave(self, group: Group) -> None:
        if group.is_special:
            return
        self._limit(group, -1)
        self._orphans.get(group.parent, {}).pop(group.name, None)
        parent = self.groups.get(group.parent)
        if parent is not None and parent.children.pop(group.name, None) is not None:
            parent.sum_of_min.subtract(group.min_units)
            parent.is_settled = False

    def _limit(self, group: Group, change: int) -> None:
        """Follow which resources any group limits: those are what the root shares out."""
        for name in group.max:
            self._limited[name] += change
        keys = frozenset(name for name, number in self._limited.items() if number > 0)
        if keys != self._limited_keys:
            self._limited_keys = keys
            self.root.is_settled = False

    def _upwards(self, group: Group) -> Iterator[Group]:
        """Yield the group and those above it below the root."""
        seen = set()
        level: Group | None = group
        while level is not None and level is not self.root and level.name not in seen:
            seen.add(level.name)
            yield level
            level = None if level.is_special else self.groups.get(level.parent)

    def _request(self, group: Group, change: Amounts) -> None:
        """Add to what is asked for in a group, and carry up what its parent sees of that."""
        for level in self._upwards(group):
            level.child_request = plus(level.child_request, change)
            change = self._ask_parent(level)
            if not change:
                return

    def _ask(self, group: Group) -> None:
        """Let the parent see what a group asks for after its limits have changed."""
        change = self._ask_parent(group)
        parent = self.groups.get(group.parent)
        if change and parent is not None and parent is not self.root and not group.is_special:
            self._request(parent, change)

    def _ask_parent(self, group: Group) -> Amounts:
        change = group.ask()
        parent = self.groups.get(group.parent)
        if parent is not None:
            parent.is_settled = False
        return change

    def _guarantee(self, group: Group) -> None:
        for level in self._upwards(group):
            below: Amounts = {}
            for child in level.children.values():
                below = plus(below, child.guaranteed)
            level.guarantee(self._limited_keys, below)
            parent = self.groups.get(level.parent)
            if parent is not None:
                parent.is_settled = False

    def _count_afresh(self) -> None:
        """Work out all sums from the groups' own pods: what was moved or removed leaves no trace."""
        for group in self._bottom_up():
            group.child_request = dict(group.own.request)
            group.all = Tally(
                used=dict(group.own.used),
                non_preemptible_request=dict(group.own.non_preemptible_request),
                non_preemptible_used=dict(group.own.non_preemptible_used),
            )
            for child in group.children.values():
                group.child_request = plus(group.child_request, child.limited_request)
                for part in _PARTS[1:]:
                    setattr(group.all, part, plus(getattr(group.all, part), getattr(child.all, part)))
            group.ask()
            if self._guarantees:
                self._guarantee(group)
            group.is_settled = False
        self.root.is_settled = False

    def _bottom_up(self) -> list[Group]:
        order: list[Group] = []
        below = {child.name for group in self.groups.values() for child in group.children.values()}
        pending = [g for g in self.groups.values() if g is not self.root and g.name not in below]
        pending += list(self.root.children.values())
        while pending:
            group = pending.pop()
            order.append(group)
            pending += group.children.values()
        return order[::-1]

    def _settle(self, parent: Group) -> None:
        """Share out among the children what their parent has, unless nothing has changed."""
        if parent.is_settled:
            return
        children = tuple(parent.children.values())
        total = in_units(self.total) if parent is self.root else parent.runtime_units or {}
        self._scale_min(total, parent, children)
        keys = self._limited_keys if parent is self.root else parent.max.keys()
        runtime = {
            key: redistribute(total.get(key, 0), [child.share(key) for child in children]) for key in keys
        }
        for child in children:
            child.settle({key: runtime[key][child.name] for key in keys})
        parent.is_settled = True

    def _scale_min(self, total: Mapping[str, int], parent: Group, children: Sequence[Group]) -> None:
        short = {name: available for name, available in total.items() if available < parent.sum_of_min[name]}
        if short and self._scales_min:
            scaled = scaled_minimums(short, [child.min_units for child in children])
            for child, smaller in zip(children, scaled, strict=True):
                child.scale(smaller)
        else:
            for child in children:
                child.scale({})
