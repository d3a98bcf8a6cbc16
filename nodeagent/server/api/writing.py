"""Creating, replacing, patching and deleting."""

from collections.abc import Callable

import msgspec
from aiohttp import web

from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.codec import Json, to_plain
from nodeagent.cluster.deletion import DeleteOptions
from nodeagent.cluster.errors import ApiError, bad_request
from nodeagent.cluster.kinds import POD
from nodeagent.cluster.patch import apply_patch
from nodeagent.cluster.selectors import matcher
from nodeagent.server.api.addresses import Address, no_such_path
from nodeagent.server.api.answers import answer, body_of, json_of, success
from nodeagent.server.api.scale import SCALE, is_scalable, scale_of, scaled

_BINDING = "pods are bound to this node when they are created: there is no other to choose"


class Writing:
    """Answers POST, PUT, PATCH and DELETE."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Create an object, or do what a subresource of a pod stands for."""
        plain = await body_of(request)
        if address.kind is POD and address.subresource == "eviction":
            return self._evict(request, address, plain)
        if address.kind is POD and address.subresource == "binding":
            raise ApiError(405, "MethodNotAllowed", _BINDING)
        if address.name:
            raise no_such_path()
        namespace = _namespace(address)
        dry_run = _is_dry_run(request)
        return answer(self._cluster.create(address.kind, namespace, plain, dry_run=dry_run), 201)

    async def replace(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Replace an object, or its status."""
        plain = await body_of(request)
        return self._modified(request, address, lambda _: plain)

    async def patch(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Change an object, or its status, by one of the three kinds of patches."""
        content_type = request.content_type
        if content_type.startswith("application/apply-patch"):
            apply_patch(content_type, {}, {})
        patch = await json_of(request)
        return self._modified(request, address, lambda old: apply_patch(content_type, old, patch))

    async def delete(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Delete an object, or all that the selectors select."""
        options = _options(request, await body_of(request))
        if not address.name:
            return self._delete_collection(request, address, options)
        if address.subresource:
            raise no_such_path()
        namespace = _namespace(address)
        before = self._cluster.get(address.kind, namespace, address.name)
        going = self._cluster.delete(address.kind, namespace, address.name, options)
        if going is not None:
            return answer(going)
        return answer(success(address.kind.resource, address.name, before["metadata"].get("uid", "")))

    def _modified(
        self, request: web.Request, address: Address, change: Callable[[Json], Json]
    ) -> web.StreamResponse:
        subresource = address.subresource
        if subresource == SCALE and is_scalable(address.kind):
            return self._scaled(request, address, change)
        if not address.name or (subresource and not (subresource == "status" and address.kind.has_status)):
            raise no_such_path()
        modified = self._cluster.modify(
            address.kind,
            _namespace(address),
            address.name,
            change,
            subresource=subresource,
            dry_run=_is_dry_run(request),
        )
        return answer(modified)

    def _scaled(
        self, request: web.Request, address: Address, change: Callable[[Json], Json]
    ) -> web.StreamResponse:
        modified = self._cluster.modify(
            address.kind,
            _namespace(address),
            address.name,
            lambda old: scaled(old, change(scale_of(old))),
            dry_run=_is_dry_run(request),
        )
        return answer(scale_of(modified))

    def _delete_collection(
        self, request: web.Request, address: Address, options: DeleteOptions
    ) -> web.StreamResponse:
        labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
        matches = matcher(address.kind, labels, fields)
        deleted = []
        for key, body in self._cluster.page(address.kind, address.namespace, ("", ""), 0).items:
            plain = to_plain(body)
            if matches is None or matches(plain):
                self._cluster.delete(address.kind, key.namespace, key.name, options)
                deleted.append(plain)
        metadata = {"resourceVersion": str(self._cluster.version)}
        head = {"kind": f"{address.kind.kind}List", "apiVersion": address.kind.api_version}
        return answer({**head, "metadata": metadata, "items": deleted})

    def _evict(self, request: web.Request, address: Address, plain: Json) -> web.StreamResponse:
        options = plain.get("deleteOptions")
        if options is not None and not isinstance(options, dict):
            raise bad_request("deleteOptions: expected an object")
        self._cluster.delete(POD, _namespace(address), address.name, _options(request, options or {}))
        return answer(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )


def _namespace(address: Address) -> str:
    if address.namespace is None:
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method without a namespace")
    return address.namespace


def _is_dry_run(request: web.Request) -> bool:
    values = request.query.getall("dryRun", [])
    for value in values:
        if value != "All":
            raise ApiError(
                422, "Invalid", f'dryRun: Unsupported value: {value[:40]!r}: supported values: "All"'
            )
    return bool(values)


class _Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    grace_period_seconds: int | None = None
    preconditions: _Preconditions | None = None
    dry_run: list[str] | None = None


def _options(request: web.Request, plain: Json) -> DeleteOptions:
    """Read DeleteOptions from the body, and from the query where the body says nothing."""
    try:
        body = msgspec.convert(plain, _DeleteOptions)
    except msgspec.ValidationError as error:
        raise bad_request(f"the DeleteOptions cannot be read: {error}") from error
    grace = body.grace_period_seconds
    text = request.query.get("gracePeriodSeconds", "")
    if grace is None and text:
        if not text.isdecimal() or len(text) > 10:
            raise bad_request(f"gracePeriodSeconds: expected a number, got {text[:40]!r}")
        grace = int(text)
    preconditions = body.preconditions or _Preconditions()
    return DeleteOptions(
        grace_period_seconds=None if grace is None else max(0, min(grace, 2**31)),
        uid=preconditions.uid,
        resource_version=preconditions.resource_version,
        dry_run=_is_dry_run(request) or bool(body.dry_run),
    )
