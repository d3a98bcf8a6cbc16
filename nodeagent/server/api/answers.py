"""Requests' bodies and answers: JSON in, JSON or a table out, every refusal a Status."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from nodeagent.cluster.codec import Json
from nodeagent.cluster.errors import ApiError, bad_request
from nodeagent.server.api import protobuf
from nodeagent.server.rest import Handler
from nodeagent.store import StoreError

logger = logging.getLogger(__name__)

_JSON_TYPES = ("application/json", "application/octet-stream", "")


def answer(plain: Mapping[str, Any], status: int = 200) -> web.Response:
    """Answer with an object."""
    body = msgspec.json.encode(plain)
    return web.Response(body=body, status=status, content_type="application/json")


def success(resource: str, name: str, uid: str) -> Json:
    """Return the Status that tells that an object is gone."""
    plural, _, group = resource.partition(".")
    details = {"name": name, **({"group": group} if group else {}), "kind": plural, "uid": uid}
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    return {**head, "status": "Success", "details": details}


async def body_of(request: web.Request) -> Json:
    """Return the body, a JSON object ({} for none); raises ApiError 400, 413 or 415."""
    if request.content_type == protobuf.CONTENT_TYPE:
        data = await _read(request)
        return protobuf.decode(data) if data else {}
    if request.content_type not in _JSON_TYPES:
        message = (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json"
        )
        raise ApiError(415, "UnsupportedMediaType", message)
    plain = await json_of(request)
    if not isinstance(plain, dict):
        raise bad_request("the object provided is unrecognized: expected a JSON object")
    return plain


async def json_of(request: web.Request) -> object:
    """Return the body as JSON, {} for none; raises ApiError 400 or 413."""
    data = await _read(request)
    if not data:
        return {}
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized: it is not JSON: {error}") from error


async def _read(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise ApiError(413, "RequestEntityTooLarge", "Request entity too large") from error


def as_table(request: web.Request) -> bool:
    """Whether the client would rather have a table than objects (meta.k8s.io/v1)."""
    for accepted in request.headers.get("Accept", "").split(","):
        parameters = {part.strip() for part in accepted.split(";")[1:]}
        if "as=Table" in parameters and "v=v1" in parameters:
            return True
    return False


@web.middleware
async def statuses(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every refusal into a Status."""
    try:
        return await handler(request)
    except ApiError as error:
        refusal = error
    except StoreError as error:
        logger.error("%s %s: %s", request.method, request.path, error)
        refusal = ApiError(500, "InternalError", f"Internal error occurred: {error}")
    except web.HTTPNotFound:
        refusal = ApiError(404, "NotFound", "the server could not find the requested resource")
    except web.HTTPMethodNotAllowed:
        message = "the server does not allow this method on the requested resource"
        refusal = ApiError(405, "MethodNotAllowed", message)
    return answer(refusal.status(), refusal.code)
