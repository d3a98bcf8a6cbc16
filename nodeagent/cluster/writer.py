"""Writing objects: what one costs of its namespace's quotas is written with it, or neither is."""

from collections.abc import Sequence
from typing import Any

from nodeagent.api.policy import ResourceQuota
from nodeagent.cluster import codec
from nodeagent.cluster.codec import Object
from nodeagent.cluster.kinds import RESOURCE_QUOTA, Kind, Kinds
from nodeagent.cluster.policies import StoredPolicies
from nodeagent.cluster.quota_status import recounted, settled
from nodeagent.store import Batch, Key, Resources


class Writer:
    """Puts objects and the changed quotas into a transaction."""

    def __init__(self, resources: Resources, policies: StoredPolicies, kinds: Kinds) -> None:
        self._resources = resources
        self._policies = policies
        self._kinds = kinds

    def add(self, batch: Batch, kind: Kind, key: Key, item: Object, quotas: Sequence[ResourceQuota]) -> bytes:
        """Add an object that was admitted, with the quotas as admission charged them."""
        for quota in quotas:
            self._put_quota(batch, quota)
        return self._put(batch, kind, key, item)

    def replace(self, batch: Batch, kind: Kind, key: Key, old: Object | None, new: Object) -> bytes:
        """Replace an object (None: add it), and settle what that changes of the quotas."""
        self._settle(batch, kind, key.namespace, old, new)
        return self._put(batch, kind, key, new)

    def remove(self, batch: Batch, kind: Kind, key: Key, old: Object) -> None:
        """Remove an object, and give back what it used."""
        self._settle(batch, kind, key.namespace, old, None, gone=key.name)
        batch.delete(key, lambda version: codec.encode(kind, old, version))

    def publish(self, kind: Kind, key: Key, item: Object) -> None:
        """Create or replace an object as it is; nothing is written if it stands like that already."""
        body = self._resources.get(key)
        old = codec.stored(kind, body) if body is not None else None
        if old is not None:
            same = codec.with_metadata(item, resource_version=old.metadata.resource_version)
            if same == old:
                return
        with self._resources.transaction() as batch:
            self.replace(batch, kind, key, old, item)

    def recount(self) -> None:
        """Count anew what is used of every quota."""
        namespaces = {quota.metadata.namespace for quota in self._policies.current().quotas}
        for namespace in sorted(namespaces):
            quotas = self._policies.current().quotas_of(namespace)
            counted = self._recounted(namespace, quotas)
            with self._resources.transaction() as batch:
                for before, after in zip(quotas, counted, strict=True):
                    if before.status != after.status:
                        self._put_quota(batch, after)

    def _put(self, batch: Batch, kind: Kind, key: Key, item: Object) -> bytes:
        if kind is RESOURCE_QUOTA:
            body = batch.put(key, lambda version: codec.encode(kind, item, version))
            (counted,) = self._recounted(key.namespace, (item,))
            if counted.status == item.status:
                return body
            item = counted
        return batch.put(key, lambda version: codec.encode(kind, item, version))

    def _put_quota(self, batch: Batch, quota: ResourceQuota) -> None:
        key = Key(RESOURCE_QUOTA.resource, quota.metadata.namespace, quota.metadata.name)
        batch.put(key, lambda version: codec.encode(RESOURCE_QUOTA, quota, version))

    def _settle(
        self, batch: Batch, kind: Kind, namespace: str, old: Object | None, new: Object | None, gone: str = ""
    ) -> None:
        quotas = self._policies.current().quotas_of(namespace)
        if kind is RESOURCE_QUOTA:
            quotas = tuple(quota for quota in quotas if quota.metadata.name != gone)
        for quota in settled(kind, old, new, quotas):
            self._put_quota(batch, quota)

    def _recounted(self, namespace: str, quotas: Sequence[ResourceQuota]) -> tuple[ResourceQuota, ...]:
        def objects(kind: Kind) -> list[Any]:
            rows = self._resources.page(kind.resource, namespace)
            return [item for _, item in codec.readable(kind, rows)]

        return recounted(quotas, self._kinds, objects)
