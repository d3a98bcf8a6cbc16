"""How objects go: at once, after a grace period, or when nothing holds them any more."""

from collections.abc import Iterable
from datetime import timedelta

import msgspec

from nodeagent.api.meta import format_time
from nodeagent.clock import Clock
from nodeagent.cluster import codec
from nodeagent.cluster.beginning import FIRST_NAMESPACES
from nodeagent.cluster.codec import Json, Object
from nodeagent.cluster.errors import conflict, forbidden
from nodeagent.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, POD, Kind, Kinds
from nodeagent.cluster.writer import Writer
from nodeagent.store import Key, Resources

DEFAULT_GRACE_SECONDS = 30
PERMANENT_NAMESPACES = FIRST_NAMESPACES


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What of DeleteOptions (meta/v1) means something here."""

    grace_period_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


class Deletion:
    """Deletes objects."""

    def __init__(self, resources: Resources, writer: Writer, kinds: Kinds, clock: Clock) -> None:
        self._resources = resources
        self._writer = writer
        self._kinds = kinds
        self._clock = clock

    def delete(self, kind: Kind, key: Key, body: bytes, options: DeleteOptions) -> Json | None:
        """Delete an object or begin to; return it as it stands then, None if it is gone."""
        item = codec.stored(kind, body)
        self._check(kind, key, item, options)
        grace_seconds = _grace_seconds(kind, item, options)
        waits = bool(item.metadata.finalizers) or kind is NAMESPACE or grace_seconds > 0
        if options.dry_run:
            return codec.to_plain(body)
        if not waits:
            self.remove(kind, key)
            return None
        marked = self._marked(kind, item, grace_seconds)
        if marked != item:
            with self._resources.transaction() as batch:
                body = self._writer.replace(batch, kind, key, item, marked)
        if kind is NAMESPACE:
            self._empty(key.name, options)
            self._finish_namespace(key.name)
        return codec.to_plain(body) if self._resources.get(key) is not None else None

    def finish(self, kind: Kind, key: Key) -> None:
        """Remove an object whose last finalizer is gone; a namespace waits for what is in it."""
        if kind is NAMESPACE:
            self._finish_namespace(key.name)
        else:
            self.remove(kind, key)

    def remove(self, kind: Kind, key: Key) -> None:
        """Remove an object now; one that is not there is no error."""
        body = self._resources.get(key)
        if body is None:
            return
        with self._resources.transaction() as batch:
            if kind is CUSTOM_RESOURCE_DEFINITION:
                # Its name is the resource whose objects go with it.
                for instance, content in self._resources.page(key.name):
                    batch.expire(instance, content)
            self._writer.remove(batch, kind, key, codec.stored(kind, body))
        if key.namespace:
            self._finish_namespace(key.namespace)

    def _check(self, kind: Kind, key: Key, item: Object, options: DeleteOptions) -> None:
        if kind is NAMESPACE and key.name in PERMANENT_NAMESPACES:
            raise forbidden(kind.resource, key.name, "this namespace may not be deleted")
        meta = item.metadata
        preconditions = (
            ("UID", options.uid, meta.uid),
            ("ResourceVersion", options.resource_version, meta.resource_version),
        )
        for name, wanted, found in preconditions:
            if wanted is not None and wanted != found:
                why = f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {found}"
                raise conflict(kind.resource, key.name, why)

    def _marked(self, kind: Kind, item: Object, grace_seconds: int) -> Object:
        """Return the object with the time of its end; a second deletion can only bring that nearer."""
        meta = item.metadata
        end = format_time(self._clock.now() + timedelta(seconds=grace_seconds))
        if meta.deletion_timestamp is not None and meta.deletion_timestamp <= end:
            return item
        seconds = grace_seconds if kind is POD else None
        marked = codec.with_metadata(item, deletion_timestamp=end, deletion_grace_period_seconds=seconds)
        if kind is NAMESPACE:
            content = {
                **marked.content,
                "status": {**marked.content.get("status", {}), "phase": "Terminating"},
            }
            return codec.JsonObject(marked.metadata, content)
        return marked

    def _empty(self, namespace: str, options: DeleteOptions) -> None:
        for kind in self._namespaced():
            for key, body in self._resources.page(kind.resource, namespace):
                self.delete(kind, key, body, DeleteOptions(grace_period_seconds=options.grace_period_seconds))

    def _finish_namespace(self, name: str) -> None:
        """Remove a namespace that is going once nothing is in it."""
        key = Key(NAMESPACE.resource, "", name)
        body = self._resources.get(key)
        if body is None:
            return
        item = codec.stored(NAMESPACE, body)
        if item.metadata.deletion_timestamp is None or item.metadata.finalizers:
            return
        if not any(self._resources.count(kind.resource, name) for kind in self._namespaced()):
            with self._resources.transaction() as batch:
                self._writer.remove(batch, NAMESPACE, key, item)

    def _namespaced(self) -> Iterable[Kind]:
        return (kind for kind in self._kinds if kind.namespaced)


def _grace_seconds(kind: Kind, item: Object, options: DeleteOptions) -> int:
    """Return how long the object stays: only a pod that may still run has time to end."""
    if kind is not POD or item.status.phase in ("Succeeded", "Failed"):
        return 0
    if options.grace_period_seconds is not None:
        return max(options.grace_period_seconds, 0)
    own = item.spec.termination_grace_period_seconds
    return DEFAULT_GRACE_SECONDS if own is None else max(own, 0)
