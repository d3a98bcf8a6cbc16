"""Which quota groups may exist, and which pods may be put into them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.admission.elastic_quota import names, self_checks, topology
from nodeagent.admission.elastic_quota.defaulting import DefaultingFailed, with_defaults
from nodeagent.admission.elastic_quota.names import bound_namespaces
from nodeagent.admission.elastic_quota.topology import Surroundings
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.pod import Pod
from nodeagent.api.quantity import Quantity

MUTATING, VALIDATING = "mutating", "validating"
_SHOWN_PODS = 2


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The gates that loosen the rules."""

    guarantees: bool = False
    keys_may_differ: bool = False
    parents_take_pods: bool = False
    default_quota: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the object may be; the stage and message of a refusal, the completed object otherwise."""

    message: str = ""
    stage: str = ""
    quota: ElasticQuota | None = None

    @property
    def allowed(self) -> bool:
        return not self.stage


class QuotaWebhook:
    """Checks against the groups and pods that there are; the caller stores what it lets through."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self.groups: dict[str, ElasticQuota] = {}
        self.pods: dict[str, Pod] = {}

    def create(self, quota: ElasticQuota) -> Answer:
        """Complete a new group and check it."""
        try:
            quota = with_defaults(quota, self.groups)
        except DefaultingFailed as error:
            return Answer(str(error), MUTATING)
        return _answer(self._creation_faults(quota), quota)

    def update(self, quota: ElasticQuota) -> Answer:
        """Check the change of a group."""
        old = self.groups.get(quota.metadata.name)
        if old is not None and _is_same(old, quota):
            return Answer(quota=quota)
        return _answer(self._update_faults(quota, old), quota)

    def delete(self, name: str) -> Answer:
        """Check whether a group may go."""
        return _answer(self._deletion_faults(name), None)

    def create_pod(self, pod: Pod) -> Answer:
        """Check whether a pod may be put into its group."""
        return _answer(self._pod_faults(pod), None)

    def update_pod(self, pod: Pod) -> Answer:
        """Check the change of a pod."""
        old = self.pods.get(names.pod_key(pod))
        before = old.metadata.labels.get(names.PREEMPTIBLE) if old is not None else None
        if old is not None and before != pod.metadata.labels.get(names.PREEMPTIBLE):
            return Answer("Preemptible label is forbidden modify now.", VALIDATING)
        return self.create_pod(pod)

    def view(self) -> dict[str, Any]:
        """Return the groups and their hierarchy, as Koordinator's debug endpoint shows them."""
        hierarchy: dict[str, list[str]] = {names.ROOT: [], **{name: [] for name in self.groups}}
        for name, quota in self.groups.items():
            parent = "" if name == names.ROOT else names.parent_of(quota.metadata)
            hierarchy.setdefault(parent, []).append(name)
        return {
            "quotaInfoMap": {name: _shown(quota) for name, quota in self.groups.items()},
            "quotaHierarchyInfo": {name: sorted(children) for name, children in hierarchy.items()},
        }

    def _creation_faults(self, quota: ElasticQuota) -> Iterator[str]:
        name = quota.metadata.name
        if name in self.groups:
            yield f"AddQuota quota already exist:{name}"
        for namespace, owner in self._taken(quota):
            bound = f"namespace {namespace} is already bound to quota {owner}"
            yield f"AddQuota quota {name}'s annotation {bound}"
        yield from self_checks.faults(quota)
        yield from topology.faults(quota, None, self._surroundings(None))

    def _update_faults(self, quota: ElasticQuota, old: ElasticQuota | None) -> Iterator[str]:
        name = quota.metadata.name
        if name in (names.ROOT, names.SYSTEM):
            yield f"invalid quota {name}"
        for namespace, owner in self._taken(quota):
            yield (
                f"UpdadteQuota, quota {name} update namespaces, "
                f"but namespace {namespace} is already bound to quota {owner}"
            )
        if old is None:
            yield f"UpdateQuota quota not exist in quotaInfoMap:{name}"
        yield from self_checks.faults(quota)
        yield from topology.faults(quota, old, self._surroundings(old))

    def _deletion_faults(self, name: str) -> Iterator[str]:
        if name in names.SPECIAL:
            yield f"can not delete quotaGroup :{name}"
        if name not in self.groups:
            yield f"not found quota:{name}"
        children = self._surroundings(None).children(name)
        if children:
            yield f"delete quota failed, quota {name} has {len(children)} child quotas"
        pods = [
            pod.metadata.name
            for pod in self.pods.values()
            if pod.metadata.labels.get(names.QUOTA_NAME) == name
        ]
        if pods:
            shown = ", ".join([*pods[:_SHOWN_PODS], *(["..."] if len(pods) > _SHOWN_PODS else [])])
            yield f"delete quota failed, quota {name} has {len(pods)} child pods: {shown}"

    def _pod_faults(self, pod: Pod) -> Iterator[str]:
        quota = self.groups.get(self.quota_of(pod))
        if quota is not None and names.is_parent(quota.metadata) and not self._settings.parents_take_pods:
            yield (
                f"pod can not be linked to a parentQuotaGroup,quota:{quota.metadata.name}, "
                f"pod:{pod.metadata.name}"
            )

    def quota_of(self, pod: Pod) -> str:
        """Return the name of a pod's group; empty for the default one."""
        meta = pod.metadata
        label = meta.labels.get(names.QUOTA_NAME, "")
        if label or not self._settings.default_quota:
            return label
        named = self.groups.get(meta.namespace)
        if named is not None and named.metadata.namespace == meta.namespace:
            return meta.namespace
        bound = (
            name for name, each in self.groups.items() if meta.namespace in bound_namespaces(each.metadata)
        )
        return next(bound, "")

    def _taken(self, quota: ElasticQuota) -> Iterator[tuple[str, str]]:
        for namespace in bound_namespaces(quota.metadata):
            for name, other in self.groups.items():
                if name != quota.metadata.name and namespace in bound_namespaces(other.metadata):
                    yield namespace, name

    def _surroundings(self, old: ElasticQuota | None) -> Surroundings:
        return Surroundings(
            self.groups,
            has_bound_pods=old is not None and self._has_pods(old),
            keys_may_differ=self._settings.keys_may_differ,
            guarantees=self._settings.guarantees,
        )

    def _has_pods(self, quota: ElasticQuota) -> bool:
        name = quota.metadata.name
        namespaces = {name, *bound_namespaces(quota.metadata)}
        return any(
            pod.metadata.labels.get(names.QUOTA_NAME) == name or pod.metadata.namespace in namespaces
            for pod in self.pods.values()
        )


def _answer(faults: Iterator[str], quota: ElasticQuota | None) -> Answer:
    message = next(faults, None)
    return Answer(quota=quota) if message is None else Answer(message, VALIDATING)


def _is_same(old: ElasticQuota, new: ElasticQuota) -> bool:
    """Tell whether nothing that is checked has changed, in the spelling that it came with."""
    labels = (names.PARENT, names.IS_PARENT, names.TREE_ID)
    before, after = old.metadata, new.metadata
    return (
        all(before.labels.get(label, "") == after.labels.get(label, "") for label in labels)
        and before.annotations.get(names.NAMESPACES, "") == after.annotations.get(names.NAMESPACES, "")
        and _spelled_alike(old.spec.min, new.spec.min)
        and _spelled_alike(old.spec.max, new.spec.max)
    )


def _spelled_alike(a: Mapping[str, Quantity], b: Mapping[str, Quantity]) -> bool:
    return a.keys() == b.keys() and all(quantity.is_spelled_like(b[name]) for name, quantity in a.items())


def _shown(quota: ElasticQuota) -> dict[str, Any]:
    meta, spec = quota.metadata, quota.spec
    return {
        "name": meta.name,
        "parentName": "" if meta.name == names.ROOT else names.parent_of(meta),
        "isParent": names.is_parent(meta),
        "allowLentResource": names.lends(meta),
        "max": {name: str(amount) for name, amount in spec.max.items()} or None,
        "min": {name: str(amount) for name, amount in spec.min.items()} or None,
    }
