"""The dashboard: what it is told, and what a browser makes of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from nodeagent.api.quantity import Quantity
from nodeagent.eviction.pace import Headroom
from nodeagent.eviction.signals import Signal
from nodeagent.eviction.thresholds import Amount, Threshold
from nodeagent.metrics.source import AgentState
from nodeagent.server.app import create_app
from nodeagent.server.dashboard import MOST_STREAMS, Feed
from nodeagent.server.view import DecisionQuery
from nodeagent.stats.live_tree import LiveCgroup, Usage, with_rates
from tests.unit.browser import CHROMIUM, browser
from tests.unit.shown_node import WEB, WEB_MAIN, ShownNode, cgroup_files, make_pod, write_cgroup

Client = TestClient[Any, Any]
NASTY = "<img src=x onerror=alert(1)>"


class TickingClock:
    """Time passes as long as somebody sleeps, and nobody has to wait for it."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0.01)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[ShownNode]:
    shown = ShownNode(tmp_path / "node")
    shown.clock = TickingClock()  # type: ignore[assignment]
    yield shown
    shown.close()


@pytest.fixture
async def client(node: ShownNode) -> AsyncIterator[Client]:
    async with TestClient(TestServer(create_app(node))) as client:
        yield client


async def first_snapshot(client: Client) -> dict[str, Any]:
    async with client.get("/dashboard/events") as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        async for line in stream.content:
            if line.startswith(b"data: "):
                return dict(json.loads(line.removeprefix(b"data: ")))
    raise AssertionError("the stream ended without a snapshot")


def level(snapshot: dict[str, Any], path: str) -> dict[str, Any]:
    return next(each for each in snapshot["tree"] if each["path"] == path)


async def test_the_tree_says_who_uses_what_and_what_binds(client: Client) -> None:
    snapshot = await first_snapshot(client)
    pod, container = level(snapshot, WEB), level(snapshot, WEB_MAIN)
    assert (pod["name"], pod["depth"], container["name"], container["depth"]) == ("shop/web", 2, "main", 3)
    assert container["used"]["memory"] == 1000
    assert container["bounds"]["memory"] == {
        "path": WEB_MAIN,
        "limit": 4096,
        "left": 3096,
        "file": "memory.max",
        "place": "self",
    }
    assert container["bounds"]["pids"]["place"] == "machine"


async def test_gauges_say_what_is_left_and_for_how_long(node: ShownNode, client: Client) -> None:
    threshold = Threshold(Signal.MEMORY_AVAILABLE, Amount(quantity=Quantity.parse("100Mi")))
    gauge = Headroom(threshold, 300 * 2**20, 12.5, 400 * 2**20)
    node.state = lambda: AgentState(headrooms=(gauge,))  # type: ignore[method-assign]
    assert (await first_snapshot(client))["headroom"] == [
        {
            "signal": "memory.available",
            "hard": True,
            "unit": "bytes",
            "available": 400 * 2**20,
            "left": 300 * 2**20,
            "seconds": 12.5,
        }
    ]


async def test_every_cpu_has_an_owner(client: Client) -> None:
    cpus = {cpu["cpu"]: cpu["owner"] for cpu in (await first_snapshot(client))["cpus"]}
    assert cpus == {0: "reserved", 1: "shared", 2: "shop/web/main", 3: "shop/web/main"}


def test_rates_are_those_between_two_readings() -> None:
    before = [LiveCgroup("a", "pod", {}, Usage(cpu_usec=2_500_000, periods=40, throttled_periods=10))]
    after = [
        LiveCgroup("a", "pod", {}, Usage(cpu_usec=3_500_000, periods=80, throttled_periods=40)),
        LiveCgroup("new", "pod", {}, Usage(cpu_usec=1)),
    ]
    known, new = with_rates(before, after, seconds=2.0)
    # one second of work in two; 30 of 40 periods held back
    assert (known.cpu_milli, known.throttled_share) == (500, 0.75)
    assert (new.cpu_milli, new.throttled_share) == (None, None)


async def test_one_reading_serves_all_and_earns_a_rest() -> None:
    clock = TickingClock()
    taken: list[float] = []

    async def take() -> bytes:
        taken.append(clock.monotonic())
        await clock.sleep(1.0)
        return b"%d" % len(taken)

    feed = Feed(take, clock)
    assert await feed.after(0) == (1, b"1")
    assert await feed.after(0) == (1, b"1")
    assert await feed.after(1) == (2, b"2")
    # the first took one second, from 0 to 1, and earned forty
    assert taken == [0.0, 41.0]


async def test_only_so_many_pages_are_kept_live(client: Client) -> None:
    streams = [await client.get("/dashboard/events") for _ in range(MOST_STREAMS)]
    refused = await client.get("/dashboard/events")
    assert refused.status == 503
    for stream in streams:
        stream.close()


async def test_the_page_is_small_complete_and_may_load_nothing_else(client: Client) -> None:
    size = 0
    for path in ("/dashboard/", "/dashboard/page.css", "/dashboard/page.js"):
        answer = await client.get(path)
        text = await answer.text()
        assert answer.status == 200
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
        assert "http://" not in text and "https://" not in text and "innerHTML" not in text
        size += len(text)
    assert size < 100_000
    redirected = await client.get("/dashboard", allow_redirects=False)
    assert (redirected.status, redirected.headers["Location"]) == (302, "/dashboard/")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")
class TestInChromium:
    async def test_the_node_is_drawn_and_kept_live(
        self, node: ShownNode, client: Client, tmp_path: Path
    ) -> None:
        node.decisions = decisions  # type: ignore[method-assign]
        async with browser(tmp_path / "profile") as page:
            await page.open(str(client.make_url("/dashboard/")))
            await page.until("document.querySelectorAll('#rows tr').length === 4")
            await page.until("document.querySelectorAll('#decisions details').length === 2")
            rows = await page.value("[...document.querySelectorAll('#rows th')].map(e => e.textContent)")
            assert rows == ["kubepods.slice", "kubepods-burstable.slice", "shop/web", "main"]
            labels = await page.value(
                "[...document.querySelectorAll('.cpu[role=img]')].map(e => e.ariaLabel)"
            )
            assert labels == [
                "CPU 0: reserved",
                "CPU 2: shop/web/main",
                "CPU 1: shared",
                "CPU 3: shop/web/main",
            ]
            opened = "document.querySelector('#decisions details')"
            assert "OutOfmemory" in await page.value(f"{opened}.querySelector('summary').textContent")
            await page.value(f"{opened}.open = true")
            explained = await page.value(f"{opened}.querySelector('ul').innerText")
            assert "memory: asked for 300 with 900 of 1000 taken: 200 too much" in explained
            # what is open stays open while the figures change
            write_cgroup(node.cgroup_root, WEB_MAIN, cgroup_files(memory=4000))
            await page.until("document.querySelector('#rows').textContent.includes('3.9 KiB of 4.0 KiB')")
            assert await page.value(f"{opened}.open")
            assert page.complaints == []

    async def test_names_are_text_and_nothing_else(
        self, node: ShownNode, client: Client, tmp_path: Path
    ) -> None:
        node.desired = [make_pod("web", "shop")]
        node.cpu_owners = lambda: {NASTY: node.topology.online}  # type: ignore[method-assign]
        async with browser(tmp_path / "profile") as page:
            await page.open(str(client.make_url("/dashboard/")))
            await page.until("document.querySelectorAll('#legend li').length === 1")
            assert NASTY in await page.value("document.querySelector('#legend').textContent")
            assert await page.value("document.querySelectorAll('img').length") == 0


def decisions(query: DecisionQuery, before: int, limit: int) -> list[tuple[int, bytes]]:
    admission = {
        "namespace": "shop",
        "name": "db",
        "uid": "u",
        "admitted": False,
        "decidedAt": "2026-03-01T12:00:00Z",
        "reason": "OutOfmemory",
        "comparisons": [{"resource": "memory", "requested": 300, "used": 900, "capacity": 1000}],
    }
    eviction = {"namespace": "shop", "name": "web", "decidedAt": "2026-03-01T11:00:00Z", "message": "low"}
    found = [
        (2, json.dumps({"id": 2, "kind": "Admission", "admission": admission}).encode()),
        (1, json.dumps({"id": 1, "kind": "Eviction", "eviction": eviction}).encode()),
    ]
    return [each for each in found if each[0] < before][:limit]
