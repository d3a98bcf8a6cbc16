"""Signals that only this agent has: off unless asked for."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.cgroup.files import CgroupTree
from nodeagent.config import AgentConfiguration
from nodeagent.eviction.opt_in import opt_in_thresholds
from nodeagent.eviction.signals import Observation, Signal, observe_hot
from nodeagent.eviction.thresholds import ThresholdError, parse_thresholds
from nodeagent.stats.hot import HotReader, HotSample
from nodeagent.stats.node import ProcessNumbers
from tests.unit.simulated_node import (
    START,
    SimulatedNode,
    VirtualClock,
    Workload,
    make_loop,
    make_pod,
    make_policy,
    run,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_nothing_is_watched_unless_asked_for() -> None:
    assert opt_in_thresholds(AgentConfiguration()) == ()
    with pytest.raises(ThresholdError, match="unsupported eviction signal memoryPressure"):
        parse_thresholds(eviction_hard={"memoryPressure.full": "20%"})


def test_what_is_asked_for() -> None:
    asked = AgentConfiguration(
        eviction_allocatable_pids="10%",
        eviction_memory_pressure="20%",
        eviction_io_pressure="60%",
        eviction_pressure_period="15s",
    )
    found = [
        (each.signal.value, int(each.value.of(1000).value()), each.grace_period_seconds)
        for each in opt_in_thresholds(asked)
    ]
    # A tenth of the limit of all pods; and what is left of the time when a fifth, or three, are lost.
    assert found == [
        ("allocatablePids.available", 100, 0),
        ("memoryPressure.full", 80, 15),
        ("ioPressure.full", 40, 15),
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"eviction_allocatable_pids": "-3"},
            "evictionAllocatablePids: eviction threshold .* must be positive",
        ),
        (
            {"eviction_memory_pressure": "20"},
            "evictionMemoryPressure: must be a whole percentage from 1% to 99%",
        ),
        (
            {"eviction_io_pressure": "100%"},
            "evictionIoPressure: must be a whole percentage from 1% to 99%: 100%",
        ),
        (
            {"eviction_io_pressure": "9%", "eviction_pressure_period": "0s"},
            "evictionPressurePeriod: must be at least 1s",
        ),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ThresholdError, match=message):
        opt_in_thresholds(AgentConfiguration(**settings))


def test_the_figures_are_read_from_the_kernels_files(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    for path, text in (
        (
            proc / "pressure/memory",
            "some avg10=40.00 avg60=0 avg300=0 total=9\nfull avg10=20.51 avg60=0 avg300=0 total=5\n",
        ),
        (proc / "pressure/io", "some avg10=1.00 avg60=0 avg300=0 total=9\n"),
        (cgroups / "kubepods.slice/pids.current", "120\n"),
        (cgroups / "kubepods.slice/pids.max", "500\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    reader = HotReader(proc, CgroupTree(cgroups), "kubepods.slice")
    # A kernel that does not tell when all tasks wait for disks has no such signal.
    assert observe_hot(reader.sample(), NOW) == {
        Signal.ALLOCATABLE_PIDS_AVAILABLE: Observation(380, 500, NOW),
        Signal.MEMORY_UNSTALLED: Observation(79, 100, NOW),
    }
    reader.close()


class StalledNode(SimulatedNode):
    """All tasks wait for memory for half of the time, from the fifth second on."""

    def sample(self) -> HotSample:
        stalled = 50.0 if self.clock.time >= 5 else 0.0
        return replace(super().sample(), memory_stalled_percent=stalled)


async def test_pressure_that_lasts_costs_one_pod_and_then_waits_for_what_it_did() -> None:
    pods = [Workload(make_pod(f"p{number}"), start_bytes=(50 + number) << 20) for number in range(4)]
    node = StalledNode(VirtualClock(), pods)
    thresholds = opt_in_thresholds(AgentConfiguration(eviction_memory_pressure="20%"))
    await run(make_loop(node, replace(make_policy(), thresholds=thresholds)), node.clock, 62)
    assert node.evicted_names() == ["p3"]
    assert (node.records[0].decided_at - START).total_seconds() >= 5 + 30


async def test_process_numbers_of_all_pods() -> None:
    bomb = Workload(make_pod("bomb"), processes_per_second=100)

    class FullNode(SimulatedNode):
        def sample(self) -> HotSample:
            tasks = sum(load.tasks(self.clock.time) for load in self.workloads)
            return replace(super().sample(), pods_processes=ProcessNumbers(1000, tasks))

    node = FullNode(VirtualClock(), [bomb, Workload(make_pod("quiet"))])
    thresholds = opt_in_thresholds(AgentConfiguration(eviction_allocatable_pids="100"))
    await run(make_loop(node, replace(make_policy(), thresholds=thresholds)), node.clock, 30)
    assert node.evicted_names() == ["bomb"]
