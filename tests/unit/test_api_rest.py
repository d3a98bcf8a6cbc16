"""The REST API below kubectl: watches, pages, evictions, refusals, and what it takes in which form."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.kinds import CONFIG_MAP, POD, RESOURCE_QUOTA
from nodeagent.server.api.app import create_api_app
from nodeagent.server.api.who import Role, User
from nodeagent.store import Store

Client = TestClient[Any, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    cluster = Cluster(Store(tmp_path / "nodeagent.db").resources, SystemClock())
    cluster.begin()
    return cluster


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    def who(request: Any) -> User | None:
        return None if request.headers.get("X-Nobody") else User("test", Role.ADMIN)

    app = create_api_app(cluster, who, SystemClock().now)
    async with TestClient(TestServer(app)) as client:
        yield client


def make_map(cluster: Cluster, name: str, **labels: str) -> dict[str, Any]:
    return cluster.create(CONFIG_MAP, "default", {"metadata": {"name": name, "labels": labels}})


def make_pod(cluster: Cluster, name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "x"}]}
    return cluster.create(POD, "default", {"metadata": {"name": name}, "spec": spec})


async def events_of(client: Client, path: str, count: int, **query: str) -> list[tuple[str, str]]:
    """Watch, and return type and name of the first events."""
    found = []
    async with client.get(path, params={"watch": "1", "timeoutSeconds": "5", **query}) as response:
        async for line in response.content:
            event = json.loads(line)
            found.append((event["type"], event["object"].get("metadata", {}).get("name", "")))
            if len(found) == count:
                break
    return found


async def test_nobody_known_is_asked_to_say_who_he_is(client: Client) -> None:
    for path in (PODS, "/api", "/openapi/v3", "/version"):
        async with client.get(path, headers={"X-Nobody": "1"}) as response:
            assert (response.status, (await response.json())["reason"]) == (401, "Unauthorized")


async def test_a_watch_tells_what_the_selector_shows_and_what_leaves_it(
    cluster: Cluster, client: Client
) -> None:
    version = str(cluster.version)
    make_map(cluster, "a", tier="web")
    make_map(cluster, "b", tier="db")
    for tier in ("db", "web", "web"):
        cluster.modify(CONFIG_MAP, "default", "a", lambda old, to=tier: relabelled(old, to))
    cluster.delete(CONFIG_MAP, "default", "a")
    seen = await events_of(client, MAPS, 4, labelSelector="tier=web", resourceVersion=version)
    assert seen == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a"), ("DELETED", "a")]


def relabelled(old: dict[str, Any], tier: str) -> dict[str, Any]:
    return {**old, "metadata": {**old["metadata"], "labels": {"tier": tier}}}


async def test_a_watch_without_a_version_begins_with_what_is_there(cluster: Cluster, client: Client) -> None:
    make_map(cluster, "a")
    watching = asyncio.create_task(events_of(client, MAPS, 2))
    await asyncio.sleep(0.2)
    make_map(cluster, "b")
    assert await watching == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_from_too_long_ago_is_told_so_at_once(cluster: Cluster, client: Client) -> None:
    old = str(cluster.version)
    for number in range(1001):
        make_map(cluster, f"m{number}")
    async with client.get(MAPS, params={"watch": "1", "resourceVersion": old}) as response:
        assert (response.status, (await response.json())["reason"]) == (410, "Expired")


async def test_rows_of_a_watched_table(cluster: Cluster, client: Client) -> None:
    make_map(cluster, "a")
    async with client.get(MAPS, params={"watch": "1"}, headers=TABLE) as response:
        event = json.loads(await response.content.readline())
    assert event["object"]["kind"] == "Table"
    assert event["object"]["rows"][0]["cells"][:2] == ["a", 0]


async def test_a_list_goes_on_where_it_stopped(cluster: Cluster, client: Client) -> None:
    for name in "abcde":
        make_map(cluster, name)
    seen, token = [], ""
    for _ in range(3):
        async with client.get(MAPS, params={"limit": "2", "continue": token}) as response:
            page = await response.json()
        seen += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
    assert (seen, token) == (list("abcde"), "")
    async with client.get(MAPS, params={"continue": "nonsense"}) as response:
        assert response.status == 410


async def test_a_dry_run_is_admitted_and_not_stored(cluster: Cluster, client: Client) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}}
    cluster.create(RESOURCE_QUOTA, "default", quota)
    before = cluster.version
    async with client.post(MAPS, params={"dryRun": "All"}, json={"metadata": {"name": "a"}}) as response:
        assert (response.status, (await response.json())["metadata"]["name"]) == (201, "a")
    assert cluster.version == before and cluster.list(CONFIG_MAP) == []
    make_map(cluster, "b")
    async with client.post(MAPS, params={"dryRun": "All"}, json={"metadata": {"name": "a"}}) as response:
        assert "exceeded quota: q" in (await response.json())["message"]


async def test_evicting_and_binding_a_pod(cluster: Cluster, client: Client) -> None:
    make_pod(cluster, "a")
    eviction = {"metadata": {"name": "a"}, "deleteOptions": {"gracePeriodSeconds": 5}}
    async with client.post(f"{PODS}/a/eviction", json=eviction) as response:
        assert (response.status, (await response.json())["status"]) == (201, "Success")
    assert cluster.get(POD, "default", "a")["metadata"]["deletionGracePeriodSeconds"] == 5
    async with client.post(f"{PODS}/a/binding", json={"target": {"name": "n2"}}) as response:
        assert response.status == 405
        assert "bound to this node when they are created" in (await response.json())["message"]


async def test_deleting_a_selection_and_a_precondition_that_fails(cluster: Cluster, client: Client) -> None:
    made = make_map(cluster, "a", tier="web")
    make_map(cluster, "b", tier="db")
    wrong = {"preconditions": {"uid": "another"}}
    async with client.delete(f"{MAPS}/a", json=wrong) as response:
        assert (response.status, (await response.json())["reason"]) == (409, "Conflict")
    async with client.delete(MAPS, params={"labelSelector": "tier=web", "dryRun": "All"}) as response:
        assert response.status == 200
    assert cluster.get(CONFIG_MAP, "default", "a") == made
    async with client.delete(MAPS, params={"labelSelector": "tier=web"}) as response:
        assert [item["metadata"]["name"] for item in (await response.json())["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in cluster.list(CONFIG_MAP)] == ["b"]


async def test_an_invalid_object_is_refused_with_every_cause(client: Client) -> None:
    pod = {"metadata": {"name": "A"}, "spec": {"containers": [{"name": "c"}, {"name": "c", "image": "x"}]}}
    async with client.post(PODS, json=pod) as response:
        status = await response.json()
    assert (status["code"], status["reason"], status["details"]["kind"]) == (422, "Invalid", "Pod")
    fields = {cause["field"] for cause in status["details"]["causes"]}
    assert {"metadata.name", "spec.containers[1].name"} <= fields


async def test_what_is_too_large_or_in_an_unknown_form(client: Client) -> None:
    large = json.dumps({"metadata": {"name": "a"}, "data": {"k": "x" * (3 << 20)}})
    json_type = {"Content-Type": "application/json"}
    async with client.post(MAPS, data=io.BytesIO(large.encode()), headers=json_type) as response:
        assert (response.status, (await response.json())["reason"]) == (413, "RequestEntityTooLarge")
    async with client.post(
        MAPS, data="metadata: {}", headers={"Content-Type": "application/yaml"}
    ) as response:
        assert response.status == 415
