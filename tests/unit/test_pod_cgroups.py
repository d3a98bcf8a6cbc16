"""The pods' part of the tree: it follows the pods that are there, and what they ask for."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from nodeagent.api.pod import Pod
from nodeagent.cgroup.cgroupfs import CgroupfsDriver
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.clock import SystemClock
from nodeagent.hardware.topology import parse_short
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.containers import ContainerRecords
from nodeagent.resources.managers import ResourceManagers
from nodeagent.resources.settings import ManagerSettings
from tests.unit.fake_cgroups import FakeTree
from tests.unit.resource_pods import container, pod

BURSTABLE = "kubepods.slice/kubepods-burstable.slice"


class Pods:
    """The tree of a small node, and the pods that are active on it."""

    def __init__(self, tmp_path: Path) -> None:
        for name in ("cgroup", "state"):
            (tmp_path / name).mkdir()
        self.active: list[Pod] = []
        self.tree = FakeTree(tmp_path / "cgroup")
        self.cgroups = PodCgroups(
            self.tree,
            CgroupfsDriver(self.tree, SystemClock()),
            CgroupLayout(),
            CgroupSettings(),
            kubepods_resources={},
            managers=ResourceManagers(parse_short("1x4x1"), ManagerSettings(), tmp_path / "state"),
            records=ContainerRecords(),
            active_pods=lambda: self.active,
        )

    def value(self, path: str, file: str) -> str | None:
        return self.tree.read(path, file)


@pytest.fixture
def pods(tmp_path: Path) -> Pods:
    return Pods(tmp_path)


def burstable(uid: str, cpu: str) -> Pod:
    """A pod that requests `cpu`, with no limit of its own for memory."""
    only = container("main", cpu)
    asked = replace(only.resources, limits={"cpu": only.resources.limits["cpu"]})
    return pod(uid, replace(only, resources=asked))


async def test_the_levels_above_follow_the_sum_of_requests(pods: Pods) -> None:
    pods.active = [burstable("a", "1"), burstable("b", "1")]
    await pods.cgroups.ensure_upper()
    # kubelet's formula: 2 CPUs are 2048 shares; 1 + (2048 - 2) * 9999 / 262142 = 79.04
    assert pods.value(BURSTABLE, "cpu.weight") == "79"
    pods.active = pods.active[:1]
    await pods.cgroups.ensure_upper()
    assert pods.value(BURSTABLE, "cpu.weight") == "39"


async def test_a_changed_spec_is_seen_and_a_changed_status_alone_is_not_written(pods: Pods) -> None:
    pods.active = [burstable("a", "1")]
    await pods.cgroups.ensure_pod(pods.active[0])
    path = f"{BURSTABLE}/kubepods-burstable-poda.slice"
    assert pods.value(path, "cpu.max") == "100000 100000"
    pods.tree.writes.clear()
    await pods.cgroups.reconcile(thorough=True)
    pods.tree.writes.clear()
    pods.active = [replace(pods.active[0], status=replace(pods.active[0].status, phase="Running"))]
    assert await pods.cgroups.reconcile(thorough=True) == ()
    assert pods.tree.writes == []
    pods.active = [replace(pods.active[0], spec=burstable("a", "2").spec)]
    assert await pods.cgroups.reconcile(thorough=True) == ()
    assert pods.value(path, "cpu.max") == "200000 100000"


async def test_a_pod_that_comes_again_under_its_name_starts_afresh(pods: Pods) -> None:
    pods.active = [burstable("a", "1")]
    await pods.cgroups.ensure_pod(pods.active[0])
    await pods.cgroups.remove_pod(pods.active[0])
    pods.active = [burstable("a", "2")]
    await pods.cgroups.ensure_pod(pods.active[0])
    assert pods.value(f"{BURSTABLE}/kubepods-burstable-poda.slice", "cpu.max") == "200000 100000"


async def test_a_foreign_write_is_repaired_and_reported(pods: Pods) -> None:
    pods.active = [burstable("a", "1")]
    await pods.cgroups.ensure_pod(pods.active[0])
    path = f"{BURSTABLE}/kubepods-burstable-poda.slice"
    pods.tree.write(path, "cpu.max", "max 100000")
    (drift,) = await pods.cgroups.reconcile(thorough=False)
    assert "'max 100000'" in str(drift)
    assert pods.value(path, "cpu.max") == "100000 100000"
