"""Reservations enforced on cgroups of the host."""

from pathlib import Path

import pytest

from nodeagent.api.quantity import Quantity
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.reserved import NoReservedCgroup, reserved_cgroups
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import Values
from nodeagent.config import Config
from nodeagent.config.schema import KubeletConfiguration
from tests.unit.fake_cgroups import FakeTree

SYSTEM = {"cpu": Quantity.parse("1"), "memory": Quantity.parse("1Gi")}
KUBE = {"cpu": Quantity.parse("500m"), "memory": Quantity.parse("1Gi")}


def reserved(tree: FakeTree, *enforced: str, kube_cgroup: str = "/podruntime.slice") -> dict[str, Values]:
    kubelet = KubeletConfiguration(
        enforce_node_allocatable=enforced,
        system_reserved_cgroup="/system.slice",
        kube_reserved_cgroup=kube_cgroup,
    )
    return reserved_cgroups(
        tree, CgroupLayout(), Config(kubelet), CgroupSettings(), system_reserved=SYSTEM, kube_reserved=KUBE
    )


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    tree = FakeTree(tmp_path)
    tree.create("system.slice")
    tree.create("podruntime.slice")
    return tree


def test_each_reservation_goes_to_its_cgroup(tree: FakeTree) -> None:
    assert reserved(tree, "pods", "system-reserved", "kube-reserved-compressible") == {
        "system.slice": {"cpu.weight": "39", "memory.max": str(1 << 30)},
        "podruntime.slice": {"cpu.weight": "20"},
    }


def test_nothing_is_touched_unasked(tree: FakeTree) -> None:
    assert reserved(tree, "pods") == {}
    assert reserved(tree, "none") == {}


def test_a_cgroup_that_does_not_exist_is_named_as_it_was_read(tree: FakeTree) -> None:
    words = r"kubeReservedCgroup: '/kubelet.service' stands for the cgroup 'kubelet.service.slice'"
    with pytest.raises(NoReservedCgroup, match=words):
        reserved(tree, "kube-reserved", kube_cgroup="/kubelet.service")
