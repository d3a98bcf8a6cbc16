"""The objects of the API as plain Python: versions, conflicts, quotas, watches, deletion."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.errors import ApiError
from nodeagent.cluster.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    POD,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE,
)
from nodeagent.store import Key, Store, StoreError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "nodeagent.db")
    yield store
    store.close()


@pytest.fixture
def cluster(store: Store) -> Cluster:
    cluster = Cluster(store.resources, SystemClock())
    cluster.begin()
    return cluster


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def quota(name: str, **hard: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"hard": {k.replace("_", "."): v for k, v in hard.items()}}}


def used(cluster: Cluster, name: str) -> dict[str, str]:
    status = cluster.get(RESOURCE_QUOTA, "default", name)["status"]
    result: dict[str, str] = status["used"]
    return result


def test_a_new_cluster_has_the_namespaces_and_classes_of_kubernetes(cluster: Cluster) -> None:
    names = [each["metadata"]["name"] for each in cluster.list(NAMESPACE)]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    values = {each["metadata"]["name"]: each["value"] for each in cluster.list(PRIORITY_CLASS)}
    assert values == {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}


def test_an_update_with_an_old_version_is_a_conflict(cluster: Cluster) -> None:
    first = cluster.create(CONFIG_MAP, "default", {"metadata": {"name": "a"}, "data": {"k": "1"}})
    second = cluster.update(CONFIG_MAP, {**first, "data": {"k": "2"}})
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    with pytest.raises(ApiError, match="the object has been modified") as caught:
        cluster.update(CONFIG_MAP, {**first, "data": {"k": "3"}})
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert cluster.get(CONFIG_MAP, "default", "a")["data"] == {"k": "2"}


def test_used_follows_creation_completion_and_deletion(cluster: Cluster) -> None:
    cluster.create(RESOURCE_QUOTA, "default", quota("q", pods="3", requests_cpu="1", **{"count/pods": "9"}))
    assert used(cluster, "q") == {"pods": "0", "requests.cpu": "0", "count/pods": "0"}
    for name in ("a", "b"):
        cluster.create(POD, "default", pod(name, "200m"))
    assert used(cluster, "q") == {"pods": "2", "requests.cpu": "400m", "count/pods": "2"}
    cluster.modify(
        POD, "default", "a", lambda p: {**p, "status": {"phase": "Succeeded"}}, subresource="status"
    )
    assert used(cluster, "q") == {"pods": "1", "requests.cpu": "200m", "count/pods": "2"}
    cluster.delete(POD, "default", "a")
    assert used(cluster, "q") == {"pods": "1", "requests.cpu": "200m", "count/pods": "1"}
    uid = cluster.get(POD, "default", "b")["metadata"]["uid"]
    going = cluster.delete(POD, "default", "b")
    assert going is not None and going["metadata"]["deletionGracePeriodSeconds"] == 30
    assert used(cluster, "q")["pods"] == "1"
    cluster.reports.withdraw(POD, "default", "b", uid)
    assert used(cluster, "q") == {"pods": "0", "requests.cpu": "0", "count/pods": "0"}


def test_a_quota_counts_what_was_there_before_it_and_survives_a_restart(
    cluster: Cluster, store: Store
) -> None:
    cluster.create(POD, "default", pod("a"))
    cluster.create(SERVICE, "default", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    hard = {"pods": "2", "services": "5", "secrets": "9", "count/configmaps": "4"}
    made = cluster.create(RESOURCE_QUOTA, "default", quota("q", **hard))
    assert made["status"] == {
        "hard": hard,
        "used": {"pods": "1", "services": "1", "secrets": "1", "count/configmaps": "0"},
    }
    again = Cluster(store.resources, SystemClock())
    again.begin()
    assert again.get(RESOURCE_QUOTA, "default", "q") == made


def test_two_hundred_creates_against_a_quota_of_fifty_make_fifty(cluster: Cluster) -> None:
    cluster.create(RESOURCE_QUOTA, "default", quota("q", pods="50"))

    async def create(number: int) -> str:
        await asyncio.sleep(0)
        try:
            cluster.create(POD, "default", pod(f"p{number}"))
        except ApiError as error:
            return error.message
        return ""

    async def everybody() -> list[str]:
        return await asyncio.gather(*(create(number) for number in range(200)))

    answers = asyncio.run(everybody())
    assert answers.count("") == len(cluster.list(POD)) == 50
    assert used(cluster, "q") == {"pods": "50"}
    refusals = {answer.partition(" is forbidden: ")[2] for answer in answers if answer}
    assert refusals == {"exceeded quota: q, requested: pods=1, used: pods=50, limited: pods=50"}


async def test_a_watch_resumes_where_it_was_and_says_when_it_cannot(cluster: Cluster) -> None:
    version = cluster.version
    cluster.create(CONFIG_MAP, "default", {"metadata": {"name": "a"}})
    cluster.modify(CONFIG_MAP, "default", "a", lambda old: {**old, "data": {"k": "v"}})
    cluster.delete(CONFIG_MAP, "default", "a")
    seen = []
    async for change in cluster.watch(CONFIG_MAP, version):
        seen.append(change.type)
        if len(seen) == 3:
            break
    assert seen == ["ADDED", "MODIFIED", "DELETED"]
    for number in range(1001):
        cluster.create(CONFIG_MAP, "default", {"metadata": {"name": f"n{number}"}})
    with pytest.raises(ApiError, match="too old resource version") as caught:
        await anext(aiter(cluster.watch(CONFIG_MAP, version)))
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_a_namespace_goes_when_its_last_object_has_gone(cluster: Cluster) -> None:
    cluster.create(NAMESPACE, "", {"metadata": {"name": "shop"}})
    made = cluster.create(POD, "shop", pod("a"))
    going = cluster.delete(NAMESPACE, "", "shop")
    assert going is not None and going["status"]["phase"] == "Terminating"
    assert cluster.list(SECRET, "shop") == []
    with pytest.raises(ApiError, match="because it is being terminated"):
        cluster.create(POD, "shop", pod("b"))
    cluster.reports.withdraw(POD, "shop", "a", made["metadata"]["uid"])
    with pytest.raises(ApiError, match='namespaces "shop" not found'):
        cluster.get(NAMESPACE, "", "shop")


def test_after_kill_there_is_all_that_was_acknowledged_and_the_quota_counts_it(tmp_path: Path) -> None:
    path = tmp_path / "nodeagent.db"
    program = (
        "import sys; from pathlib import Path\n"
        "from nodeagent.clock import SystemClock\n"
        "from nodeagent.cluster.cluster import Cluster\n"
        "from nodeagent.cluster.kinds import CONFIG_MAP, RESOURCE_QUOTA\n"
        "from nodeagent.store import Store\n"
        "cluster = Cluster(Store(Path(sys.argv[1])).resources, SystemClock()); cluster.begin()\n"
        "quota = {'metadata': {'name': 'q'}, 'spec': {'hard': {'configmaps': '1M'}}}\n"
        "cluster.create(RESOURCE_QUOTA, 'default', quota)\n"
        "for number in range(10**6):\n"
        "    cluster.create(CONFIG_MAP, 'default', {'metadata': {'name': f'c{number}'}})\n"
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(50)][-1]
        os.kill(writer.pid, signal.SIGKILL)
    store = Store(path)
    cluster = Cluster(store.resources, SystemClock())
    count = len(cluster.list(CONFIG_MAP, "default"))
    assert count >= acknowledged + 1
    assert used(cluster, "q") == {"configmaps": str(count)}
    store.close()


def test_a_full_disk_is_a_sentence_and_changes_nothing(cluster: Cluster, store: Store) -> None:
    cluster.create(RESOURCE_QUOTA, "default", quota("q", configmaps="9"))
    (pages,) = store.resources._database.execute("PRAGMA page_count").fetchone()
    store.resources._database.execute(f"PRAGMA max_page_count = {pages}")
    large = {"metadata": {"name": "a"}, "data": {"k": "x" * 1_000_000}}
    with pytest.raises(StoreError, match="full"):
        cluster.create(CONFIG_MAP, "default", large)
    assert cluster.list(CONFIG_MAP) == []
    assert used(cluster, "q") == {"configmaps": "0"}


def test_the_objects_of_a_definition_go_with_it(cluster: Cluster) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    versions = [{"name": "v1", "served": True}]
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions}
    cluster.create(
        CUSTOM_RESOURCE_DEFINITION, "", {"metadata": {"name": "widgets.example.com"}, "spec": spec}
    )
    kind = cluster.kinds.find("example.com", "v1", "widgets")
    assert kind is not None
    cluster.create(kind, "default", {"metadata": {"name": "one"}})
    cluster.delete(CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com")
    assert cluster.kinds.find("example.com", "v1", "widgets") is None
    assert cluster.list(kind) == []


async def test_a_thousand_pods_are_listed_in_pages_and_watched(cluster: Cluster) -> None:
    version = cluster.version
    for number in range(1000):
        cluster.create(POD, "default", pod(f"p{number:04}"))
    seen, after = [], ("", "")
    while True:
        page = cluster.page(POD, None, after, 300)
        seen += [key.name for key, _ in page.items]
        if page.resume_after is None:
            break
        after = page.resume_after
    assert seen == [f"p{number:04}" for number in range(1000)]
    watch = cluster.watch(POD, version)
    assert [(await anext(watch)).key.name for _ in range(1000)] == seen
    await watch.aclose()


def test_an_object_that_cannot_be_read_costs_only_itself(
    cluster: Cluster, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create(POD, "default", pod("a"))
    store.resources.listeners.clear()
    odd = b'{"metadata":{"name":"odd"},"from":"later"}'
    with store.resources.transaction() as batch:
        for resource in ("pods", "limitranges", "resourcequotas"):
            batch.put(Key(resource, "default", "odd"), lambda _: odd)
    again = Cluster(store.resources, SystemClock())
    again.begin()
    assert [each.metadata.name for each in again.reports.pods()] == ["a"]
    again.create(POD, "default", pod("b"))
    assert "pods default/odd cannot be read and is left out: from: Unknown field" in caplog.text


def test_a_changed_quota_is_counted_by_its_new_limits(cluster: Cluster) -> None:
    cluster.create(RESOURCE_QUOTA, "default", quota("q", pods="1"))
    cluster.create(POD, "default", pod("a", "250m"))
    with pytest.raises(ApiError, match="exceeded quota: q"):
        cluster.create(POD, "default", pod("b"))
    hard = {"pods": "2", "requests.cpu": "300m"}
    cluster.modify(RESOURCE_QUOTA, "default", "q", lambda old: {**old, "spec": {"hard": hard}})
    status = cluster.get(RESOURCE_QUOTA, "default", "q")["status"]
    assert status == {"hard": hard, "used": {"pods": "1", "requests.cpu": "250m"}}
    with pytest.raises(ApiError, match=r"requested: requests\.cpu=100m, used: requests\.cpu=250m"):
        cluster.create(POD, "default", pod("b"))
    assert used(cluster, "q") == {"pods": "1", "requests.cpu": "250m"}


def test_a_service_that_becomes_a_load_balancer_is_charged_for_it(cluster: Cluster) -> None:
    cluster.create(RESOURCE_QUOTA, "default", quota("q", **{"services.loadbalancers": "1"}))
    for name in ("a", "b"):
        cluster.create(SERVICE, "default", {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})

    def balanced(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "spec": {**old["spec"], "type": "LoadBalancer"}}

    cluster.modify(SERVICE, "default", "a", balanced)
    assert used(cluster, "q") == {"services.loadbalancers": "1"}
    with pytest.raises(ApiError, match=r"exceeded quota: q, requested: services\.loadbalancers=1"):
        cluster.modify(SERVICE, "default", "b", balanced)
    cluster.delete(SERVICE, "default", "a")
    assert used(cluster, "q") == {"services.loadbalancers": "0"}
