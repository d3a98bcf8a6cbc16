"""All quota groups of a cluster, the nodes whose resources they share and the pods counted in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.amounts import Amounts, masked, minus, plus
from nodeagent.admission.elastic_quota.group import CountedPod, Group
from nodeagent.admission.elastic_quota.tree import QuotaTree
from nodeagent.api.elastic_quota import ElasticQuota, ElasticQuotaSpec
from nodeagent.api.meta import ObjectMeta, parse_time
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.api.quantity import Quantity
from nodeagent.api.resources import CPU, MEMORY, pod_requests

DEFAULT_TREE = ""
ENDED = ("Succeeded", "Failed")
_UNBOUNDED = Quantity.of((2**63 - 1) // 5)


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """ElasticQuotaArgs and the feature gates, by what they do; the defaults are Koordinator's."""

    runtime_quota: bool = True
    min_quota_scale: bool = True
    check_parents: bool = False
    default_quota_preemption: bool = False
    revokes: bool = False
    delay_evict_seconds: float = 120.0
    namespace: str = "koordinator-system"
    guarantees: bool = False
    default_quota: bool = True
    many_trees: bool = False
    counts_overhead: bool = True
    ignores_terminating: bool = False
    ignores_terminating_at_once: bool = False


class Quotas:
    """Follows events; every answer depends only on what there is, not on how it came to be."""

    def __init__(self, settings: QuotaSettings, now: Callable[[], datetime]) -> None:
        self.settings = settings
        self._now = now
        self._nodes: dict[str, Node] = {}
        self._allocatable: Amounts = {}
        self._pods: dict[str, str] = {}
        """The group of each pod, by the pod's key."""
        self._tree_of: dict[str, str] = {}
        self._bound: dict[str, str] = {}
        """The quota that lists a namespace."""
        self.trees: dict[str, QuotaTree] = {}
        tree = self._tree(DEFAULT_TREE)
        for name in (names.SYSTEM, names.DEFAULT):
            bound = {CPU: _UNBOUNDED, MEMORY: _UNBOUNDED}
            tree.put(_special(name, settings.namespace, bound))
            self._tree_of[name] = DEFAULT_TREE

    # ---- what there is

    def put_node(self, node: Node) -> None:
        """Count a node's allocatable."""
        self._nodes[node.metadata.name] = node
        self._share_out()

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)
        self._share_out()

    def put_quota(self, quota: ElasticQuota) -> None:
        """Add or change a group."""
        name = quota.metadata.name
        if name == names.ROOT:
            return
        tree_id = quota.metadata.labels.get(names.TREE_ID, "") if self.settings.many_trees else DEFAULT_TREE
        if name in self._tree_of and self._tree_of[name] != tree_id:
            self.remove_quota(name)
        self._tree_of[name] = tree_id
        self._bind(name, quota.metadata)
        self._tree(tree_id).put(quota)
        if tree_id != DEFAULT_TREE:
            self._share_out()

    def remove_quota(self, name: str) -> None:
        """Forget a group, and with it the pods counted in it."""
        tree_id = self._tree_of.pop(name, None)
        if tree_id is None:
            return
        group = self.trees[tree_id].remove(name)
        for key in group.pods if group is not None else ():
            self._pods.pop(key, None)
        self._bind(name, ObjectMeta())
        if tree_id != DEFAULT_TREE or name in names.SPECIAL:
            self._share_out()

    def put_pod(self, pod: Pod) -> None:
        """Count a pod, as it is now, in its group."""
        key = names.pod_key(pod)
        known = self._counted(key)
        if self._is_ignored(pod):
            self.remove_pod(key)
            return
        group = self.group_for(pod)
        was_assigned = known is not None and known.is_assigned
        assigned = pod.status.phase not in ENDED and (bool(pod.spec.node_name) or was_assigned)
        if self._pods.get(key) != (group.name if group is not None else None):
            self.remove_pod(key)
        if group is not None:
            self._count(group, key, self._as_counted(pod, group, is_assigned=assigned))

    def remove_pod(self, key: str) -> None:
        """Forget a pod, by namespace/name."""
        name = self._pods.pop(key, None)
        if name is not None:
            tree = self.tree_of(name)
            self._count_in(tree, tree.groups[name], key, None)

    def reserve(self, key: str, *, is_assigned: bool = True) -> None:
        """Count a pod as using what it asks for, or take that back."""
        group, counted = self.group_of_pod(key), self._counted(key)
        if group is not None and counted is not None:
            changed = CountedPod(counted.pod, counted.request, counted.counted, is_assigned)
            self._count(group, key, changed)

    def migrate_default(self) -> None:
        """Move the pods that sit in the default group to their own, if that exists by now."""
        default = self.group(names.DEFAULT)
        for key, counted in list(default.pods.items() if default is not None else ()):
            group = self.group_for(counted.pod)
            if group is not None and group is not default:
                self.remove_pod(key)
                moved = self._as_counted(counted.pod, group, is_assigned=counted.is_assigned)
                self._count(group, key, moved)

    # ---- what follows

    def group(self, name: str) -> Group | None:
        """Return a group by its name."""
        tree_id = self._tree_of.get(name, DEFAULT_TREE)
        return self.trees[tree_id].groups.get(name)

    def tree_of(self, name: str) -> QuotaTree:
        """Return the tree that a group is in."""
        return self.trees[self._tree_of.get(name, DEFAULT_TREE)]

    def groups(self) -> list[Group]:
        """Return every group but the roots, as they were created."""
        return [group for name in self._tree_of if (group := self.group(name)) is not None]

    def group_of_pod(self, key: str) -> Group | None:
        """Return the group that a pod is counted in."""
        name = self._pods.get(key)
        return None if name is None else self.group(name)

    def group_for(self, pod: Pod) -> Group | None:
        """Return the group that a pod belongs to; None is outside of quotas."""
        meta = pod.metadata
        name = meta.labels.get(names.QUOTA_NAME, "")
        if not self.settings.default_quota:
            return self.group(name) if name in self._tree_of else None
        if not name:
            name = self._named_like(meta.namespace) or self._bound.get(meta.namespace, "")
        if name not in self._tree_of and name != names.ROOT:
            name = names.DEFAULT
        return self.group(name)

    def refresh(self, name: str) -> None:
        """Work out what a group may use."""
        self.tree_of(name).refresh(name)

    def refresh_all(self) -> None:
        """Work out what every group may use."""
        for tree in self.trees.values():
            tree.refresh_all()

    def limit(self, group: Group) -> Mapping[str, Quantity]:
        """Return what a group may use, as last worked out."""
        if not self.settings.runtime_quota:
            return group.max
        return group.runtime or {}

    def request_of(self, pod: Pod) -> Amounts:
        """Return what a pod asks for."""
        return pod_requests(pod, overhead=self.settings.counts_overhead)

    def total(self, tree_id: str) -> Amounts:
        """Return the resources of a tree, before the system's and the default group's pods are taken off."""
        if tree_id != DEFAULT_TREE:
            return self.trees[tree_id].total
        total = self._allocatable
        for own in self._roots():
            if own.quota.metadata.labels.get(names.IGNORE_DEFAULT_TREE) != names.TRUE:
                total = minus(total, masked(_total_resource(own), total.keys()))
        return total

    # ---- how it is kept

    def _tree(self, tree_id: str) -> QuotaTree:
        if tree_id not in self.trees:
            settings = self.settings
            self.trees[tree_id] = QuotaTree(
                tree_id, scales_min=settings.min_quota_scale, guarantees=settings.guarantees
            )
        return self.trees[tree_id]

    def _roots(self) -> list[Group]:
        """Return the groups that stand for a pool of nodes each."""
        return [
            group
            for tree_id, tree in self.trees.items()
            if tree_id != DEFAULT_TREE
            for group in tree.root.children.values()
            if group.quota.metadata.labels.get(names.IS_ROOT) == names.TRUE
        ]

    def _share_out(self) -> None:
        self._allocatable = {}
        for name in sorted(self._nodes):
            self._allocatable = plus(self._allocatable, self._nodes[name].status.allocatable)
        for own in self._roots():
            self.tree_of(own.name).set_total(_total_resource(own))
        self._share_out_default()

    def _share_out_default(self) -> None:
        total = self.total(DEFAULT_TREE)
        for name in (names.SYSTEM, names.DEFAULT):
            group = self.group(name)
            total = minus(total, group.all.used if group is not None else {})
        self.trees[DEFAULT_TREE].set_total(total)

    def _bind(self, name: str, meta: ObjectMeta) -> None:
        """Follow which namespaces a quota lists; the first to list one keeps it."""
        for namespace in [each for each, owner in self._bound.items() if owner == name]:
            del self._bound[namespace]
        for namespace in names.bound_namespaces(meta):
            self._bound.setdefault(namespace, name)

    def _named_like(self, namespace: str) -> str:
        group = self.group(namespace)
        return namespace if group is not None and group.quota.metadata.namespace == namespace else ""

    def _is_ignored(self, pod: Pod) -> bool:
        """Tell whether a pod that is on its way out counts no more."""
        ended = pod.metadata.deletion_timestamp
        if ended is None:
            return False
        grace = timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
        is_over = self._now() > parse_time(ended) + grace
        return self.settings.ignores_terminating_at_once or (self.settings.ignores_terminating and is_over)

    def _as_counted(self, pod: Pod, group: Group, *, is_assigned: bool) -> CountedPod:
        request = self.request_of(pod)
        return CountedPod(pod, request, masked(request, group.max.keys()), is_assigned)

    def _counted(self, key: str) -> CountedPod | None:
        group = self.group_of_pod(key)
        return None if group is None else group.pods.get(key)

    def _count(self, group: Group, key: str, pod: CountedPod) -> None:
        self._pods[key] = group.name
        self._count_in(self.tree_of(group.name), group, key, pod)

    def _count_in(self, tree: QuotaTree, group: Group, key: str, pod: CountedPod | None) -> None:
        tree.count(group, key, pod)
        if group.is_special:
            self._share_out_default()


def _total_resource(group: Group) -> Amounts:
    try:
        return names.read_amounts(group.quota.metadata.annotations.get(names.TOTAL_RESOURCE, ""))
    except ValueError:
        return {}


def _special(name: str, namespace: str, bound: Amounts) -> ElasticQuota:
    return ElasticQuota(metadata=ObjectMeta(name=name, namespace=namespace), spec=ElasticQuotaSpec(max=bound))
