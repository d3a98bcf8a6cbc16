"""What a node has and what is left of it for pods."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.quantity import Quantity
from nodeagent.hardware.node import NodeInfo, read_node_info, read_pid_capacity
from nodeagent.resources.allocatable import NodeResources, node_allocatable, node_capacity

GIB = 1 << 30


def quantities(**amounts: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in amounts.items()}


def texts(resources: dict[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in resources.items()}


def test_eviction_needs_room_below_the_limit_of_the_pods_and_above_what_they_may_request() -> None:
    node = NodeResources(
        quantities(cpu="4", memory="8Gi", pid="1000"),
        system_reserved=quantities(cpu="500m", memory="1Gi", pid="100"),
        kube_reserved=quantities(cpu="500m"),
        eviction_hard={"memory.available": "512Mi"},
    )
    assert texts(dict(node.kubepods)) == {"cpu": "3", "memory": "7Gi", "pid": "900"}
    allocatable = node_allocatable(node.capacity, node.reservation)
    assert texts(allocatable) == {"cpu": "3", "memory": "6656Mi", "pid": "900"}


def test_pods_not_enforced_leave_the_whole_capacity() -> None:
    node = NodeResources(quantities(cpu="4"), quantities(cpu="1"), enforce=frozenset())
    assert texts(dict(node.kubepods)) == {"cpu": "4"}


@pytest.mark.parametrize("ignored", ["0%", "100%"])
def test_thresholds_that_mean_ignore_reserve_nothing(ignored: str) -> None:
    node = NodeResources(quantities(memory="8Gi"), eviction_hard={"memory.available": ignored})
    assert node.reservation == {}


def test_a_reservation_above_the_capacity_is_explained() -> None:
    node = NodeResources(quantities(cpu="1", memory="1Gi"), quantities(cpu="2"), quantities(memory="512Mi"))
    [error] = node.errors()
    assert "Resource 'cpu': 2 is reserved (systemReserved + kubeReserved + evictionHard)" in error
    assert "the node has 1" in error
    assert str(node.without_reserved["cpu"]) == "0"


def test_capacity_as_the_status_shows_it() -> None:
    node = NodeInfo(4000, 8 * GIB, 32768, hugepages_bytes={2 << 20: GIB}, ephemeral_storage_bytes=20 * GIB)
    capacity = node_capacity(node, max_pods=110, pods_per_core=10)
    assert texts(capacity) == {
        "cpu": "4",
        "memory": "8Gi",
        "pods": "40",
        "ephemeral-storage": "20Gi",
        "hugepages-2Mi": "1Gi",
    }
    assert texts(node_allocatable(capacity, {}))["memory"] == "7Gi"


amounts = st.integers(0, 1 << 40).map(Quantity.of)
lists = st.dictionaries(st.sampled_from(["cpu", "memory", "pid", "ephemeral-storage"]), amounts)


@given(lists, lists, lists)
def test_what_is_left_and_what_is_kept_never_exceed_what_there_is(
    capacity: dict[str, Quantity], system: dict[str, Quantity], kube: dict[str, Quantity]
) -> None:
    node = NodeResources(capacity, system, kube)
    allocatable = node_allocatable(capacity, node.reservation)
    for name, total in capacity.items():
        left = node.without_reserved[name]
        assert Quantity.of(0) <= left <= total
        assert allocatable[name] == left
        kept = node.reservation.get(name, Quantity.of(0))
        assert left + kept == total or (left.is_zero and kept > total)
    assert bool(node.errors()) == any(kept > capacity[name] for name, kept in node.reservation.items())


def test_reading_a_machine(tmp_path: Path) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    (proc / "sys/kernel").mkdir(parents=True)
    (proc / "sys/kernel/pid_max").write_text("4194304\n")
    (proc / "sys/kernel/threads-max").write_text("23107\n")
    (proc / "meminfo").write_text("MemTotal:  2983832 kB\nSwapTotal: 1024 kB\nHugePages_Total: 3\n")
    for kib, pages in ((2048, 16), (1048576, 0)):
        directory = sys / f"kernel/mm/hugepages/hugepages-{kib}kB"
        directory.mkdir(parents=True)
        (directory / "nr_hugepages").write_text(f"{pages}\n")
    node = read_node_info(proc, sys, tmp_path, cpus=4)
    assert (node.cpu_milli, node.memory_bytes, node.swap_bytes) == (4000, 3055443968, 1 << 20)
    assert node.pids == read_pid_capacity(proc) == 23107
    assert node.hugepages_bytes == {2 << 20: 32 << 20, 1 << 30: 0}
    assert node.ephemeral_storage_bytes is not None and node.ephemeral_storage_bytes > 0
