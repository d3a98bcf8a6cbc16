"""Pods between the API and the node: begun, shown, mirrored, deleted with their grace."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, UnixConnector

from nodeagent.api.meta import ObjectMeta
from nodeagent.api.node import Node
from nodeagent.api.pod import Container, Pod, PodSpec
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.errors import ApiError
from nodeagent.cluster.kinds import NODE, POD, RESOURCE_QUOTA
from nodeagent.local_api import LocalApi
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.launch import LaunchSettings
from nodeagent.pods.manager import PodManager, stored_records
from nodeagent.pods.record import Failure, PodRecord
from nodeagent.pods.services import Refusal, Services
from nodeagent.server.api.app import create_api_app
from nodeagent.server.api.unix import UnixListener, peer
from nodeagent.sources.manifests import CONFIG_SOURCE, ManifestReader
from nodeagent.stats.summary import NodeStats, Summary
from nodeagent.store import Store
from tests.unit.test_pod_worker import FakeClock, FakeHost, FakeObserver


async def no_summary() -> Summary:
    return Summary(node=NodeStats(), pods=())


@dataclass
class Rig:
    """A node without a kernel: the API, a manager of pods, and a host on which nothing is real."""

    api: LocalApi
    manager: PodManager
    host: FakeHost
    clock: FakeClock
    refusal: list[Refusal | None]
    static: dict[str, PodRecord]

    @property
    def cluster(self) -> Cluster:
        return self.api.cluster

    async def settle(self) -> None:
        """Do what the agent does when the API's objects have changed, until nothing moves."""
        for _ in range(5):
            self.api.set_desired(dict(self.static), ManifestReader(None, "n1").read(), self.manager)
            for _ in range(20):
                await asyncio.sleep(0)

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.get(POD, "default", name)["status"]
        return found

    def names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.cluster.list(POD)]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = make_rig(Store(tmp_path / "nodeagent.db"), tmp_path)
    yield rig
    await rig.manager.close()


def make_rig(store: Store, tmp_path: Path) -> Rig:
    clock = FakeClock()
    host = FakeHost(clock)
    api = LocalApi(store, clock, "n1", ContainerRecords(), no_summary)
    refusal: list[Refusal | None] = [None]
    services = Services(
        clock=clock,
        runtime=host,
        cgroups=host,
        store=store,
        events=EventRecorder(store, clock, "n1"),
        launch=LaunchSettings("n1", "10.0.0.1", tmp_path / "logs", 1000, 2),
        memory_capacity_bytes=1 << 30,
        admit=lambda pod: refusal[0] or pod,
        starting=lambda pod, name: None,
        release=lambda uid: None,
        may_return=lambda: True,
        records=host.records,
        observer=FakeObserver(),
        longest_backoff_seconds=300,
        publish=api.pods.publish,
        gone=api.pods.gone,
    )
    manager = PodManager(services)
    manager.restore(stored_records(store))
    api.begin(Node(metadata=ObjectMeta(name="n1", labels={"zone": "a"})), manager.pods())
    return Rig(api, manager, host, clock, refusal, {})


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "command": ["sleep"]}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def static_record(name: str, uid: str, clock: FakeClock) -> PodRecord:
    meta = ObjectMeta(name=name, namespace="default", uid=uid, annotations={CONFIG_SOURCE: "file"})
    spec = PodSpec(containers=(Container(name="c", image="x", command=("sleep",)),))
    return PodRecord(pod=Pod(metadata=meta, spec=spec), source="m.yaml", created=clock.now())


async def test_a_pod_of_the_api_runs_and_says_so(rig: Rig) -> None:
    rig.cluster.create(POD, "default", pod("a"))
    assert rig.status("a")["phase"] == "Pending"
    await rig.settle()
    shown = rig.cluster.get(POD, "default", "a")
    assert (shown["status"]["phase"], shown["spec"]["nodeName"]) == ("Running", "n1")
    assert shown["status"]["containerStatuses"][0]["ready"] is True


async def test_deletion_waits_for_the_grace_that_was_asked_for(rig: Rig) -> None:
    made = rig.cluster.create(POD, "default", pod("a", terminationGracePeriodSeconds=60))
    await rig.settle()
    rig.cluster.delete(POD, "default", "a")
    await rig.settle()
    assert rig.names() == ["a"] and rig.host.signals == [("c", 15)]
    rig.host.end_all(made["metadata"]["uid"])
    rig.manager.wake_all()
    await rig.settle()
    await asyncio.sleep(0.05)
    assert rig.names() == [] and rig.manager.pods() == []


async def test_a_forced_deletion_kills_at_once(rig: Rig) -> None:
    from nodeagent.cluster.deletion import DeleteOptions

    rig.cluster.create(POD, "default", pod("a"))
    await rig.settle()
    assert rig.cluster.delete(POD, "default", "a", DeleteOptions(grace_period_seconds=0)) is None
    await rig.settle()
    await asyncio.sleep(0.05)
    assert rig.host.signals == [] and rig.manager.pods() == []


async def test_a_pod_without_room_is_pending_and_an_evicted_one_stays_failed(rig: Rig) -> None:
    rig.refusal[0] = Refusal("OutOfcpu", "Node didn't have enough resource: cpu")
    rig.cluster.create(POD, "default", pod("a"))
    await rig.settle()
    assert rig.status("a")["phase"] == "Pending"
    (condition,) = rig.status("a")["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "Unschedulable",
    )
    rig.refusal[0] = None
    made = rig.cluster.create(POD, "default", pod("b"))
    await rig.settle()
    failure = Failure(reason="Evicted", message="low on memory", at=rig.clock.now(), evicted=True)
    rig.manager.evict(made["metadata"]["uid"], failure, 0)
    rig.clock.advance(10_000)
    await rig.settle()
    assert (rig.status("b")["phase"], rig.status("b")["reason"]) == ("Failed", "Evicted")


async def test_a_static_pod_has_a_mirror_that_cannot_be_changed(rig: Rig) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}}
    rig.cluster.create(RESOURCE_QUOTA, "default", quota)
    rig.static = {"u1": static_record("web-n1", "u1", rig.clock)}
    await rig.settle()
    assert rig.status("web-n1")["phase"] == "Running"
    assert rig.cluster.get(RESOURCE_QUOTA, "default", "q")["status"]["used"] == {"pods": "1"}
    with pytest.raises(ApiError, match="it mirrors a static pod: delete its manifest instead"):
        rig.cluster.delete(POD, "default", "web-n1")
    rig.static = {}
    await rig.settle()
    rig.host.end_all("u1")
    rig.manager.wake_all()
    await rig.settle()
    await asyncio.sleep(0.05)
    assert rig.names() == []
    assert rig.cluster.get(RESOURCE_QUOTA, "default", "q")["status"]["used"] == {"pods": "0"}


async def test_a_static_pod_that_policy_refuses_has_a_failed_mirror_that_says_why(rig: Rig) -> None:
    why = 'pods "web-n1" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'
    rig.refusal[0] = Refusal("Forbidden", why)
    rig.static = {"u1": static_record("web-n1", "u1", rig.clock)}
    await rig.settle()
    shown = rig.status("web-n1")
    assert (shown["phase"], shown["reason"]) == ("Failed", "Forbidden")
    assert shown["message"] == f"Pod was rejected: {why}"


async def test_after_a_restart_nothing_is_started_twice(rig: Rig, tmp_path: Path) -> None:
    rig.cluster.create(POD, "default", pod("a"))
    await rig.settle()
    await rig.manager.close()
    again = make_rig(Store(tmp_path / "nodeagent.db"), tmp_path)
    for record in rig.host.records.everything():
        again.host.records.update(record)
    await again.settle()
    assert again.host.started == [] and again.status("a")["phase"] == "Running"
    await again.manager.close()


async def test_a_cordoned_node_begins_nothing_and_keeps_its_labels(rig: Rig) -> None:
    def cordon(node: dict[str, Any]) -> dict[str, Any]:
        labels = {**node["metadata"]["labels"], "mine": "1"}
        metadata = {**node["metadata"], "labels": labels}
        return {**node, "metadata": metadata, "spec": {**node.get("spec", {}), "unschedulable": True}}

    rig.cluster.modify(NODE, "", "n1", cordon)
    rig.cluster.create(POD, "default", pod("a"))
    await rig.settle()
    assert rig.manager.pods() == []
    rig.api.tell_node(Node(metadata=ObjectMeta(name="n1", labels={"zone": "b"})))
    shown = rig.cluster.get(NODE, "", "n1")
    assert shown["metadata"]["labels"] == {"mine": "1", "zone": "b"}
    assert shown["spec"]["unschedulable"] is True


async def test_the_socket_is_for_its_owner(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "api.sock"
    app = create_api_app(rig.cluster, peer, rig.clock.now)
    listener = await UnixListener(app, path).start()
    assert path.stat().st_mode & 0o777 == 0o600
    async with ClientSession(connector=UnixConnector(str(path))) as session:
        async with session.get("http://node/api/v1/namespaces/default") as response:
            assert (await response.json())["metadata"]["name"] == "default"
        monkeypatch.setattr("nodeagent.server.api.unix._CREDENTIALS", Strangers())
        async with session.get("http://node/api/v1/namespaces/default") as response:
            assert response.status == 401
    await listener.close()
    assert not path.exists()


class Strangers:
    """The kernel's word about a peer, as it would be for user 1234."""

    size = 12
    unpack: Callable[[bytes], tuple[int, int, int]] = staticmethod(lambda data: (1, 1234, 1234))
