"""cgroup amounts, names, and what a node keeps from pods, against kubelet (cgroup_values.json)."""

import re
from typing import Any

import pytest

from nodeagent.api.decode import from_builtins
from nodeagent.api.pod import Pod
from nodeagent.api.qos import QOSClass, oom_score_adj, qos_class
from nodeagent.api.quantity import Quantity
from nodeagent.cgroup.conversions import (
    container_weight,
    linear_weight,
    milli_to_quota_usec,
    milli_to_shares,
    quota_to_milli,
    shares_to_milli,
    weight_to_shares,
)
from nodeagent.cgroup.errors import InvalidName
from nodeagent.cgroup.layout import (
    CgroupLayout,
    expand_name,
    is_systemd_style,
    kubepods_name,
    parse_name,
    pod_name,
    pod_uid_of_name,
)
from nodeagent.cgroup.limits import (
    Limits,
    has_limited_swap,
    limits_of,
    limits_of_container,
    limits_of_overhead,
    limits_of_pod,
    limits_of_sandbox,
    reserved_limits,
    swap_share_bytes,
    tier_limits,
)
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.hardware.node import NodeInfo
from nodeagent.resources.allocatable import NodeResources, node_allocatable, node_capacity
from tests.golden.bugs import check

FILE = "cgroup_values.json"
TIERED = "TieredReservation"
Case = dict[str, Any]


def quantities(amounts: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in amounts.items()}


def texts(amounts: dict[str, Quantity]) -> dict[str, str]:
    """kubelet's PID capacity stands in a field of its own."""
    return {name: str(amount) for name, amount in amounts.items() if name != "pid"}


def resource_config(limits: Limits) -> Case:
    """kubelet's ResourceConfig: absent is not written."""
    config: Case = {
        "cpuPeriod": limits.cpu_period_usec,
        "cpuQuota": limits.cpu_quota_usec,
        "cpuShares": limits.cpu_shares,
        "cpuWeight": None if limits.cpu_shares is None else linear_weight(limits.cpu_shares),
        "memory": limits.memory_bytes,
        "pidsLimit": limits.pids,
        "hugePageLimit": {str(size): total for size, total in limits.hugepages_bytes.items()} or None,
        "unified": dict(limits.unified) or None,
    }
    return {name: value for name, value in config.items() if value is not None}


def cri_resources(limits: Limits, cgroup_v2: bool) -> Case:
    """The CRI's LinuxContainerResources, in which 0 is unset; cgroup v1 knows no unified keys."""
    resources: Case = {
        "cpuPeriod": limits.cpu_period_usec,
        "cpuQuota": limits.cpu_quota_usec,
        "cpuShares": limits.cpu_shares,
        "memoryLimitInBytes": limits.memory_bytes,
        "hugepageLimitsNonzero": {page_size(size): total for size, total in limits.hugepages_bytes.items()},
        "unified": dict(limits.unified) if cgroup_v2 else {},
    }
    return {name: value for name, value in resources.items() if value != {}}


def page_size(size_bytes: int) -> str:
    units = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
    suffix = max((name for name, unit in units.items() if size_bytes >= unit), key=units.__getitem__)
    return f"{size_bytes // units[suffix]}{suffix}"


@pytest.mark.golden(FILE, "milli_to_shares")
def test_milli_to_shares(case: Case) -> None:
    assert milli_to_shares(case["milliCPU"]) == case["shares"]


@pytest.mark.golden(FILE, "milli_to_quota")
def test_milli_to_quota(case: Case) -> None:
    assert milli_to_quota_usec(case["milliCPU"], case["period"]) == case["quota"]


@pytest.mark.golden(FILE, "quota_to_milli")
def test_quota_to_milli(case: Case) -> None:
    assert quota_to_milli(case["quota"], case["period"]) == case["milliCPU"]


@pytest.mark.golden(FILE, "shares_to_weight")
def test_shares_to_weight(case: Case) -> None:
    assert container_weight(case["shares"]) == case["newWeight"]
    assert shares_to_milli(case["shares"]) == case["sharesToMilliCPU"]
    if "linearWeight" in case:
        assert linear_weight(case["shares"]) == case["linearWeight"]


@pytest.mark.golden(FILE, "weight_to_shares")
def test_weight_to_shares(case: Case) -> None:
    assert weight_to_shares(case["weight"]) == case["shares"]
    assert shares_to_milli(case["shares"]) == case["milliCPU"]


@pytest.mark.golden(FILE, "name_expand")
def test_name_expand(case: Case) -> None:
    for driver in ("systemd", "cgroupfs"):
        assert expand_name(tuple(case["name"]), driver) == case[driver]


@pytest.mark.golden(FILE, "name_parse")
def test_name_parse(case: Case) -> None:
    assert list(parse_name(case["in"], "systemd")) == case["fromSystemd"]
    assert list(parse_name(case["in"], "cgroupfs")) == case["fromCgroupfs"]
    assert is_systemd_style(case["in"]) == case["isSystemdStyle"]


@pytest.mark.golden(FILE, "node_allocatable_root")
def test_node_allocatable_root(case: Case) -> None:
    name = kubepods_name(case["cgroupRoot"], case["cgroupsPerQOS"])
    assert expand_name(name, case["driver"]) == case["path"]


@pytest.mark.golden(FILE, "pod_cgroup_names")
def test_pod_cgroup_names(case: Case) -> None:
    check(case, exact_pod_name, {"a UID that contains 'pod' is not recognised": recognised_pod_name})


def exact_pod_name(case: Case) -> None:
    name = pod_cgroup(case)
    if "panic" in case:
        with pytest.raises(InvalidName, match=re.escape(case["podUID"])):
            expand_name(name, case["driver"])
        with pytest.raises(InvalidName):
            CgroupLayout(case["cgroupRoot"]).pod(case["podUID"], QOSClass(case["qos"]))
        return
    parsed = spelled_as_measured(case)
    uid = pod_uid_of_name(parsed, kubepods_name(case["cgroupRoot"]))
    assert (uid is not None, uid or "") == (case["isPodCgroup"], case["parsedUID"])


def recognised_pod_name(case: Case) -> None:
    parsed = spelled_as_measured(case)
    assert pod_uid_of_name(parsed, kubepods_name(case["cgroupRoot"])) == case["podUID"]


def spelled_as_measured(case: Case) -> tuple[str, ...]:
    name = pod_cgroup(case)
    assert list(name) == case["cgroupName"]
    path = expand_name(name, case["driver"])
    assert path == case["path"]
    parsed = parse_name(path, case["driver"])
    assert list(parsed) == case["parsedBack"]
    if case["driver"] == "systemd":
        assert path.split("/")[-2:] == [case["systemdParent"], case["systemdName"]]
        layout = CgroupLayout(case["cgroupRoot"])
        assert "/" + layout.pod(case["podUID"], QOSClass(case["qos"])) == path
        assert layout.pod_uid_of(path.removeprefix("/")) == case["podUID"]
    return parsed


def pod_cgroup(case: Case) -> tuple[str, ...]:
    return pod_name(kubepods_name(case["cgroupRoot"]), case["podUID"], QOSClass(case["qos"]))


@pytest.mark.golden(FILE, "pod_config")
def test_pod_config(case: Case) -> None:
    pod = from_builtins(case["pod"], Pod)
    settings = CgroupSettings(
        cpu_quota=case["enforceCPULimits"],
        cpu_period_usec=case["cpuPeriod"],
        memory_qos=case["memoryQoS"],
        memory_reservation=case["memoryReservationPolicy"] == TIERED,
    )
    assert qos_class(pod) == case["qos"]
    assert resource_config(limits_of_pod(pod, settings)) == case["config"]


@pytest.mark.golden(FILE, "qos_level")
def test_qos_level(case: Case) -> None:
    check(case, exact_qos_level, {"memory limits below zero": qos_level_without_negative_limits})


def exact_qos_level(case: Case) -> None:
    assert qos_level(case) == case["cgroups"]


def qos_level_without_negative_limits(case: Case) -> None:
    for path, config in case["cgroups"].items():
        if "memory" in config:
            config = {**config, "memory": max(config["memory"], 0)}
        assert qos_level(case)[path] == config


def qos_level(case: Case) -> dict[str, Case]:
    settings = CgroupSettings(
        memory_qos=case["memoryQoS"],
        memory_reservation=case["memoryReservationPolicy"] == TIERED,
        qos_reserved_memory_percent=case.get("qosReservedMemoryPercent"),
        allocatable_memory_bytes=Quantity.parse(case.get("nodeAllocatableMemory", "0")).value(),
    )
    tiers = tier_limits([from_builtins(pod, Pod) for pod in case["pods"]], settings)
    return {
        "/kubepods": resource_config(tiers.kubepods),
        "/kubepods/burstable": resource_config(tiers.burstable),
        "/kubepods/besteffort": resource_config(tiers.best_effort),
    }


@pytest.mark.golden(FILE, "node_allocatable")
def test_node_allocatable(case: Case) -> None:
    kube_reserved, system_reserved = quantities(case["kubeReserved"]), quantities(case["systemReserved"])
    node = NodeResources(
        capacity=quantities({**case["capacity"], "pid": case["pidCapacity"]}),
        system_reserved=system_reserved,
        kube_reserved=kube_reserved,
        eviction_hard=case["evictionHard"],
        enforce=frozenset(case["enforce"]),
    )
    assert texts(node.without_reserved) == case["allocatableAbsolute"]
    assert texts(node.reservation) == case["reservation"]
    assert resource_config(limits_of(node.kubepods)) == case["kubepodsCgroup"]

    settings = CgroupSettings(memory_qos=case["memoryQoS"])
    if "systemReservedCgroup" in case:
        limits = reserved_limits(system_reserved, settings, compressible_only=False)
        assert resource_config(limits) == case["systemReservedCgroup"]
    if "kubeReservedCgroupCompressibleOnly" in case:
        limits = reserved_limits(kube_reserved, settings, compressible_only=True)
        assert resource_config(limits) == case["kubeReservedCgroupCompressibleOnly"]

    wrong = case.get("validateErrorsSorted", [])
    assert [named_resource(text) for text in sorted(node.errors())] == [
        named_resource(text) for text in wrong
    ]
    assert all(text.startswith(case.get("validateErrorPrefix", "")) for text in node.errors())


def named_resource(text: str) -> str:
    return re.findall(r"[Rr]esource [\"']([^\"']*)", text)[0]


@pytest.mark.golden(FILE, "node_status")
def test_node_status(case: Case) -> None:
    node = NodeInfo(
        cpu_milli=1000 * case["cores"],
        memory_bytes=case["memory"],
        pids=0,
        hugepages_bytes={
            1024 * int(kib): 1024 * int(kib) * count for kib, count in case["hugePagesKiBToCount"].items()
        },
    )
    capacity = node_capacity(node, case["maxPods"], case["podsPerCore"])
    if case["ephemeralStorage"]:
        capacity["ephemeral-storage"] = Quantity.parse(case["ephemeralStorage"])
    assert texts(capacity) == case["capacity"]
    assert texts(node_allocatable(capacity, quantities(case["reservation"]))) == case["allocatable"]


@pytest.mark.golden(FILE, "container_resources")
def test_container_resources(case: Case) -> None:
    """The agent runs on cgroup v2 only: of the v1 cases, all is checked but v1's own swap limit."""
    pod, settings, v2 = from_builtins(case["pod"], Pod), container_settings(case), case["cgroupV2"]
    assert qos_class(pod) == case["qos"]
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        limits = limits_of_container(pod, container, settings, case["exclusiveCPUs"])
        measured = without_v1_swap(case["containers"][container.name])
        assert oom_score_adj(pod, container, case["memoryCapacity"]) == measured.pop("oomScoreAdj")
        swap = "LimitedSwap" if v2 and has_limited_swap(pod, container, settings) else "NoSwap"
        assert swap == measured.pop("swapBehavior")
        assert cri_resources(limits, v2) == measured
    sandbox = limits_of_sandbox(pod, settings, case["exclusiveCPUs"])
    assert cri_resources(sandbox, v2) == without_v1_swap(case["sandbox"])
    if "overhead" in case:
        overhead = limits_of_overhead(pod, settings)
        assert cri_resources(overhead, v2) == without_v1_swap(case["overhead"])


def without_v1_swap(resources: Case) -> Case:
    return {name: value for name, value in resources.items() if name != "memorySwapLimitInBytes"}


def container_settings(case: Case) -> CgroupSettings:
    return CgroupSettings(
        cpu_quota=case["cpuCFSQuota"],
        cpu_period_usec=1000 * case["cpuCFSQuotaPeriodMs"],
        single_process_oom_kill=case["singleProcessOOMKill"],
        memory_qos=case["memoryQoS"],
        memory_reservation=case["memoryReservationPolicy"] == TIERED,
        memory_throttling_factor=case["memoryThrottlingFactor"],
        limited_swap=case["memorySwapBehavior"] == "LimitedSwap",
        swap_controller=case["swapControllerAvailable"],
        memory_capacity_bytes=case["memoryCapacity"],
        allocatable_memory_bytes=case["nodeAllocatableMemory"],
        swap_capacity_bytes=case["swapCapacity"],
    )


@pytest.mark.golden(FILE, "swap_limit")
def test_swap_limit(case: Case) -> None:
    amounts = case["containerMemoryRequest"], case["nodeTotalMemory"], case["totalSwap"]
    if "error" in case:
        with pytest.raises(ValueError, match=re.escape(case["error"])):
            swap_share_bytes(*amounts)
    else:
        assert swap_share_bytes(*amounts) == case["swap"]
