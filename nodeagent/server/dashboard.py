"""The page that shows the node, and the stream of snapshots that keeps it live."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.resources import files

import msgspec
from aiohttp import web

from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.clock import Clock
from nodeagent.server.snapshot import Parts, snapshot
from nodeagent.server.streams import write_in_time
from nodeagent.server.view import DecisionQuery, ServerView
from nodeagent.stats.live_tree import LiveCgroup, read_machine, read_tree, with_rates

PAGE = "/dashboard/"
MOST_STREAMS = 8
# Shorter than any answer may take: the browser connects again by itself.
STREAM_SECONDS = 45.0
INTERVAL_SECONDS = 2.0
# Showing the node must not be a load on it: a snapshot earns a rest so many times as long as it took.
REST_FACTOR = 40.0
_FILES = {"": ("index.html", "text/html"), "page.css": ("", "text/css"), "page.js": ("", "text/javascript")}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_NEWEST = 1 << 62


class Feed:
    """Takes snapshots while somebody looks; all who look get the same ones."""

    def __init__(self, take: Callable[[], Awaitable[bytes]], clock: Clock) -> None:
        self._take = take
        self._clock = clock
        self._lock = asyncio.Lock()
        self._number = 0
        self._body = b""
        self._due = clock.monotonic()

    async def after(self, seen: int) -> tuple[int, bytes]:
        """Return a snapshot newer than number `seen`, and its number."""
        async with self._lock:
            if self._number <= seen:
                await self._clock.sleep(max(self._due - self._clock.monotonic(), 0.0))
                began = self._clock.monotonic()
                self._body = await self._take()
                ended = self._clock.monotonic()
                self._due = ended + max(INTERVAL_SECONDS, REST_FACTOR * (ended - began))
                self._number += 1
            return self._number, self._body


class Dashboard:
    """Serves the page, its script and style, and the stream."""

    def __init__(self, view: ServerView) -> None:
        self._view = view
        self._feed = Feed(self._snapshot, view.metrics.clock)
        self._streams = 0
        self._before: list[LiveCgroup] = []
        self._read_at = 0.0

    def add_routes(self, app: web.Application) -> None:
        """Everything below /dashboard/."""
        app.router.add_get(PAGE.rstrip("/"), self._redirect, allow_head=False)
        for name in _FILES:
            app.router.add_get(PAGE + name, self._file, allow_head=False)
        app.router.add_get(PAGE + "events", self._events, allow_head=False)

    async def _redirect(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(PAGE)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name = request.path.removeprefix(PAGE)
        file, content_type = _FILES[name]
        text = (files("nodeagent.server") / "page" / (file or name)).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=content_type, headers=_HEADERS)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if self._streams >= MOST_STREAMS:
            raise web.HTTPServiceUnavailable(text=f"{MOST_STREAMS} pages are being kept live already\n")
        self._streams += 1
        try:
            response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
            await response.prepare(request)
            await write_in_time(request, response, b"retry: 1000\n\n")
            with suppress(TimeoutError):
                async with asyncio.timeout(STREAM_SECONDS):
                    seen = 0
                    while True:
                        seen, body = await self._feed.after(seen)
                        await write_in_time(request, response, b"data: " + body + b"\n\n")
            await response.write_eof()
            return response
        finally:
            self._streams -= 1

    async def _snapshot(self) -> bytes:
        view = self._view
        layout = CgroupLayout(view.config.kubelet.cgroup_root)
        levels = await asyncio.to_thread(self._read, layout)
        parts = Parts(
            node=view.node(),
            layout=layout,
            levels=levels,
            cgroups=view.metrics.cgroups(),
            topology=view.metrics.topology,
            owners=view.cpu_owners(),
            headrooms=view.metrics.state().headrooms,
            newest_decision=next((number for number, _ in view.decisions(DecisionQuery(), _NEWEST, 1)), 0),
        )
        return msgspec.json.encode(snapshot(parts))

    def _read(self, layout: CgroupLayout) -> list[LiveCgroup]:
        source = self._view.metrics
        now = source.clock.monotonic()
        levels = read_tree(source.tree, layout, read_machine(source.tree, source.proc_root))
        rated = with_rates(self._before, levels, now - self._read_at)
        self._before, self._read_at = levels, now
        return rated
