"""What was decided about pods, under a path of our own: `/nodeagent/v1/decisions`."""

import asyncio

from aiohttp import web

from nodeagent.server.json_answers import status_response
from nodeagent.server.paths import DECISIONS
from nodeagent.server.view import DecisionQuery, ServerView

KINDS = {"admission": "Admission", "eviction": "Eviction"}
MOST, USUAL = 1000, 100
_PARAMETERS = frozenset(("pod", "kind", "limit"))
# Of a full node, one decision can be some tens of kilobytes.
_BATCH = 10
_BEYOND_ALL = 1 << 62


class BadQuery(ValueError):
    """A parameter that cannot be understood; the text says what was expected."""


class DecisionEndpoints:
    """Answers with decisions, newest first."""

    def __init__(self, view: ServerView) -> None:
        self._view = view

    def add_routes(self, app: web.Application) -> None:
        """Serve the list, and each decision below it by its number."""
        app.router.add_get(DECISIONS, self._list, allow_head=False)
        app.router.add_get(DECISIONS + r"/{number:\d{1,18}}", self._one, allow_head=False)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        try:
            query = parse_query(dict(request.query))
        except BadQuery as error:
            return status_response(400, "BadRequest", str(error))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"kind":"DecisionList","apiVersion":"nodeagent.io/v1alpha1","items":[')
        before, left, comma = _BEYOND_ALL, query.limit, b""
        while left > 0 and (page := self._view.decisions(query, before, min(left, _BATCH))):
            await response.write(comma + b",".join(body for _, body in page))
            before, left, comma = page[-1][0], left - len(page), b","
            await asyncio.sleep(0)
        await response.write(b"]}")
        await response.write_eof()
        return response

    async def _one(self, request: web.Request) -> web.StreamResponse:
        number = int(request.match_info["number"])
        for found, body in self._view.decisions(DecisionQuery(), number + 1, 1):
            if found == number:
                return web.Response(body=body, content_type="application/json")
        return status_response(404, "NotFound", f"decision {number} not found: the newest {MOST} are kept")


def parse_query(parameters: dict[str, str]) -> DecisionQuery:
    """Read the parameters of the list. Raises BadQuery."""
    unknown = sorted(parameters.keys() - _PARAMETERS)
    if unknown:
        raise BadQuery(f"{unknown[0]}: expected one of {', '.join(sorted(_PARAMETERS))}")
    kind, pod, limit = (parameters.get(name) for name in ("kind", "pod", "limit"))
    if kind is not None and kind not in KINDS:
        raise BadQuery(f"kind {kind!r}: expected {' or '.join(KINDS)}")
    namespace, slash, name = (pod or "").partition("/")
    if pod is not None and not (namespace and slash and name):
        raise BadQuery(f"pod {pod!r}: expected NAMESPACE/NAME")
    if limit is not None and not (limit.isdecimal() and limit.isascii() and 1 <= int(limit[:9]) <= MOST):
        raise BadQuery(f"limit {limit!r}: expected 1 to {MOST}")
    return DecisionQuery(
        kind=KINDS[kind] if kind else None,
        pod=(namespace, name) if pod else None,
        limit=int(limit) if limit else USUAL,
    )
