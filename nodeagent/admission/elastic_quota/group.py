"""One quota group: what its object says, what is counted in it, and what it may use just now."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.amounts import (
    Amounts,
    capped,
    in_units,
    is_nothing,
    minus,
    of_units,
    plus,
    raised,
)
from nodeagent.admission.elastic_quota.runtime import Share
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.pod import Pod


@dataclass(frozen=True, slots=True)
class CountedPod:
    """A pod in a group. `counted` holds the resources that the group limited when the pod was counted."""

    pod: Pod
    request: Amounts
    counted: Amounts
    is_assigned: bool

    @property
    def is_preemptible(self) -> bool:
        return names.is_preemptible(self.pod)


@dataclass(slots=True)
class Tally:
    """What is asked for and what is used: of the group's own pods, or with those of all groups below."""

    request: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    non_preemptible_request: Amounts = field(default_factory=dict)
    non_preemptible_used: Amounts = field(default_factory=dict)


class Group:
    """A quota group in its tree; `QuotaTree` keeps its sums."""

    def __init__(self, quota: ElasticQuota, *, guarantees: bool = False) -> None:
        self.children: dict[str, Group] = {}
        self.pods: dict[str, CountedPod] = {}
        self.own = Tally()
        self.all = Tally()
        """Its `request` is what the group asks its parent for; the sum below it is `child_request`."""
        self.child_request: Amounts = {}
        self.limited_request: Amounts = {}
        self.allocated: Amounts = {}
        self.guaranteed: Amounts = {}
        self.auto_scale_min: Amounts = {}
        self.sum_of_min: Counter[str] = Counter()
        """What the children are guaranteed together, in units."""
        self.runtime_units: Mapping[str, int] | None = None
        """None until it was worked out for the first time."""
        self._runtime: Amounts | None = None
        self._shares: dict[str, Share] = {}
        self.request_units: Mapping[str, int] = {}
        self.guaranteed_units: Mapping[str, int] = {}
        self.is_settled = False
        """Whether the children's runtime follows from what is known now."""
        self.describe(quota, guarantees=guarantees)

    def describe(self, quota: ElasticQuota, *, guarantees: bool) -> None:
        """Take over what the object says. With `guarantees` no group lends."""
        meta = quota.metadata
        self.quota = quota
        self.name = meta.name
        self.parent = "" if meta.name == names.ROOT else names.parent_of(meta)
        self.is_parent = names.is_parent(meta)
        self.lends = names.lends(meta) and not (guarantees and meta.name not in names.SPECIAL)
        self.min: Amounts = dict(quota.spec.min)
        self.max: Amounts = dict(quota.spec.max)
        self.shared_weight: Amounts = {} if meta.name in names.SPECIAL else names.shared_weight(quota)
        self.min_units = in_units(self.min)
        self.scaled_units: Mapping[str, int] = self.min_units
        self.auto_scale_min = self.min
        self.weight_units = in_units(self.shared_weight)
        self._shares = {}

    @property
    def runtime(self) -> Amounts | None:
        """What the group may use, as last worked out; None before that."""
        if self._runtime is None and self.runtime_units is not None:
            self._runtime = {name: of_units(name, number) for name, number in self.runtime_units.items()}
        return self._runtime

    def share(self, key: str) -> Share:
        """Return the group's side in the sharing of one resource."""
        known = self._shares.get(key)
        if known is None:
            known = self._shares[key] = Share(
                self.name,
                self.weight_units.get(key, 0),
                self.request_units.get(key, 0),
                self.scaled_units.get(key, 0),
                self.guaranteed_units.get(key, 0),
                self.lends,
            )
        return known

    def scale(self, smaller: Mapping[str, int]) -> None:
        """Let the minimum shrink to what the parent can give, or be itself again."""
        if not smaller and self.scaled_units is self.min_units:
            return
        self.scaled_units = {**self.min_units, **smaller} if smaller else self.min_units
        self.auto_scale_min = {**self.min, **{name: of_units(name, n) for name, n in smaller.items()}}
        self._shares = {}

    @property
    def is_special(self) -> bool:
        return self.name in names.SPECIAL

    def ask(self) -> Amounts:
        """Work out what the group asks its parent for; return by how much that changed."""
        floor = {} if self.lends else self.min
        self.all.request = raised(self.child_request, floor)
        before = self.limited_request
        self.limited_request = capped(self.all.request, self.max)
        self.request_units = in_units(self.limited_request)
        self._shares = {}
        change = minus(self.limited_request, before)
        return {} if is_nothing(change) else change

    def guarantee(self, limited_keys: frozenset[str], below: Amounts) -> None:
        """Work out what is allocated and guaranteed, `below` being what its children are guaranteed."""
        self.allocated = plus(below, {k: v for k, v in self.own.used.items() if k in limited_keys})
        self.guaranteed = raised(self.allocated, self.min)
        self.guaranteed_units = in_units(self.guaranteed)
        self._shares = {}

    def count(self, key: str, pod: CountedPod | None) -> tuple[Tally, Tally]:
        """Put a pod in, change it, or take it out (None); return what was counted of it, and what is now."""
        before = self.pods.pop(key, None)
        if pod is not None:
            self.pods[key] = pod
        return _tally(before), _tally(pod)

    def settle(self, runtime: Mapping[str, int]) -> None:
        """Take over what the parent's calculation gave; the level below follows from it."""
        if runtime != self.runtime_units:
            self.runtime_units = runtime
            self._runtime = None
            self.is_settled = False


def _tally(pod: CountedPod | None) -> Tally:
    if pod is None:
        return Tally()
    used = pod.counted if pod.is_assigned else {}
    if pod.is_preemptible:
        return Tally(pod.counted, used)
    return Tally(pod.counted, used, pod.counted, used)
