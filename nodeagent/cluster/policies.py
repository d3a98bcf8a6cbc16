"""The stored policies as admission wants them, kept decoded: every admission asks for them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from nodeagent.admission.policies import Policies
from nodeagent.api.admission_configuration import LimitedResource
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.cluster import codec
from nodeagent.cluster.kinds import ELASTIC_QUOTA, LIMIT_RANGE, PRIORITY_CLASS, RESOURCE_QUOTA, Kind
from nodeagent.store import Change, Key, Resources

_KINDS = {kind.resource: kind for kind in (LIMIT_RANGE, PRIORITY_CLASS, RESOURCE_QUOTA, ELASTIC_QUOTA)}


class StoredPolicies:
    """LimitRanges, ResourceQuotas and PriorityClasses by key; follows every change."""

    def __init__(self, resources: Resources) -> None:
        self.limited_resources: tuple[LimitedResource, ...] = ()
        """What may only be used under a quota: from the AdmissionConfiguration beside the manifests."""
        self.groups_of_manifests: tuple[ElasticQuota, ...] = ()
        """Groups beside those of the API, to which they may be parents."""
        self._items: dict[str, dict[Key, Any]] = {name: {} for name in _KINDS}
        self._current: Policies | None = None
        for resource, kind in _KINDS.items():
            self._items[resource].update(codec.readable(kind, resources.page(resource)))
        resources.listeners.append(self._changed)

    def current(self) -> Policies:
        """Return all policies as they are stored."""
        if self._current is None:
            self._current = Policies(
                priority_classes=self._all(PRIORITY_CLASS),
                limit_ranges=self._all(LIMIT_RANGE),
                quotas=self._all(RESOURCE_QUOTA),
                elastic_quotas=self._all(ELASTIC_QUOTA),
            )
        return replace(
            self._current,
            limited_resources=self.limited_resources,
            elastic_quotas=(*self.groups_of_manifests, *self._current.elastic_quotas),
        )

    def _all(self, kind: Kind) -> tuple[Any, ...]:
        items = self._items[kind.resource]
        return tuple(items[key] for key in sorted(items))

    def _changed(self, changes: Iterable[Change]) -> None:
        for change in changes:
            kind = _KINDS.get(change.key.resource)
            if kind is None:
                continue
            self._current = None
            if change.type == "DELETED":
                self._items[kind.resource].pop(change.key, None)
            else:
                self._items[kind.resource][change.key] = codec.stored(kind, change.body)


def combined(first: Policies, second: Policies) -> Policies:
    """Return the policies of two sources; where both use a name, the first source's counts."""
    known = {each.metadata.name for each in first.priority_classes}
    groups = {each.metadata.name: each for each in (*second.elastic_quotas, *first.elastic_quotas)}
    return replace(
        first,
        priority_classes=(
            *first.priority_classes,
            *(each for each in second.priority_classes if each.metadata.name not in known),
        ),
        limit_ranges=(*first.limit_ranges, *second.limit_ranges),
        quotas=(*first.quotas, *second.quotas),
        elastic_quotas=tuple(groups.values()),
        limited_resources=first.limited_resources or second.limited_resources,
    )
