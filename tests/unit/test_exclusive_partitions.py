"""Partitions of running containers: they follow the setting, and what others write is taken back."""

from pathlib import Path

import pytest

from nodeagent.api.quantity import Quantity
from nodeagent.cgroup.cgroupfs import CgroupfsDriver
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.clock import SystemClock
from nodeagent.hardware.topology import parse_short
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.partitions import ExclusivePartitions
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from nodeagent.resources.partitions import Partition
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec
from tests.unit.fake_cgroups import FakeTree
from tests.unit.resource_pods import container, pod

KUBEPODS = "kubepods.slice"
SLICE = f"{KUBEPODS}/{KUBEPODS.removesuffix('.slice')}-podown.slice"
LEAF = f"{SLICE}/nodeagent-1.scope"


class Node:
    """Four CPUs, CPU 0 reserved, and a running container that has CPUs 1 and 2 for itself."""

    def __init__(self, tmp_path: Path) -> None:
        self.tree = FakeTree(tmp_path)
        for path in (KUBEPODS, SLICE, LEAF):
            self.tree.create(path)
            for file, text in (("cpuset.cpus.exclusive", "\n"), ("cpuset.cpus.partition", "member\n")):
                (tmp_path / path / file).write_text(text)
        settings = ManagerSettings(cpu_manager_policy="static", node_reservation={"cpu": Quantity.of(1)})
        managers = ResourceManagers(parse_short("1x4x1"), settings, None)
        own = pod("own", container("main", "2"))
        assert managers.admit(own, []).admitted
        records = ContainerRecords()
        spec = ContainerSpec(
            container_id="1",
            pod_uid="own",
            pod_namespace="default",
            pod_name="own",
            container_name="main",
            argv=("sleep",),
            log_path="/log",
            cgroup=LEAF,
            pod_cgroup=SLICE,
        )
        records.update(ContainerRecord(spec=spec, pid=1, state="running"))
        self.active = [own]
        self.cgroups = PodCgroups(
            self.tree,
            CgroupfsDriver(self.tree, SystemClock()),
            CgroupLayout(),
            CgroupSettings(),
            kubepods_resources={},
            managers=managers,
            records=records,
            active_pods=lambda: self.active,
        )

    def enforce(self, partition: Partition) -> tuple[str, ...]:
        """What an agent with this setting does."""
        return ExclusivePartitions(self.tree, self.cgroups, partition).enforce()

    def exclusive(self) -> list[str]:
        return [
            (self.tree.read(path, "cpuset.cpus.exclusive") or "").strip() for path in (KUBEPODS, SLICE, LEAF)
        ]

    def partition(self) -> str | None:
        return self.tree.read(LEAF, "cpuset.cpus.partition")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_it_is_made_once(node: Node) -> None:
    assert node.enforce(Partition.ROOT) == ()
    assert (node.exclusive(), node.partition()) == (["1-2"] * 3, "root")
    node.tree.writes.clear()
    assert node.enforce(Partition.ROOT) == ()
    assert node.tree.writes == []


def test_the_kind_follows_the_setting_while_the_container_runs(node: Node) -> None:
    node.enforce(Partition.ROOT)
    node.enforce(Partition.ISOLATED)
    assert (node.exclusive(), node.partition()) == (["1-2"] * 3, "isolated")
    node.enforce(Partition.MEMBER)
    assert (node.exclusive(), node.partition()) == ([""] * 3, "member")
    node.tree.writes.clear()
    node.enforce(Partition.MEMBER)
    assert node.tree.writes == []


def test_what_somebody_else_wrote_is_taken_back(node: Node) -> None:
    node.enforce(Partition.ISOLATED)
    node.tree.write(LEAF, "cpuset.cpus.partition", "member")
    assert node.enforce(Partition.ISOLATED) == ()
    assert (node.exclusive(), node.partition()) == (["1-2"] * 3, "isolated")


def test_nothing_is_left_when_the_pod_is_gone(node: Node) -> None:
    node.enforce(Partition.ISOLATED)
    node.active.clear()
    node.tree.remove(LEAF)
    node.tree.remove(SLICE)
    node.enforce(Partition.ISOLATED)
    assert node.exclusive()[0] == ""
