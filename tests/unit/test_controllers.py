"""Controllers: owners become pods, pods follow their owners, and quotas are never passed."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.kinds import (
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    STATEFUL_SET,
    Kind,
)
from nodeagent.controllers.loop import ControllerLoop
from nodeagent.store import Store

Json = dict[str, Any]
TEMPLATE = {
    "metadata": {"labels": {"app": "nginx"}},
    "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
}
SELECTOR = {"matchLabels": {"app": "nginx"}}


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class World:
    """A cluster, its controllers, and a node that is played by the test."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path / "nodeagent.db")
        self.clock = Clock()
        self.cluster = Cluster(self.store.resources, self.clock)
        self.cluster.begin()
        self.loop = ControllerLoop(self.cluster, self.clock)
        self.cluster.create(NAMESPACE, "", {"metadata": {"name": "myspace"}})

    def settle(self) -> float | None:
        """Look until nothing changes any more; pods that are to go are gone."""
        seconds = None
        for _ in range(20):
            before = self.cluster.version
            seconds = self.loop.look()
            for pod in self.pods():
                if "deletionTimestamp" in pod["metadata"]:
                    meta = pod["metadata"]
                    self.cluster.reports.withdraw(POD, meta["namespace"], meta["name"], meta["uid"])
            if self.cluster.version == before:
                return seconds
        raise AssertionError("the controllers come to no end")

    def make(self, kind: Kind, name: str, **spec: Any) -> Json:
        given = {"selector": SELECTOR, "template": TEMPLATE, **spec}
        made = self.cluster.create(kind, "myspace", {"metadata": {"name": name}, "spec": given})
        self.settle()
        return made

    def change(self, kind: Kind, name: str, **spec: Any) -> None:
        self.cluster.modify(kind, "myspace", name, lambda old: {**old, "spec": {**old["spec"], **spec}})
        self.settle()

    def tell(self, pod: Json, phase: str, *, ready: bool = True) -> None:
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"phase": phase, "conditions": conditions}
        name = pod["metadata"]["name"]
        self.cluster.modify(POD, "myspace", name, lambda old: {**old, "status": status}, subresource="status")

    def pods(self) -> list[Json]:
        return self.cluster.list(POD, "myspace")

    def names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods()]

    def get(self, kind: Kind, name: str) -> Json:
        return self.cluster.get(kind, "myspace", name)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.store.close()


def test_a_deployment_is_counted_with_all_that_follows_from_it(world: World) -> None:
    hard = {"count/deployments.apps": "2", "count/replicasets.apps": "4", "count/pods": "3"}
    world.cluster.create(RESOURCE_QUOTA, "myspace", {"metadata": {"name": "test"}, "spec": {"hard": hard}})
    world.make(DEPLOYMENT, "nginx", replicas=2)
    used = world.get(RESOURCE_QUOTA, "test")["status"]["used"]
    assert used == {"count/deployments.apps": "1", "count/replicasets.apps": "1", "count/pods": "2"}
    # one more fits, two do not: what the quota refuses is tried again later
    world.change(DEPLOYMENT, "nginx", replicas=4)
    assert len(world.pods()) == 3
    assert world.settle() == 5.0
    world.cluster.modify(
        RESOURCE_QUOTA, "myspace", "test", lambda old: {**old, "spec": {"hard": {**hard, "count/pods": "9"}}}
    )
    world.settle()
    assert len(world.pods()) == 3
    world.clock.seconds = 5.0
    world.settle()
    assert len(world.pods()) == 4


def test_a_new_template_replaces_the_old_pods_and_keeps_the_old_set(world: World) -> None:
    world.make(DEPLOYMENT, "web", replicas=2)
    before = set(world.names())
    (old,) = world.cluster.list(REPLICA_SET, "myspace")
    changed = {**TEMPLATE, "spec": {"containers": [{"name": "nginx", "image": "nginx:2"}]}}
    world.change(DEPLOYMENT, "web", template=changed)
    assert len(world.names()) == 2 and not before & set(world.names())
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods()} == {"nginx:2"}
    sets = {each["metadata"]["name"]: each["spec"]["replicas"] for each in world.cluster.list(REPLICA_SET)}
    assert sorted(sets.values()) == [0, 2] and sets[old["metadata"]["name"]] == 0
    # and back: the old set is taken up again
    world.change(DEPLOYMENT, "web", template=TEMPLATE)
    assert world.get(REPLICA_SET, old["metadata"]["name"])["spec"]["replicas"] == 2
    assert len(world.cluster.list(REPLICA_SET)) == 2


def test_the_status_says_how_many_are_ready(world: World) -> None:
    world.make(DEPLOYMENT, "web", replicas=2)
    world.tell(world.pods()[0], "Running")
    world.settle()
    status = world.get(DEPLOYMENT, "web")["status"]
    assert (status["replicas"], status["readyReplicas"], status["unavailableReplicas"]) == (2, 1, 1)
    assert status["conditions"][0]["status"] == "False"


@pytest.mark.parametrize("kind", [REPLICA_SET, REPLICATION_CONTROLLER])
def test_what_is_too_much_goes_those_that_are_not_ready_first(world: World, kind: Kind) -> None:
    selector = {"app": "nginx"} if kind is REPLICATION_CONTROLLER else SELECTOR
    world.make(kind, "set", replicas=3, selector=selector)
    ready = world.names()[1]
    world.tell(world.get(POD, ready), "Running")
    world.change(kind, "set", replicas=1)
    assert world.names() == [ready]
    world.cluster.delete(POD, "myspace", ready)
    world.settle()
    assert len(world.names()) == 1 and world.names() != [ready]


def test_pods_go_with_their_owners_and_strangers_stay(world: World) -> None:
    world.cluster.create(POD, "myspace", {"metadata": {"name": "own"}, "spec": TEMPLATE["spec"]})
    world.make(DEPLOYMENT, "web", replicas=2)
    world.cluster.delete(DEPLOYMENT, "myspace", "web")
    world.settle()
    assert world.names() == ["own"]
    assert world.cluster.list(REPLICA_SET) == []
    assert world.loop.look() is None


def test_a_stateful_set_comes_in_order_and_goes_in_the_other(world: World) -> None:
    world.make(STATEFUL_SET, "db", replicas=2)
    assert world.names() == ["db-0"]
    world.tell(world.pods()[0], "Running")
    world.settle()
    assert world.names() == ["db-0", "db-1"]
    world.tell(world.pods()[1], "Running")
    world.change(STATEFUL_SET, "db", replicas=1)
    assert world.names() == ["db-0"]


def test_a_job_ends_when_enough_have_succeeded(world: World) -> None:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    world.make(JOB, "sum", completions=2, parallelism=1, template=template)
    for expected in (1, 2):
        assert len(world.pods()) == expected
        for pod in world.pods():
            world.tell(pod, "Succeeded", ready=False)
        world.settle()
    status = world.get(JOB, "sum")["status"]
    assert (status["succeeded"], status["active"], status["conditions"][0]["type"]) == (2, 0, "Complete")
    assert len(world.pods()) == 2


def test_a_job_that_fails_too_often_is_given_up(world: World) -> None:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    world.make(JOB, "sum", backoffLimit=1, template=template)
    for expected in (1, 2):
        assert len(world.pods()) == expected
        for pod in world.pods():
            world.tell(pod, "Failed", ready=False)
        world.settle()
    assert len(world.pods()) == 2
    status = world.get(JOB, "sum")["status"]
    assert status["conditions"][0]["reason"] == "BackoffLimitExceeded"
