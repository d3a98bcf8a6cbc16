"""The web applications: the read-only server, and the health port."""

import asyncio

from aiohttp import web

from nodeagent.server.health import HealthChecks
from nodeagent.server.kubelet import KubeletEndpoints
from nodeagent.server.rest import Handler, add_rest_routes, status_errors
from nodeagent.server.view import ServerView

_ANSWER_SECONDS = 60
_BODY_BYTES = 64 * 1024


def create_app(view: ServerView) -> web.Application:
    """Make the read-only server's application: kubelet's endpoints and the Kubernetes REST subset."""
    app = web.Application(middlewares=[bounded, status_errors], client_max_size=_BODY_BYTES)
    health = HealthChecks(view.health_checks)
    health.add_routes(app)
    KubeletEndpoints(view, health).add_routes(app)
    add_rest_routes(app, view)
    return app


def create_healthz_app(view: ServerView) -> web.Application:
    """Make the application of the health port, which answers nothing else."""
    app = web.Application(middlewares=[bounded], client_max_size=_BODY_BYTES)
    HealthChecks(view.health_checks).add_routes(app)
    return app


@web.middleware
async def bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give every answer a time by which it must have been taken."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await handler(request)
    except TimeoutError:
        raise web.HTTPGatewayTimeout(text=f"no answer within {_ANSWER_SECONDS} seconds\n") from None
