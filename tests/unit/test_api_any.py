"""Whatever is asked of the API: an answer in its own words, never a fault of ours."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.errors import ApiError
from nodeagent.cluster.kinds import BUILT_IN, POD, RESOURCE_QUOTA, Kind
from nodeagent.cluster.patch import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, apply_patch
from nodeagent.server.api import protobuf
from nodeagent.server.api.app import create_api_app
from nodeagent.server.api.tables import table
from nodeagent.server.api.who import Role, User
from nodeagent.store import Store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE_HEAD = b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12"
NAMES = ("metadata", "name", "namespace", "spec", "status", "labels", "selector", "template", "containers")
FIELDS = (
    *NAMES,
    "data",
    "hard",
    "replicas",
    "ports",
    "scopes",
    "versions",
    "names",
    "group",
    "$patch",
    "value",
    "secrets",
    "conditions",
    "active",
    "startTime",
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(("", "a", "default", "1Gi", "x/y", "\x00"))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5)
NAMED = st.builds(
    lambda item, name: {**item, "metadata": {"name": name}},
    OBJECTS,
    st.sampled_from(("a", "b", "A", "", "x.y.z")),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    store = Store(Path(tmp_path_factory.mktemp("any")) / "nodeagent.db")
    cluster = Cluster(store.resources, SystemClock())
    cluster.begin()
    yield cluster
    store.close()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(BUILT_IN), item=OBJECTS | NAMED, patch=VALUES)
def test_what_is_stored_can_be_shown_changed_and_deleted(
    cluster: Cluster, kind: Kind, item: dict[str, Any], patch: Any
) -> None:
    namespace = "default" if kind.namespaced else ""
    try:
        made = cluster.create(kind, namespace, item)
    except ApiError as error:
        assert error.code in (400, 403, 404, 409, 422), error.message
        return
    name = made["metadata"]["name"]
    assert cluster.get(kind, namespace, name) == made
    table(kind, [made], {}, NOW, "Metadata")
    for content_type in (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        try:
            cluster.modify(kind, namespace, name, lambda old, of=content_type: apply_patch(of, old, patch))
        except ApiError as error:
            assert error.code in (400, 403, 409, 422), error.message
    status = {"status": patch}
    try:
        cluster.modify(kind, namespace, name, lambda old: {**old, **status}, subresource="status")
    except ApiError as error:
        assert error.code in (400, 403, 409, 422), error.message
    table(kind, [cluster.get(kind, namespace, name)], {}, NOW, "Metadata")
    cluster.delete(kind, namespace, name)


@settings(max_examples=200, deadline=None)
@given(target=OBJECTS, patch=VALUES, kind=st.sampled_from((MERGE_PATCH, STRATEGIC_MERGE_PATCH, JSON_PATCH)))
def test_a_patch_makes_an_object_or_a_sentence(target: dict[str, Any], patch: Any, kind: str) -> None:
    before = json.dumps(target)
    try:
        assert isinstance(apply_patch(kind, target, patch), dict)
    except ApiError as error:
        assert error.code in (400, 422)
    assert json.dumps(target) == before


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_protobuf_of_any_bytes_is_an_object_or_a_sentence(data: bytes) -> None:
    for body in (
        data,
        b"k8s\x00" + data,
        NAMESPACE_HEAD + bytes([len(data) % 128]) + data,
    ):
        try:
            assert isinstance(protobuf.decode(body), dict)
        except ApiError as error:
            assert error.code in (400, 415)


PATHS = st.lists(
    st.sampled_from(
        (
            "api",
            "apis",
            "v1",
            "apps",
            "namespaces",
            "default",
            "pods",
            "deployments",
            "a",
            "status",
            "secrets",
        )
    ),
    max_size=7,
).map(lambda parts: "/" + "/".join(parts))
QUERIES = st.dictionaries(
    st.sampled_from(
        ("limit", "continue", "labelSelector", "fieldSelector", "dryRun", "resourceVersion", "timeoutSeconds")
    ),
    st.text("aé=!,()<> 0129.", max_size=8),
    max_size=3,
)


async def test_any_request_is_answered_by_a_status_that_is_no_fault_of_ours(cluster: Cluster) -> None:
    app = create_api_app(cluster, lambda request: User("test", Role.ADMIN), lambda: NOW)
    bodies = ("", "{", "[]", "{}", '{"metadata":{"name":"a"}}', '[{"op":"add","path":"/x","value":1}]')
    types = (
        "application/json",
        "text/plain",
        JSON_PATCH,
        MERGE_PATCH,
        protobuf.CONTENT_TYPE,
        "application/apply-patch+yaml",
    )
    async with TestClient(TestServer(app)) as client:
        for path, query, method, body, content_type in _requests(bodies, types):
            headers = {"Content-Type": content_type}
            async with client.request(method, path, params=query, data=body, headers=headers) as response:
                text = await response.text()
                assert response.status < 500, (method, path, query, body, text)
                if response.status >= 400 and method != "HEAD":
                    assert json.loads(text)["kind"] == "Status", (method, path, text)


def _requests(
    bodies: tuple[str, ...], types: tuple[str, ...]
) -> list[tuple[str, dict[str, str], str, str, str]]:
    found: list[tuple[str, dict[str, str], str, str, str]] = []
    methods = st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE"))

    @settings(max_examples=300, deadline=None, database=None)
    @given(PATHS, QUERIES, methods, st.sampled_from(bodies), st.sampled_from(types))
    def collect(path: str, query: dict[str, str], method: str, body: str, content_type: str) -> None:
        found.append((path, query, method, body, content_type))

    collect()
    return found


def test_used_is_what_a_recount_finds_after_anything(cluster: Cluster) -> None:
    hard = {"pods": "9", "requests.cpu": "9", "count/pods": "99", "services": "9"}
    cluster.create(RESOURCE_QUOTA, "kube-public", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
    phases = ("Running", "Succeeded", "Failed", "Pending")

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.sampled_from(("create", "delete", *phases))), max_size=12
        )
    )
    def check(steps: list[tuple[str, str]]) -> None:
        for name, step in steps:
            try:
                if step == "create":
                    item = {"metadata": {"name": name}, "spec": {"containers": [container]}}
                    cluster.create(POD, "kube-public", item)
                elif step == "delete":
                    cluster.delete(POD, "kube-public", name)
                else:
                    status = {"phase": step}
                    cluster.modify(
                        POD,
                        "kube-public",
                        name,
                        lambda old, to=status: {**old, "status": to},
                        subresource="status",
                    )
            except ApiError as error:
                assert error.code in (403, 404, 409), error.message
        before = cluster.get(RESOURCE_QUOTA, "kube-public", "q")["status"]
        cluster.recount()
        assert cluster.get(RESOURCE_QUOTA, "kube-public", "q")["status"] == before

    check()
