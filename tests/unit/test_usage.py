"""`kubectl top`: what nodes and pods use, in the shape of metrics-server."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.cluster.kinds import NODE, POD
from nodeagent.stats.summary import (
    ContainerStats,
    CPUStats,
    MemoryStats,
    NodeStats,
    PodReference,
    PodStats,
    Summary,
)
from tests.unit.kubectl import Kubectl, serving

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MIB = 1 << 20

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")


def container(name: str, nano_cores: int | None, mebibytes: int) -> ContainerStats:
    cpu = CPUStats(time=NOW, usage_nano_cores=nano_cores)
    return ContainerStats(name=name, cpu=cpu, memory=MemoryStats(working_set_bytes=mebibytes * MIB))


def pod(name: str, namespace: str, *containers: ContainerStats) -> PodStats:
    reference = PodReference(name=name, namespace=namespace, uid=name)
    return PodStats(pod_ref=reference, containers=containers)


async def summary() -> Summary:
    cpu = CPUStats(time=NOW, usage_nano_cores=500_000_000)
    return Summary(
        node=NodeStats(node_name="n1", cpu=cpu, memory=MemoryStats(working_set_bytes=512 * MIB)),
        pods=(
            pod("web", "default", container("app", 250_000_000, 30), container("side", 10_000_000, 2)),
            pod("db", "default", container("db", 100_000_000, 100)),
            pod("new", "default", container("new", None, 1)),
            pod("other", "shop", container("c", 1_000_000, 5)),
        ),
    )


async def prepared(kubectl: Kubectl) -> None:
    cluster = kubectl.cluster
    status = {"capacity": {"cpu": "2", "memory": "1Gi"}, "allocatable": {"cpu": "2", "memory": "1Gi"}}
    cluster.create(NODE, "", {"metadata": {"name": "n1"}, "status": status})
    await kubectl.run("create", "namespace", "shop")
    for name, namespace in (("web", "default"), ("db", "default"), ("new", "default"), ("other", "shop")):
        spec = {"containers": [{"name": "c", "image": "x"}]}
        cluster.create(POD, namespace, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


async def test_kubectl_top_shows_pods_containers_and_the_node(tmp_path: Path) -> None:
    async with serving(tmp_path, summarise=summary) as kubectl:
        await prepared(kubectl)
        assert rows(await kubectl.run("top", "pods")) == [
            ["NAME", "CPU(cores)", "MEMORY(bytes)"],
            ["db", "100m", "100Mi"],
            ["web", "260m", "32Mi"],
        ]
        assert rows(await kubectl.run("top", "pods", "-l", "app=web", "--containers", "--no-headers")) == [
            ["web", "app", "250m", "30Mi"],
            ["web", "side", "10m", "2Mi"],
        ]
        everywhere = rows(await kubectl.run("top", "pods", "-A", "--no-headers"))
        assert [row[:2] for row in everywhere] == [["default", "db"], ["default", "web"], ["shop", "other"]]
        assert rows(await kubectl.run("top", "pod", "other", "-n", "shop", "--no-headers")) == [
            ["other", "1m", "5Mi"]
        ]
        ((name, cpu, share, memory, of_memory),) = rows(await kubectl.run("top", "nodes", "--no-headers"))
        assert (name, cpu, share, memory, of_memory) == ("n1", "500m", "25%", "512Mi", "50%")
        assert "not found" in await kubectl.run("top", "pod", "nobody", fails=True)


async def test_the_metrics_are_no_objects_of_their_own(tmp_path: Path) -> None:
    async with serving(tmp_path, summarise=summary) as kubectl:
        await prepared(kubectl)
        assert "pods.metrics.k8s.io" not in await kubectl.run("get", "all", "-o", "name")
        found = await kubectl.run("api-resources", "--api-group=metrics.k8s.io", "--no-headers", "-o", "wide")
        assert sorted((row[0], *row[-1:]) for row in rows(found)) == [
            ("nodes", "get,list"),
            ("pods", "get,list"),
        ]
