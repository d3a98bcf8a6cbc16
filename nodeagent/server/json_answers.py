"""Objects as JSON answers: single ones, long lists in pieces, refusals as Status."""

import asyncio
from collections.abc import Sequence

import msgspec
from aiohttp import web

from nodeagent.api.base import ApiObject
from nodeagent.api.decode import to_json

# A hundred pods take a millisecond or two to write.
_BATCH = 100


def json_response(value: object, status: int = 200) -> web.Response:
    """Answer with any value that msgspec can write."""
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


def object_response(value: ApiObject) -> web.Response:
    """Answer with one object of the API."""
    return web.Response(body=to_json(value), content_type="application/json")


async def list_response(request: web.Request, kind: str, items: Sequence[ApiObject]) -> web.StreamResponse:
    """Answer with a list, written in batches between which the event loop does its other work."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"kind":"%b","apiVersion":"v1","metadata":{},"items":[' % kind.encode())
    for start in range(0, len(items), _BATCH):
        batch = b",".join(to_json(item) for item in items[start : start + _BATCH])
        await response.write(b"," + batch if start else batch)
        await asyncio.sleep(0)
    await response.write(b"]}")
    await response.write_eof()
    return response


def status_response(
    code: int, reason: str, message: str, details: dict[str, str] | None = None
) -> web.Response:
    """Answer with a Status, as the API server refuses."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({"details": details} if details else {}),
        "code": code,
    }
    return json_response(status, code)
