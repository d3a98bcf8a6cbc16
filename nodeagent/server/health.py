"""`/healthz` as kubelet answers it: named checks, a word when all is well, a list when it is not."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from aiohttp import web

from nodeagent.server.view import HealthCheck

logger = logging.getLogger(__name__)

_HEADERS = {"X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class _Report:
    """One run over the checks."""

    lines: tuple[str, ...]
    healthy: bool


class HealthChecks:
    """Runs the checks, and remembers how they went for `/metrics/slis`."""

    def __init__(self, checks: Mapping[str, HealthCheck]) -> None:
        self._checks: dict[str, HealthCheck] = {"ping": lambda: None, **checks}
        self.counts: Counter[tuple[str, str]] = Counter()

    def add_routes(self, app: web.Application) -> None:
        """Serve `/healthz` and each check below it."""
        app.router.add_get("/healthz", self._all, allow_head=False)
        app.router.add_get("/healthz/{name}", self._one, allow_head=False)

    def last_results(self) -> dict[str, bool]:
        """Run every check and return how it went, by name."""
        return {name: self._run(name) is None for name in self._checks}

    async def _all(self, request: web.Request) -> web.Response:
        report = self._report(request.query.getall("exclude", []))
        if not report.healthy:
            return _text("\n".join((*report.lines, "healthz check failed\n")), status=500)
        if "verbose" in request.query:
            return _text("\n".join((*report.lines, "healthz check passed\n")))
        return _text("ok")

    async def _one(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._checks:
            return _text("404 page not found\n", status=404)
        if self._run(name) is None:
            return _text("ok")
        return _text("internal server error: reason withheld\n", status=500)

    def _report(self, excluded: Collection[str]) -> _Report:
        lines = []
        healthy = True
        for name in self._checks:
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif self._run(name) is None:
                lines.append(f"[+]{name} ok")
            else:
                lines.append(f"[-]{name} failed: reason withheld")
                healthy = False
        return _Report(tuple(lines), healthy)

    def _run(self, name: str) -> str | None:
        reason = self._checks[name]()
        self.counts[name, "error" if reason else "success"] += 1
        if reason:
            # Whoever asks without credentials learns that something is wrong, not what.
            logger.warning("health check %s failed: %s", name, reason)
        return reason


def _text(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, headers=_HEADERS)
