"""OpenAPI v3: which fields there are, for `kubectl explain`, and that the server validates them itself.

kubectl asks for the parameter `fieldValidation` of PATCH: where it is, it leaves validation to the server.
"""

import hashlib
from typing import Any

import msgspec
from aiohttp import web

from nodeagent.api.quantity import Quantity
from nodeagent.cluster.codec import Json
from nodeagent.cluster.kinds import Kind, Kinds
from nodeagent.server.api.addresses import no_such_path
from nodeagent.server.api.answers import answer

_GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
_FIELD_VALIDATION = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}


class OpenApi:
    """Answers below /openapi/v3; documents are made when somebody asks and not kept."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/openapi/v2", self._nothing)
        app.router.add_get("/openapi/v3", self._index)
        app.router.add_get("/openapi/v3/{place:.+}", self._document)

    async def _nothing(self, request: web.Request) -> web.StreamResponse:
        """Answer to kubectl's own validation (of Lists): an empty document leaves it to the server."""
        return web.Response(content_type="application/com.github.proto-openapi.spec.v2.v1.0+protobuf")

    async def _index(self, request: web.Request) -> web.StreamResponse:
        paths: Json = {}
        for kind in self._kinds:
            place = _place(kind)
            names = ",".join(each.kind for each in self._kinds if _place(each) == place)
            digest = hashlib.sha256(names.encode()).hexdigest()[:16].upper()
            paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}
        return answer({"paths": paths})

    async def _document(self, request: web.Request) -> web.StreamResponse:
        kinds = [kind for kind in self._kinds if _place(kind) == request.match_info["place"]]
        if not kinds:
            raise no_such_path()
        paths: Json = {}
        for kind in kinds:
            paths |= _paths(kind)
        return answer(
            {
                "openapi": "3.0.0",
                "info": {"title": "nodeagent", "version": "v1"},
                "paths": paths,
                "components": {"schemas": _schemas(kinds)},
            }
        )


def _place(kind: Kind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


def _paths(kind: Kind) -> Json:
    scope = "/namespaces/{namespace}" if kind.namespaced else ""
    identity = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    operation = {_GROUP_VERSION_KIND: identity, "parameters": [_FIELD_VALIDATION], "responses": {}}
    path = f"/{_place(kind)}{scope}/{kind.plural}"
    get = {**operation, "x-kubernetes-action": "get", "parameters": []}
    get["responses"] = {"200": {"description": "OK", "content": {"application/json": _reference(kind)}}}
    return {
        path: {"post": {**operation, "x-kubernetes-action": "post"}},
        f"{path}/{{name}}": {
            "get": get,
            "put": {**operation, "x-kubernetes-action": "put"},
            "patch": {**operation, "x-kubernetes-action": "patch"},
        },
    }


def _reference(kind: Kind) -> Json:
    return {"schema": {"$ref": f"#/components/schemas/{kind.kind}"}}


def _schemas(kinds: list[Kind]) -> Json:
    """Return the types' own schemas; of kinds without a type, what all objects have."""
    types = [kind.object_type for kind in kinds if kind.object_type is not None]
    _, schemas = msgspec.json.schema_components(
        types, schema_hook=_schema_of, ref_template="#/components/schemas/{name}"
    )
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    for kind in kinds:
        schema = schemas.setdefault(
            kind.kind, {"type": "object", "properties": {"metadata": {"type": "object"}}}
        )
        schema["properties"] = {**head, **schema.get("properties", {})}
        schema[_GROUP_VERSION_KIND] = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
    return schemas


def _schema_of(type: type[Any]) -> Json:
    if type is Quantity:
        return {"type": "string", "description": "an amount such as 500m or 1Gi"}
    raise NotImplementedError(f"{type} is no type of the API")
