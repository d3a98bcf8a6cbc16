"""The web applications: the read-only server, and the health port."""

import asyncio
import logging
from typing import TYPE_CHECKING

from aiohttp import web

from nodeagent.server.dashboard import Dashboard
from nodeagent.server.decisions import DecisionEndpoints
from nodeagent.server.elastic_quota import ElasticQuotaEndpoints
from nodeagent.server.health import HealthChecks
from nodeagent.server.kubelet import KubeletEndpoints
from nodeagent.server.rest import Handler, add_rest_routes, status_errors
from nodeagent.server.view import ServerView

if TYPE_CHECKING:
    # Older releases of aiohttp have no name for it.
    from aiohttp.typedefs import Middleware

logger = logging.getLogger(__name__)

_ANSWER_SECONDS = 60
_BODY_BYTES = 64 * 1024
# nginx's code, for the access log only: nobody is there to read it.
_CLIENT_WENT_AWAY = 499


def create_app(view: ServerView) -> web.Application:
    """Make the read-only server's application: kubelet's endpoints and the Kubernetes REST subset."""
    app = web.Application(
        middlewares=[answered_within(_ANSWER_SECONDS), status_errors], client_max_size=_BODY_BYTES
    )
    health = HealthChecks(view.health_checks)
    health.add_routes(app)
    KubeletEndpoints(view, health).add_routes(app)
    DecisionEndpoints(view).add_routes(app)
    Dashboard(view).add_routes(app)
    ElasticQuotaEndpoints(view).add_routes(app)
    add_rest_routes(app, view)
    return app


def create_healthz_app(view: ServerView) -> web.Application:
    """Make the application of the health port, which answers nothing else."""
    app = web.Application(middlewares=[answered_within(_ANSWER_SECONDS)], client_max_size=_BODY_BYTES)
    HealthChecks(view.health_checks).add_routes(app)
    return app


def answered_within(seconds: float) -> "Middleware":
    """Cut off a client that has not taken its answer in time; half of one may be out already."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            async with asyncio.timeout(seconds):
                return await handler(request)
        except TimeoutError:
            logger.warning("%s %s: not answered within %g s, cut off", request.method, request.path, seconds)
            request.protocol.force_close()
            raise web.HTTPGatewayTimeout from None
        except ConnectionResetError:
            # The client went away in the middle of its answer, which is its own affair.
            return web.Response(status=_CLIENT_WENT_AWAY)

    return middleware
