"""Which files each level gets, whole, whatever is asked for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.decode import from_builtins
from nodeagent.api.pod import Pod
from nodeagent.api.qos import QOSClass
from nodeagent.api.quantity import Quantity
from nodeagent.cgroup.conversions import MAX_SHARES, container_weight, linear_weight
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import container_values, node_values, pod_values, qos_values, reserved_values
from nodeagent.config import Config
from nodeagent.config.schema import KubeletConfiguration, MemorySwap
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.node import NodeInfo

GIB = 1 << 30
SETTINGS = CgroupSettings(pod_pids_limit=200, hugepage_sizes=(2 << 20, 1 << 30))


def pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    named = [{"name": f"c{index}", "image": "x", "resources": each} for index, each in enumerate(containers)]
    return from_builtins({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": named, **spec}}, Pod)


def limited(**amounts: str) -> dict[str, Any]:
    return {"requests": amounts, "limits": amounts}


GUARANTEED = pod(limited(cpu="2", memory="64Mi"))
BURSTABLE = pod({"requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}})
BEST_EFFORT = pod({})
NOTHING_ASKED = {
    "cpu.max": "max 100000",
    "memory.min": "0",
    "memory.low": "0",
    "memory.high": "max",
    "memory.max": "max",
}


def test_a_limited_pod() -> None:
    assert pod_values(BURSTABLE, SETTINGS) == {
        "cpu.weight": "10",
        "cpu.max": "50000 100000",
        "memory.min": "0",
        "memory.low": "0",
        "memory.high": "max",
        "memory.max": str(128 << 20),
        "pids.max": "200",
        "hugetlb.2MB.max": "0",
        "hugetlb.1GB.max": "0",
    }


def test_a_limit_that_is_taken_back_is_written_as_none() -> None:
    values = pod_values(BEST_EFFORT, CgroupSettings())
    assert values == {"cpu.weight": "1", **NOTHING_ASKED, "pids.max": "max"}


def test_one_container_without_a_limit_unbounds_the_pod() -> None:
    values = pod_values(pod(limited(cpu="1", memory="1Gi"), {"requests": {"cpu": "1"}}), SETTINGS)
    assert (values["cpu.max"], values["memory.max"]) == ("max 100000", "max")


def test_exclusive_cpus_are_never_throttled() -> None:
    [container] = GUARANTEED.spec.containers
    assert pod_values(GUARANTEED, SETTINGS)["cpu.max"] == "200000 100000"
    assert pod_values(GUARANTEED, SETTINGS, exclusive_cpus=True)["cpu.max"] == "max 100000"
    leaf = container_values(GUARANTEED, container, SETTINGS, cpus=CpuSet.parse("1-2"), exclusive=True)
    assert (leaf["cpu.max"], leaf["cpuset.cpus"]) == ("max 100000", "1-2")


def test_a_container() -> None:
    [container] = BURSTABLE.spec.containers
    values = container_values(
        BURSTABLE, container, SETTINGS, cpus=CpuSet.parse("0,3"), mems=CpuSet.parse("0")
    )
    assert values == {
        "cpuset.mems": "0",
        "cpuset.cpus": "0,3",
        "cpu.weight": "35",
        "cpu.max": "50000 100000",
        "memory.min": "0",
        "memory.low": "0",
        "memory.high": "max",
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "memory.max": str(128 << 20),
    }
    # A kill by the new limit must find these two in place.
    assert list(values)[-1] == "memory.max"


def test_no_cpuset_is_ever_emptied() -> None:
    [container] = BEST_EFFORT.spec.containers
    values = container_values(BEST_EFFORT, container, SETTINGS, cpus=CpuSet(), mems=None)
    assert not [file for file in values if file.startswith("cpuset.")]


def test_single_process_kill_and_no_swap_controller() -> None:
    [container] = BEST_EFFORT.spec.containers
    settings = CgroupSettings(single_process_oom_kill=True, swap_controller=False)
    values = container_values(BEST_EFFORT, container, settings)
    assert values == {"cpu.weight": "1", **NOTHING_ASKED, "memory.oom.group": "0"}


def test_huge_pages_bind_the_pod_and_each_of_its_containers() -> None:
    asks = limited(**{"hugepages-2Mi": "8Mi", "memory": "64Mi", "cpu": "1"})
    both = pod(asks, limited(cpu="1", memory="1Mi"))
    assert pod_values(both, SETTINGS)["hugetlb.2MB.max"] == str(8 << 20)
    first, second = (container_values(both, each, SETTINGS) for each in both.spec.containers)
    assert (first["hugetlb.2MB.max"], second["hugetlb.2MB.max"]) == (str(8 << 20), "0")


def test_a_share_of_the_swap() -> None:
    settings = CgroupSettings(limited_swap=True, memory_capacity_bytes=4 * GIB, swap_capacity_bytes=GIB)
    asks = pod({"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}})
    [container] = asks.spec.containers
    assert container_values(asks, container, settings)["memory.swap.max"] == str(GIB // 4)


def test_what_is_beyond_any_machine_is_no_limit() -> None:
    assert pod_values(BEST_EFFORT, CgroupSettings(pod_pids_limit=10_000_000))["pids.max"] == "max"
    boundless = pod({"requests": {"memory": "1Gi"}, "limits": {"cpu": "1G", "memory": "100E"}})
    [container] = boundless.spec.containers
    settings = CgroupSettings(memory_qos=True)
    for values in (pod_values(boundless, settings), container_values(boundless, container, settings)):
        assert (values["cpu.max"], values["memory.max"]) == ("max 100000", "max")
        assert values["memory.high"] == "max"


def test_qos_slices_follow_the_sum_of_requests() -> None:
    pods = (GUARANTEED, BURSTABLE, BURSTABLE, BEST_EFFORT)
    assert qos_values(QOSClass.BURSTABLE, pods, SETTINGS)["cpu.weight"] == str(linear_weight(512))
    assert qos_values(QOSClass.BURSTABLE, (), SETTINGS)["cpu.weight"] == "1"
    assert qos_values(QOSClass.BEST_EFFORT, pods, SETTINGS)["cpu.weight"] == "1"


def test_node_allocatable_bounds_all_pods_but_never_by_quota() -> None:
    allocatable = {"cpu": Quantity.parse("3"), "memory": Quantity.parse("2Gi"), "pid": Quantity.parse("1000")}
    values = node_values(allocatable, (), SETTINGS)
    assert values == {
        "cpu.weight": "118",
        **NOTHING_ASKED,
        "memory.max": str(2 * GIB),
        "pids.max": "1000",
        "hugetlb.2MB.max": str(1 << 62),
        "hugetlb.1GB.max": str(1 << 62),
    }


def test_only_what_is_reserved_is_written_on_a_cgroup_of_the_hosts() -> None:
    reserved = {"cpu": Quantity.parse("1"), "memory": Quantity.parse("1Gi"), "pid": Quantity.parse("7")}
    assert reserved_values(reserved, SETTINGS) == {
        "cpu.weight": "39",
        "memory.max": str(GIB),
        "pids.max": "7",
    }
    assert reserved_values(reserved, SETTINGS, compressible_only=True) == {"cpu.weight": "39"}
    assert reserved_values({}, SETTINGS) == {}


def test_settings_from_the_configuration() -> None:
    kubelet = KubeletConfiguration(
        cpu_cfs_quota_period="5ms",
        pod_pids_limit=50,
        memory_swap=MemorySwap(swap_behavior="LimitedSwap"),
        memory_reservation_policy="TieredReservation",
        qos_reserved={"memory": "50%"},
        feature_gates={"MemoryQoS": True, "QOSReserved": True},
    )
    node = NodeInfo(4000, 8 * GIB, 1000, swap_bytes=GIB, hugepages_bytes={1 << 30: 0, 2 << 20: 0})
    settings = CgroupSettings.from_config(
        Config(kubelet), node, allocatable_memory_bytes=7 * GIB, swap_controller=True
    )
    assert settings == CgroupSettings(
        cpu_period_usec=5000,
        pod_pids_limit=50,
        memory_qos=True,
        memory_reservation=True,
        qos_reserved_memory_percent=50,
        limited_swap=True,
        memory_capacity_bytes=8 * GIB,
        allocatable_memory_bytes=7 * GIB,
        swap_capacity_bytes=GIB,
        hugepage_sizes=(2 << 20, 1 << 30),
    )


@pytest.mark.parametrize("weight", [linear_weight, container_weight])
@given(shares=st.integers(2, 2 * MAX_SHARES), more=st.integers(0, MAX_SHARES))
def test_weights_are_in_the_kernels_range_and_rise_with_the_request(
    weight: Any, shares: int, more: int
) -> None:
    assert 1 <= weight(shares) <= weight(shares + more) <= 10_000


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "hugepages-2Mi"]),
    st.integers(0, 1 << 40).map(str) | st.sampled_from(["1m", "0.1", "2", "1Gi", "64Mi"]),
)
resources = st.fixed_dictionaries({"requests": amounts, "limits": amounts})


@given(st.lists(resources, min_size=1, max_size=3), st.booleans(), st.booleans(), st.booleans())
def test_every_level_is_whole_whatever_the_pod_asks(
    containers: list[dict[str, Any]], quota: bool, memory_qos: bool, exclusive: bool
) -> None:
    asks = pod(*containers)
    settings = CgroupSettings(
        cpu_quota=quota, memory_qos=memory_qos, memory_reservation=True, hugepage_sizes=(2 << 20,)
    )
    whole = pod_values(BEST_EFFORT, settings).keys()
    values = pod_values(asks, settings, exclusive_cpus=exclusive)
    assert values.keys() == whole
    for container in asks.spec.containers:
        leaf = container_values(asks, container, settings, exclusive=exclusive)
        assert leaf.keys() - {"memory.oom.group", "memory.swap.max"} <= whole
        values = {**values, **leaf}
        assert all(values.values())
        if exclusive or not quota:
            assert leaf["cpu.max"].startswith("max ")
