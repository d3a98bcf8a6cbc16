"""Which objects a path names: `/apis/apps/v1/namespaces/shop/deployments/web/status`."""

from dataclasses import dataclass

from aiohttp import web

from nodeagent.cluster.errors import ApiError
from nodeagent.cluster.kinds import NAMESPACE, Kind, Kinds

_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Address:
    """One object, or with an empty name all of a kind: in a namespace, or in all of them (None)."""

    kind: Kind
    namespace: str | None
    name: str = ""
    subresource: str = ""


def address_of(request: web.Request, kinds: Kinds) -> Address:
    """Return what the request is about; raises ApiError 404."""
    found = request.match_info
    parts = found["rest"].strip("/").split("/")
    namespace: str | None = None
    inside = len(parts) >= 3 and not (len(parts) == 3 and parts[2] in _OF_NAMESPACES)
    if parts[0] == NAMESPACE.plural and inside:
        namespace, parts = parts[1], parts[2:]
    kind = kinds.find(found.get("group", ""), found["version"], parts[0])
    if kind is None or len(parts) > 3 or not all(parts) or (namespace is not None) > kind.namespaced:
        raise no_such_path()
    if kind.namespaced and namespace is None and len(parts) > 1:
        raise no_such_path()
    name, subresource = (*parts[1:], "", "")[:2]
    return Address(kind, namespace if kind.namespaced else "", name, subresource)


def no_such_path() -> ApiError:
    """Return the answer about a path that names nothing."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")
