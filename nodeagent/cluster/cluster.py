"""The objects of this node's API as plain Python: list, get, create, update, delete, watch.

Objects are JSON (dicts) beginning with apiVersion and kind. Every call is complete when it returns, in one
transaction with the quotas that it changes; nothing is awaited but the next change of a watch. Refusals are
ApiErrors with the API server's words:

    cluster.create(DEPLOYMENT, "default", {"metadata": {"name": "web"}, "spec": {...}})
    cluster.modify(DEPLOYMENT, "default", "web", lambda old: {**old, "status": {...}}, subresource="status")
    async for change in cluster.watch(POD, cluster.version): ...
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from nodeagent.admission.request import Operation, Request
from nodeagent.api.meta import format_time
from nodeagent.clock import Clock
from nodeagent.cluster import codec
from nodeagent.cluster.admission import admit
from nodeagent.cluster.beginning import First, first_objects, furniture
from nodeagent.cluster.codec import Json, Object
from nodeagent.cluster.deletion import DeleteOptions, Deletion
from nodeagent.cluster.elastic_quotas import check_deletion
from nodeagent.cluster.errors import (
    ApiError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    gone,
    not_found,
)
from nodeagent.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, ELASTIC_QUOTA, NAMESPACE, POD, Kind, Kinds
from nodeagent.cluster.policies import StoredPolicies
from nodeagent.cluster.reports import MIRROR_ANNOTATION, Reports
from nodeagent.cluster.writer import Writer
from nodeagent.store import Change, Compacted, Key, Resources

Listeners = list[Callable[[list[Change]], None]]

STATUS = "status"
_KEPT_METADATA = frozenset(
    (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)
# As the API server's: no vowels, so that no words come out.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: objects as they are stored, where to go on (None: at the end), and its version."""

    items: list[tuple[Key, bytes]]
    resume_after: tuple[str, str] | None
    version: int
    remaining: int


class Cluster:
    """Everything that the API holds; one for the node."""

    def __init__(self, resources: Resources, clock: Clock) -> None:
        self.kinds = Kinds()
        self.policies = StoredPolicies(resources)
        self._resources = resources
        self._clock = clock
        self._writer = Writer(resources, self.policies, self.kinds)
        self._deletion = Deletion(resources, self._writer, self.kinds, clock)
        self.reports = Reports(resources, self._writer, self._deletion)
        self._watches: set[asyncio.Event] = set()
        self._install_definitions()
        resources.listeners.append(self._changed)

    @property
    def version(self) -> int:
        """The resource version of the newest change."""
        return self._resources.version

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """Return an object; raises ApiError 404."""
        body = self._resources.get(Key(kind.resource, namespace, name))
        if body is None:
            raise not_found(kind.resource, name)
        return codec.to_plain(body)

    def list(self, kind: Kind, namespace: str | None = None) -> list[Json]:
        """Return all objects of a kind, in one namespace or in all (None), by namespace and name."""
        return [codec.to_plain(body) for _, body in self._resources.page(kind.resource, namespace)]

    def page(self, kind: Kind, namespace: str | None, after: tuple[str, str], limit: int) -> Page:
        """Return a part of a list; a limit of 0 is none."""
        version = self.version
        items = self._resources.page(kind.resource, namespace, after, limit + 1 if limit else -1)
        if not limit or len(items) <= limit:
            return Page(items, None, version, 0)
        last = items[limit - 1][0]
        left = len(self._resources.page(kind.resource, namespace, (last.namespace, last.name)))
        return Page(items[:limit], (last.namespace, last.name), version, left)

    def create(self, kind: Kind, namespace: str, plain: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """Store a new object as admission makes it; raises ApiError 400, 403, 404, 409 or 422."""
        item = self._named(kind, namespace, codec.decode(kind, self._addressed(kind, namespace, plain)))
        name = item.metadata.name
        self._require_namespace(kind, namespace, name)
        key = Key(kind.resource, namespace, name)
        request = Request(kind.group_resource, item, dry_run=dry_run)
        admitted, quotas = admit(kind, request, self.policies.current(), self.reports.pods, self._clock.now())
        if self._resources.get(key) is not None:
            raise already_exists(kind.resource, name)
        if dry_run:
            return codec.to_plain(codec.encode(kind, admitted, self.version))
        with self._resources.transaction() as batch:
            body = self._writer.add(batch, kind, key, admitted, quotas)
        if kind is NAMESPACE:
            self._ensure(furniture(name))
        return codec.to_plain(body)

    def update(
        self, kind: Kind, plain: Mapping[str, Any], *, subresource: str = "", dry_run: bool = False
    ) -> Json:
        """Replace an object, or its status; raises ApiError 409 if it carries another resource version."""
        metadata = plain.get("metadata") or {}
        namespace = metadata.get("namespace", "") if kind.namespaced else ""
        name = metadata.get("name", "")
        return self.modify(
            kind, namespace, name, lambda _: dict(plain), subresource=subresource, dry_run=dry_run
        )

    def modify(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Json], Json],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Json:
        """Replace an object by what `change` makes of it; what only the API may set stays as it was."""
        key = Key(kind.resource, namespace, name)
        body = self._resources.get(key)
        if body is None:
            raise not_found(kind.resource, name)
        before = codec.to_plain(body)
        self._refuse_mirrors(kind, before, name, "change")
        wanted = self._addressed(kind, namespace, change(codec.to_plain(body)))
        stated = wanted.get("metadata", {}).get("resourceVersion")
        if stated and stated != before["metadata"]["resourceVersion"]:
            why = (
                "the object has been modified; please apply your changes to the latest version and try again"
            )
            raise conflict(kind.resource, name, why)
        item = codec.decode(kind, _with_kept_parts(kind, wanted, before, subresource))
        if item.metadata.name != name:
            raise bad_request(
                f"the name of the object ({item.metadata.name}) does not match the name on the URL ({name})"
            )
        old = codec.stored(kind, body)
        request = Request(kind.group_resource, item, Operation.UPDATE, old, subresource, dry_run)
        admitted, _ = admit(kind, request, self.policies.current(), self.reports.pods, self._clock.now())
        after = codec.to_plain(codec.encode(kind, admitted, int(before["metadata"]["resourceVersion"])))
        if after == before:
            return before
        if after.get("spec") != before.get("spec") and not subresource and kind is not NAMESPACE:
            admitted = codec.with_metadata(admitted, generation=(old.metadata.generation or 0) + 1)
        if dry_run:
            return codec.to_plain(codec.encode(kind, admitted, self.version))
        with self._resources.transaction() as batch:
            body = self._writer.replace(batch, kind, key, old, admitted)
        if admitted.metadata.deletion_timestamp and not admitted.metadata.finalizers and kind is not POD:
            self._deletion.finish(kind, key)
        return codec.to_plain(body)

    def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> Json | None:
        """Delete an object, or begin to: return it as it stands then, None if it is gone already.

        A pod that runs goes through its grace period first, a namespace waits for what is in it, and an
        object with finalizers for them. Raises ApiError 403, 404 or 409.
        """
        key = Key(kind.resource, namespace, name)
        body = self._resources.get(key)
        if body is None:
            raise not_found(kind.resource, name)
        self._refuse_mirrors(kind, codec.to_plain(body), name, "delete")
        if kind is ELASTIC_QUOTA:
            check_deletion(name, self.policies.current(), self.reports.pods())
        return self._deletion.delete(kind, key, body, options or DeleteOptions())

    async def watch(
        self, kind: Kind, version: int, namespace: str | None = None
    ) -> AsyncGenerator[Change, None]:
        """Yield every change of a kind's objects after a version, for ever; raises ApiError 410."""
        wake = asyncio.Event()
        self._watches.add(wake)
        try:
            while True:
                wake.clear()
                try:
                    changes = self._resources.changes_since(version)
                except Compacted as error:
                    raise gone(str(error)) from error
                for change in changes:
                    version = change.version
                    if change.key.resource == kind.resource and namespace in (None, change.key.namespace):
                        yield change
                if not changes:
                    await wake.wait()
        finally:
            self._watches.discard(wake)

    def require_remembered(self, version: int) -> None:
        """Raise ApiError 410 if a watch cannot go on from a version."""
        try:
            self._resources.changes_since(version)
        except Compacted as error:
            raise gone(str(error)) from error

    @property
    def listeners(self) -> Listeners:
        """What is called after every change, before anything else happens."""
        return self._resources.listeners

    def begin(self) -> None:
        """Make what everybody expects to be there, as far as it is missing, and count the quotas anew."""
        self._ensure(first_objects())
        for namespace in self.list(NAMESPACE):
            self._ensure(furniture(namespace["metadata"]["name"]))
        self.recount()

    def recount(self) -> None:
        """Count anew what is used of every quota."""
        self._writer.recount()

    def _ensure(self, objects: Iterable[First]) -> None:
        for kind, namespace, plain in objects:
            try:
                self.create(kind, namespace, plain)
            except ApiError as error:
                if error.reason not in ("AlreadyExists", "Forbidden"):
                    raise

    def _addressed(self, kind: Kind, namespace: str, plain: Mapping[str, Any]) -> Json:
        """Return the object with the apiVersion, kind and namespace that its address says."""
        for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
            stated = plain.get(field, expected)
            if stated != expected:
                raise bad_request(
                    f"the {field} in the data ({stated}) does not match the expected {field} ({expected})"
                )
        metadata = plain.get("metadata")
        metadata = dict(metadata) if isinstance(metadata, dict) else {}
        stated = metadata.get("namespace") or namespace
        if stated != namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if namespace:
            metadata["namespace"] = namespace
        return {**plain, "metadata": metadata}

    def _named(self, kind: Kind, namespace: str, item: Object) -> Object:
        """Give a new object what only the API may give."""
        meta = item.metadata
        if meta.resource_version:
            raise bad_request("resourceVersion should not be set on objects to be created")
        name = meta.name
        if not name and meta.generate_name:
            name = meta.generate_name[:58] + "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))
        labels = meta.labels
        if kind is NAMESPACE:
            labels = {**labels, "kubernetes.io/metadata.name": name}
        item = codec.with_metadata(
            item,
            name=name,
            labels=labels,
            uid=str(uuid4()),
            creation_timestamp=format_time(self._clock.now()),
            deletion_timestamp=None,
            deletion_grace_period_seconds=None,
            generation=1,
            managed_fields=(),
            self_link=None,
        )
        return codec.as_new(kind, item)

    def _require_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        body = self._resources.get(Key(NAMESPACE.resource, "", namespace))
        if body is None:
            raise not_found(NAMESPACE.resource, namespace)
        if codec.to_plain(body)["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(kind.resource, name, why)

    def _refuse_mirrors(self, kind: Kind, plain: Json, name: str, what: str) -> None:
        if kind is POD and MIRROR_ANNOTATION in plain["metadata"].get("annotations", {}):
            why = f"it mirrors a static pod: {what} its manifest instead"
            raise forbidden(kind.resource, name, why)

    def _changed(self, changes: Sequence[Change]) -> None:
        if any(change.key.resource == CUSTOM_RESOURCE_DEFINITION.resource for change in changes):
            self._install_definitions()
        for wake in self._watches:
            wake.set()

    def _install_definitions(self) -> None:
        self.kinds.install(self.list(CUSTOM_RESOURCE_DEFINITION))


def _with_kept_parts(kind: Kind, wanted: Json, before: Json, subresource: str) -> Json:
    """Return an object as an update may leave it; the status changes only by its subresource."""
    if subresource == STATUS:
        kept = {**before, "status": wanted.get("status", {})}
        return kept
    metadata = {**wanted["metadata"]}
    for field in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ):
        metadata.pop(field, None)
        if field in before["metadata"]:
            metadata[field] = before["metadata"][field]
    metadata.pop("managedFields", None)
    metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
    kept = {**wanted, "metadata": metadata}
    if kind.has_status:
        kept.pop("status", None)
        if "status" in before:
            kept["status"] = before["status"]
    return kept
