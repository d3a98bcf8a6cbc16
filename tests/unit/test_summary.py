"""kubelet's /stats/summary, built from samples."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from nodeagent.stats.cgroup import CgroupSample, CpuSample, MemorySample
from nodeagent.stats.filesystem import DirectoryUsage, FilesystemSample
from nodeagent.stats.kernel_files import Pressure, PressureLine
from nodeagent.stats.node import NodeMemory, NodeSample, ProcessNumbers
from nodeagent.stats.summary import PodReference
from nodeagent.stats.summary_builder import (
    ContainerUsage,
    CpuRates,
    NodeUsage,
    PodUsage,
    VolumeUsage,
    build_summary,
    cpu_and_memory_only,
)

TIME = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
PRESSURE = Pressure(PressureLine(1.5, 2.5, 3.5, 40), PressureLine(0.5, 0.25, 0.125, 20))
MEMORY = MemorySample(
    usage_bytes=1000,
    anon_bytes=600,
    file_bytes=400,
    inactive_file_bytes=300,
    swap_bytes=7,
    swap_limit_bytes=10,
    limit_bytes=2000,
    page_faults=5,
    major_page_faults=1,
    pressure=PRESSURE,
)
CGROUP = CgroupSample(
    cpu=CpuSample(
        usage_microseconds=3_000_000, user_microseconds=1, system_microseconds=2, pressure=PRESSURE
    ),
    memory=MEMORY,
    tasks=9,
    tasks_limit=None,
    io_pressure=PRESSURE,
    populated=True,
    dying_descendants=0,
)
DISK = FilesystemSample(
    capacity_bytes=10_000, available_bytes=4_000, used_bytes=6_000, inodes=100, inodes_free=60
)
NODE = NodeUsage(
    name="n",
    sample=NodeSample(
        time=TIME,
        memory=NodeMemory(
            capacity_bytes=9000,
            usage_bytes=1000,
            working_set_bytes=700,
            available_bytes=8300,
            rss_bytes=600,
            page_faults=5,
            major_page_faults=1,
            kernel_available_bytes=8000,
            hugepages_bytes=0,
            swap_total_bytes=50,
            swap_free_bytes=40,
        ),
        processes=ProcessNumbers(30000, 29800),
        cpu=CGROUP.cpu,
        memory_pressure=PRESSURE,
        io_pressure=PRESSURE,
    ),
    system_containers={"pods": CGROUP},
    nodefs=DISK,
)
POD = PodUsage(
    reference=PodReference(name="p", namespace="default", uid="u"),
    cgroup=CGROUP,
    containers=[
        ContainerUsage("c", CGROUP, rootfs=DirectoryUsage(100, 3), logs=DirectoryUsage(20, 1)),
    ],
    volumes=[
        VolumeUsage("scratch", DirectoryUsage(1000, 5)),
        VolumeUsage("claim", DirectoryUsage(5000, 7), is_local=False),
    ],
)


def test_the_keys_are_kubelets() -> None:
    summary = msgspec.to_builtins(build_summary(NODE, [POD], CpuRates()), builtin_types=(datetime,))
    node, (pod,) = summary["node"], summary["pods"]
    psi = {
        "full": {"total": 20, "avg10": 0.5, "avg60": 0.25, "avg300": 0.125},
        "some": {"total": 40, "avg10": 1.5, "avg60": 2.5, "avg300": 3.5},
    }
    memory = {
        "time": TIME,
        "availableBytes": 1300,
        "usageBytes": 1000,
        "workingSetBytes": 700,
        "rssBytes": 600,
        "pageFaults": 5,
        "majorPageFaults": 1,
        "psi": psi,
    }
    assert node["nodeName"] == "n"
    assert node["rlimit"] == {"time": TIME, "maxpid": 30000, "curproc": 29800}
    assert node["systemContainers"][0]["name"] == "pods"
    assert node["memory"]["availableBytes"] == 8300
    assert node["swap"] == {"time": TIME, "swapAvailableBytes": 40, "swapUsageBytes": 10}
    assert node["fs"] == {
        "time": TIME,
        "availableBytes": 4_000,
        "capacityBytes": 10_000,
        "usedBytes": 6_000,
        "inodesFree": 60,
        "inodes": 100,
        "inodesUsed": 40,
    }
    assert node["runtime"] == {}
    assert pod["podRef"] == {"name": "p", "namespace": "default", "uid": "u"}
    assert pod["process_stats"] == {"process_count": 9}
    assert pod["cpu"] == {"time": TIME, "usageCoreNanoSeconds": 3_000_000_000, "psi": psi}
    assert pod["memory"] == memory
    assert pod["io"] == {"time": TIME, "psi": psi}
    assert pod["swap"] == {"time": TIME, "swapAvailableBytes": 3, "swapUsageBytes": 7}
    assert [volume["name"] for volume in pod["volume"]] == ["scratch", "claim"]
    assert pod["ephemeral-storage"]["usedBytes"] == 100 + 20 + 1000
    assert pod["ephemeral-storage"]["inodesUsed"] == 3 + 1 + 5
    assert pod["containers"][0]["memory"] == memory
    assert pod["containers"][0]["rootfs"]["usedBytes"] == 100


def test_what_is_unknown_is_left_out() -> None:
    unlimited = replace(CGROUP, cpu=None, memory=replace(MEMORY, limit_bytes=None), io_pressure=None)
    pods = [
        PodUsage(reference=POD.reference, cgroup=None),
        PodUsage(reference=POD.reference, cgroup=unlimited),
    ]
    nothing, little = msgspec.to_builtins(build_summary(NODE, pods, CpuRates()))["pods"]
    assert nothing == {"podRef": {"name": "p", "namespace": "default", "uid": "u"}}
    assert set(little) == {"podRef", "memory", "swap", "process_stats"}
    assert "availableBytes" not in little["memory"]


def test_the_short_form_has_cpu_memory_and_swap_only() -> None:
    short = msgspec.to_builtins(cpu_and_memory_only(build_summary(NODE, [POD], CpuRates())))
    assert set(short["node"]) == {"nodeName", "systemContainers", "cpu", "memory", "swap"}
    assert set(short["pods"][0]) == {"podRef", "containers", "cpu", "memory", "swap"}
    assert set(short["pods"][0]["containers"][0]) == {"name", "cpu", "memory", "swap"}


def test_cpu_rates() -> None:
    rates = CpuRates()
    assert rates.nanocores("a", TIME, 1_000_000) is None
    assert rates.nanocores("a", TIME + timedelta(seconds=2), 2_000_000) == 500_000_000
    # A moment later the last rate still stands.
    assert rates.nanocores("a", TIME + timedelta(seconds=2.1), 2_000_001) == 500_000_000
    assert rates.nanocores("a", TIME + timedelta(seconds=4), 2_500_000) == 250_000_000
    # A cgroup made anew under the same name begins again.
    assert rates.nanocores("a", TIME + timedelta(seconds=6), 5) is None
    rates.keep_only(["b"])
    assert rates.nanocores("a", TIME + timedelta(seconds=8), 10) is None
