"""The application of the Kubernetes API: who asks, what about, and which part answers."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from aiohttp import web

from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.errors import ApiError
from nodeagent.cluster.kinds import SECRET
from nodeagent.server.api.addresses import Address, address_of, no_such_path
from nodeagent.server.api.answers import statuses
from nodeagent.server.api.discovery import Discovery
from nodeagent.server.api.openapi import OpenApi
from nodeagent.server.api.reading import Reading
from nodeagent.server.api.scale import SCALE, is_scalable
from nodeagent.server.api.usage import USAGE_KINDS, Summarise, UsageEndpoint
from nodeagent.server.api.who import Role, User, Who
from nodeagent.server.api.writing import Writing
from nodeagent.server.app import answered_within
from nodeagent.server.rest import Handler

if TYPE_CHECKING:
    from aiohttp.typedefs import Middleware

# As the API server's own limit for one request.
LARGEST_BODY_BYTES = 3 << 20

ANSWER_SECONDS = 60
# Beside watches and logs that are followed, which have bounds of their own.
MOST_IN_FLIGHT = 200
_TRUE = ("1", "true", "True")
_IN_TIME = answered_within(ANSWER_SECONDS)

Subresource = tuple[str, str]
"""Plural and subresource: ("pods", "log")."""


def create_api_app(
    cluster: Cluster,
    who: Who,
    now: Callable[[], datetime],
    subresources: Mapping[Subresource, Handler] | None = None,
    summarise: Summarise | None = None,
) -> web.Application:
    """Make the application; `who` authenticates.

    `subresources` answer what others know (pods/log), and `summarise` what is used just now.
    """
    middlewares = [_answered_in_time, statuses, _authorized(who)]
    app = web.Application(middlewares=middlewares, client_max_size=LARGEST_BODY_BYTES)
    if summarise is not None:
        UsageEndpoint(cluster, summarise).add_routes(app)
    Discovery(cluster.kinds, USAGE_KINDS if summarise is not None else ()).add_routes(app)
    OpenApi(cluster.kinds).add_routes(app)
    for path in ("/healthz", "/livez", "/readyz"):
        app.router.add_get(path, _healthy)
    objects = _Objects(cluster, who, now, subresources or {})
    for prefix in ("/api/{version}", "/apis/{group}/{version}"):
        app.router.add_route("*", prefix + "/{rest:.+}", objects.answer)
    return app


class _Objects:
    """Everything below a group's version."""

    def __init__(
        self,
        cluster: Cluster,
        who: Who,
        now: Callable[[], datetime],
        subresources: Mapping[Subresource, Handler],
    ) -> None:
        self._cluster = cluster
        self._who = who
        self._reading = Reading(cluster, now)
        self._writing = Writing(cluster)
        self._in_flight = 0
        self._subresources = subresources

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self._in_flight >= MOST_IN_FLIGHT:
            raise ApiError(429, "TooManyRequests", "too many requests at once: please try again later")
        is_long = _is_long(request)
        self._in_flight += not is_long
        try:
            return await self._dispatch(request)
        finally:
            self._in_flight -= not is_long

    async def _dispatch(self, request: web.Request) -> web.StreamResponse:
        address = address_of(request, self._cluster.kinds)
        _require_sight(self._who(request), address)
        special = self._subresources.get((address.kind.plural, address.subresource))
        if special is not None:
            return await special(request)
        match request.method:
            case "GET" if not _is_readable(address):
                raise no_such_path()
            case "GET" if address.name and request.query.get("watch") not in _TRUE:
                return await self._reading.get(request, address)
            case "GET":
                return await self._reading.list(request, address)
            case "POST":
                return await self._writing.create(request, address)
            case "PUT":
                return await self._writing.replace(request, address)
            case "PATCH":
                return await self._writing.patch(request, address)
            case "DELETE":
                return await self._writing.delete(request, address)
        message = "the server does not allow this method on the requested resource"
        raise ApiError(405, "MethodNotAllowed", message)


@web.middleware
async def _answered_in_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Cut off who takes too long over anything but a watch or a log that is followed."""
    return await (handler(request) if _is_long(request) else _IN_TIME(request, handler))


def _is_long(request: web.Request) -> bool:
    """Say whether the answer goes on for as long as the client likes."""
    follows = request.path.endswith("/log") and request.query.get("follow") in _TRUE
    return request.method == "GET" and (follows or request.query.get("watch") in _TRUE)


async def _healthy(request: web.Request) -> web.StreamResponse:
    """Answer that the API answers; how the agent does is said on its health port."""
    return web.Response(text="ok")


def _is_readable(address: Address) -> bool:
    return address.subresource in ("", "status") or (
        address.subresource == SCALE and is_scalable(address.kind)
    )


def _authorized(who: Who) -> "Middleware":
    """Let admins do everything, and others read."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        user = who(request)
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        if user.role is not Role.ADMIN and request.method not in ("GET", "HEAD"):
            why = f'User "{user.name}" may only read: {request.method} {request.path} is forbidden'
            raise ApiError(403, "Forbidden", why)
        return await handler(request)

    return middleware


def _require_sight(user: User | None, address: Address) -> None:
    if user is None:
        raise ApiError(401, "Unauthorized", "Unauthorized")
    if user.role is not Role.ADMIN and address.kind is SECRET:
        raise ApiError(403, "Forbidden", f'secrets is forbidden: User "{user.name}" may not see them')
