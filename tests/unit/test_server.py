"""The HTTP endpoints, as a kubelet's clients meet them."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from nodeagent.server.app import answered_within, create_app, create_healthz_app
from tests.unit.shown_node import ShownNode, make_pod

Client = TestClient[Any, Any]


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[ShownNode]:
    shown = ShownNode(tmp_path)
    yield shown
    shown.close()


@pytest.fixture
async def client(node: ShownNode) -> AsyncIterator[Client]:
    async with TestClient(TestServer(create_app(node))) as client:
        yield client


async def answer(response: ClientResponse) -> tuple[int, str]:
    return response.status, await response.text()


def name_of(item: dict[str, Any]) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


class TestHealth:
    async def test_healthy_is_one_word(self, client: Client) -> None:
        response = await client.get("/healthz")
        assert await answer(response) == (200, "ok")
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert response.headers["X-Content-Type-Options"] == "nosniff"

    async def test_verbose_names_the_checks(self, client: Client) -> None:
        expected = "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"
        assert await answer(await client.get("/healthz?verbose")) == (200, expected)

    async def test_a_failure_is_always_verbose_and_keeps_its_reason_to_itself(
        self, node: ShownNode, client: Client, caplog: pytest.LogCaptureFixture
    ) -> None:
        node.health_checks["syncloop"] = lambda: "last synchronised 90 s ago"
        async with TestClient(TestServer(create_app(node))) as client:
            status, text = await answer(await client.get("/healthz"))
        expected = "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n"
        assert (status, text) == (500, expected)
        assert "last synchronised 90 s ago" in caplog.text

    async def test_a_check_can_be_left_out(self, node: ShownNode) -> None:
        node.health_checks["syncloop"] = lambda: "late"
        async with TestClient(TestServer(create_app(node))) as client:
            assert await answer(await client.get("/healthz?exclude=syncloop")) == (200, "ok")
            _, text = await answer(await client.get("/healthz?verbose&exclude=syncloop"))
            assert "[+]syncloop excluded: ok\n" in text

    async def test_each_check_has_a_path(self, node: ShownNode) -> None:
        node.health_checks["log"] = lambda: "full"
        async with TestClient(TestServer(create_app(node))) as client:
            for name, status in (("ping", 200), ("log", 500), ("syncloop", 200), ("other", 404)):
                response = await client.get(f"/healthz/{name}")
                assert response.status == status, name

    async def test_the_health_port_answers_nothing_else(self, node: ShownNode) -> None:
        async with TestClient(TestServer(create_healthz_app(node))) as client:
            assert await answer(await client.get("/healthz")) == (200, "ok")
            assert (await client.get("/pods")).status == 404


class TestMetrics:
    @pytest.mark.parametrize(
        ("path", "family"),
        [
            ("/metrics", "kubelet_node_name"),
            ("/metrics/cadvisor", "container_cpu_usage_seconds"),
            ("/metrics/resource", "node_cpu_usage_seconds"),
            ("/metrics/probes", "prober_probe_duration_seconds"),
            ("/metrics/slis", "kubernetes_healthcheck"),
        ],
    )
    async def test_each_page_parses(self, client: Client, path: str, family: str) -> None:
        response = await client.get(path)
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert family in {each.name for each in text_string_to_metric_families(await response.text())}

    async def test_health_results_are_counted(self, client: Client) -> None:
        await client.get("/healthz")
        text = await (await client.get("/metrics/slis")).text()
        assert 'kubernetes_healthchecks_total{name="syncloop",status="success",type="healthz"} 2' in text

    async def test_scrapes_at_the_same_time_are_all_answered(self, client: Client) -> None:
        responses = await asyncio.gather(*(client.get("/metrics/cadvisor") for _ in range(8)))
        bodies = {await response.text() for response in responses}
        assert len(bodies) == 1


class TestKubelet:
    async def test_pods_are_a_pod_list(self, client: Client) -> None:
        body = await (await client.get("/pods")).json()
        assert (body["kind"], body["apiVersion"], body["metadata"]) == ("PodList", "v1", {})
        assert [name_of(item) for item in body["items"]] == ["shop/web", "shop/db", "test/web"]
        assert body["items"][0]["spec"]["containers"][0]["name"] == "main"

    async def test_running_pods_are_the_runtime_s(self, client: Client) -> None:
        body = await (await client.get("/runningpods/")).json()
        assert [name_of(item) for item in body["items"]] == ["shop/web"]

    async def test_a_long_list_comes_in_pieces_and_whole(self, node: ShownNode, client: Client) -> None:
        node.desired = [make_pod(f"p{number}", "many") for number in range(1001)]
        body = await (await client.get("/pods")).json()
        assert [name_of(item) for item in body["items"]] == [f"many/p{number}" for number in range(1001)]

    async def test_no_pods_are_an_empty_list(self, node: ShownNode, client: Client) -> None:
        node.desired = []
        assert (await (await client.get("/pods")).json())["items"] == []

    @pytest.mark.parametrize(
        ("method", "path", "form", "short"),
        [
            ("GET", "/stats/summary", None, False),
            ("GET", "/stats/summary?only_cpu_and_memory=true", None, True),
            ("GET", "/stats/summary?only_cpu_and_memory=no", None, False),
            ("POST", "/stats/summary", {"only_cpu_and_memory": "true"}, True),
            ("POST", "/stats/summary?only_cpu_and_memory=1", None, True),
        ],
    )
    async def test_summary(
        self,
        node: ShownNode,
        client: Client,
        method: str,
        path: str,
        form: dict[str, str] | None,
        short: bool,
    ) -> None:
        body = await (await client.request(method, path, data=form)).json()
        assert body["node"]["nodeName"] == "n1"
        assert node.asked_for_short_summary == [short]

    async def test_configz_is_kubelet_s(self, client: Client) -> None:
        body = await (await client.get("/configz")).json()
        assert list(body) == ["kubeletconfig"]
        assert body["kubeletconfig"]["readOnlyPort"] == 10255


class TestRest:
    async def test_pods_of_all_namespaces_and_of_one(self, client: Client) -> None:
        everywhere = await (await client.get("/api/v1/pods")).json()
        shop = await (await client.get("/api/v1/namespaces/shop/pods")).json()
        assert len(everywhere["items"]) == 3
        assert [name_of(item) for item in shop["items"]] == ["shop/web", "shop/db"]

    async def test_one_pod_says_what_it_is(self, client: Client) -> None:
        body = await (await client.get("/api/v1/namespaces/test/pods/web")).json()
        assert (body["apiVersion"], body["kind"], name_of(body)) == ("v1", "Pod", "test/web")

    async def test_the_node(self, client: Client) -> None:
        nodes = await (await client.get("/api/v1/nodes")).json()
        node = await (await client.get("/api/v1/nodes/n1")).json()
        assert nodes["kind"] == "NodeList"
        assert nodes["items"] == [node]
        assert node["status"]["nodeInfo"]["machineID"] == "m1"

    async def test_events(self, client: Client) -> None:
        everywhere = await (await client.get("/api/v1/events")).json()
        shop = await (await client.get("/api/v1/namespaces/shop/events")).json()
        assert [name_of(item) for item in everywhere["items"]] == ["shop/e1", "test/e2"]
        assert [name_of(item) for item in shop["items"]] == ["shop/e1"]

    @pytest.mark.parametrize(
        ("path", "message", "details"),
        [
            (
                "/api/v1/namespaces/shop/pods/nosuch",
                'pods "nosuch" not found',
                {"name": "nosuch", "kind": "pods"},
            ),
            ("/api/v1/nodes/n2", 'nodes "n2" not found', {"name": "n2", "kind": "nodes"}),
            ("/api/v1/services", "the server could not find the requested resource", None),
        ],
    )
    async def test_what_is_not_there_is_a_status(
        self, client: Client, path: str, message: str, details: dict[str, str] | None
    ) -> None:
        response = await client.get(path)
        body = json.loads(await response.text())
        assert response.status == 404
        assert (body["kind"], body["status"], body["reason"], body["code"]) == (
            "Status",
            "Failure",
            "NotFound",
            404,
        )
        assert (body["message"], body.get("details")) == (message, details)

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    async def test_writing_is_refused_with_a_status(self, client: Client, method: str) -> None:
        response = await client.request(method, "/api/v1/namespaces/shop/pods/web")
        body = await response.json()
        assert (response.status, body["reason"]) == (405, "MethodNotAllowed")
        assert "read-only" in body["message"]

    @pytest.mark.parametrize(
        "query", ["watch=true", "watch=1", "labelSelector=app%3Dweb", "fieldSelector=spec.nodeName%3Dn1"]
    )
    async def test_what_would_be_answered_wrongly_is_refused(self, client: Client, query: str) -> None:
        response = await client.get(f"/api/v1/pods?{query}")
        body = await response.json()
        assert (response.status, body["reason"]) == (400, "BadRequest")
        assert query.partition("=")[0] in body["message"]

    async def test_not_watching_is_fine(self, client: Client) -> None:
        assert (await client.get("/api/v1/pods?watch=false&limit=500&labelSelector=")).status == 200


class TestDecisions:
    PATH = "/nodeagent/v1/decisions"

    async def numbers(self, client: Client, query: str = "") -> list[int]:
        response = await client.get(self.PATH + query)
        assert response.status == 200
        answer = await response.json()
        assert (answer["kind"], answer["apiVersion"]) == ("DecisionList", "nodeagent.io/v1alpha1")
        return [item["id"] for item in answer["items"]]

    async def test_the_newest_hundred_come_first(self, client: Client) -> None:
        assert await self.numbers(client) == list(range(150, 50, -1))
        assert await self.numbers(client, "?limit=1000") == list(range(150, 0, -1))
        assert await self.numbers(client, "?limit=11") == list(range(150, 139, -1))

    async def test_they_are_chosen_by_pod_and_kind(self, client: Client) -> None:
        assert await self.numbers(client, "?pod=shop/p1&limit=2") == [149, 147]
        assert await self.numbers(client, "?kind=eviction&limit=2") == [150, 147]
        assert await self.numbers(client, "?kind=eviction&pod=shop/p1&limit=1") == [147]
        assert await self.numbers(client, "?pod=shop/none") == []

    async def test_one_is_found_by_its_number(self, client: Client) -> None:
        assert await (await client.get(f"{self.PATH}/7")).json() == {"id": 7}
        response = await client.get(f"{self.PATH}/151")
        assert response.status == 404
        assert (await response.json())["message"] == "decision 151 not found: the newest 1000 are kept"

    @pytest.mark.parametrize(
        "query", ["pod=web", "pod=/web", "kind=x", "limit=0", "limit=1001", "limit=x", "limit=%C2%B2", "by=x"]
    )
    async def test_what_cannot_be_understood_is_said(self, query: str, client: Client) -> None:
        response = await client.get(f"{self.PATH}?{query}")
        assert response.status == 400
        assert "expected" in (await response.json())["message"]


class TestBounds:
    @pytest.mark.parametrize("begun", [False, True])
    async def test_an_answer_that_takes_too_long_is_cut_off(
        self, begun: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def handler(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            if begun:
                await response.prepare(request)
                await response.write(b"half")
            await asyncio.Event().wait()
            return response

        app = web.Application(middlewares=[answered_within(0.05)])
        app.router.add_get("/", handler)
        async with TestClient(TestServer(app)) as client:
            with pytest.raises(ClientError):
                await (await client.get("/")).read()
        assert [record.getMessage() for record in caplog.records] == [
            "GET /: not answered within 0.05 s, cut off"
        ]

    async def test_a_large_body_is_refused(self, client: Client) -> None:
        response = await client.post("/stats/summary", data={"x": "y" * 100_000})
        assert response.status == 413

    async def test_an_unknown_path_outside_the_api_is_plain_text(self, client: Client) -> None:
        response = await client.get("/nosuch")
        assert response.status == 404
        assert response.headers["Content-Type"].startswith("text/plain")

    async def test_the_loop_goes_on_during_a_large_scrape(self, node: ShownNode, client: Client) -> None:
        node.listed = node.listed * 250
        node.desired = node.desired * 300
        for path, pieces in (("/metrics/cadvisor", 40), ("/pods", 9)):
            turns = 0
            answered = asyncio.ensure_future(self._body(client, path))
            while not answered.done():
                turns += 1
                await asyncio.sleep(0)
            # Each piece of the answer leaves the loop at least one turn for others.
            assert turns > pieces, path

    async def _body(self, client: Client, path: str) -> bytes:
        return await (await client.get(path)).read()
