"""The endpoints that a kubelet has: metrics, pods, usage, configuration."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web
from prometheus_client.metrics_core import Metric

from nodeagent.metrics.cadvisor import cadvisor_families
from nodeagent.metrics.exposition import CONTENT_TYPE, exposition
from nodeagent.metrics.kubelet import health_families, kubelet_families, probe_families
from nodeagent.metrics.resource import resource_families
from nodeagent.metrics.scrape import Scrape, begin_scrape
from nodeagent.server.health import HealthChecks
from nodeagent.server.json_answers import json_response, list_response
from nodeagent.server.rest import Handler
from nodeagent.server.view import ServerView

_TRUE = ("1", "t", "T", "true", "True", "TRUE")
_END = b""


class KubeletEndpoints:
    """Serves kubelet's paths; metrics are read and written out in one thread beside the event loop."""

    def __init__(self, view: ServerView, health: HealthChecks) -> None:
        self._view = view
        self._health = health
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scrape")

    def add_routes(self, app: web.Application) -> None:
        """Serve everything but health, which has routes of its own."""
        scraped: dict[str, Callable[[Scrape], Iterable[Metric]]] = {
            "/metrics": kubelet_families,
            "/metrics/cadvisor": cadvisor_families,
            "/metrics/resource": resource_families,
            "/metrics/probes": probe_families,
            "/metrics/slis": lambda _: health_families(
                self._health.last_results(), self._health.counts.copy()
            ),
        }
        for path, families in scraped.items():
            app.router.add_get(path, self._scraped(families), allow_head=False)
        app.router.add_get("/pods", self._pods, allow_head=False)
        app.router.add_get("/runningpods/", self._running_pods, allow_head=False)
        app.router.add_get("/stats/summary", self._summary, allow_head=False)
        app.router.add_post("/stats/summary", self._summary)
        app.router.add_get("/configz", self._configz, allow_head=False)
        app.on_cleanup.append(self._close)

    def _scraped(self, families: Callable[[Scrape], Iterable[Metric]]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            pieces = exposition(families(begin_scrape(self._view.metrics)))
            response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
            await response.prepare(request)
            while piece := await self._in_thread(pieces):
                await response.write(piece)
            await response.write_eof()
            return response

        return handle

    async def _in_thread(self, pieces: Iterator[bytes]) -> bytes:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, next, pieces, _END)

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        return await list_response(request, "PodList", self._view.pods())

    async def _running_pods(self, request: web.Request) -> web.StreamResponse:
        return await list_response(request, "PodList", self._view.running_pods())

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        # The parameter may be in the address or in a POST's form.
        parameters = {**await request.post(), **request.query}
        only_cpu_and_memory = parameters.get("only_cpu_and_memory") in _TRUE
        return json_response(await self._view.summary(only_cpu_and_memory))

    async def _configz(self, request: web.Request) -> web.StreamResponse:
        return json_response(self._view.config.to_configz())

    async def _close(self, app: web.Application) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
