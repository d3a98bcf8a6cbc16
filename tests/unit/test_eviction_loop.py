"""The eviction loop, on a node made of arithmetic."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.eviction.manager import Reclaim
from nodeagent.eviction.record import explain
from nodeagent.eviction.signals import Condition, Resource
from tests.unit.simulated_node import (
    MIB,
    START,
    SimulatedNode,
    VirtualClock,
    Workload,
    make_loop,
    make_pod,
    make_policy,
    run,
)

THRESHOLD = {"memory.available": "300Mi"}


def make_node(*workloads: Workload, **settings: object) -> SimulatedNode:
    return SimulatedNode(VirtualClock(), list(workloads), **settings)  # type: ignore[arg-type]


def hog(rate_mib: float, grows_from: float = 0.0, name: str = "hog", **spec: object) -> Workload:
    return Workload(make_pod(name, **spec), bytes_per_second=rate_mib * MIB, grows_from=grows_from)  # type: ignore[arg-type]


def innocent(name: str = "innocent") -> Workload:
    return Workload(make_pod(name, memory="200Mi"), start_bytes=100 * MIB)


async def test_the_hog_goes_and_the_others_stay() -> None:
    node = make_node(innocent("a"), hog(40), innocent("b"))
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 120)
    assert node.evicted_names() == ["hog"]
    assert node.evictions[0].immediate
    assert node.lowest_available_bytes > 298 * MIB
    assert node.announced == [Resource.MEMORY]


@settings(max_examples=60, deadline=None)
@given(
    threshold_mib=st.integers(100, 2000),
    share_of_limit=st.floats(0.02, 1.0),
    start=st.floats(0.0, 30.0),
    used_mib=st.integers(0, 6000),
    decision=st.floats(0.0, 0.008),
    kill=st.floats(0.0, 0.008),
    others=st.integers(0, 5),
)
async def test_nothing_that_the_machine_can_do_exhausts_memory_first(
    threshold_mib: int,
    share_of_limit: float,
    start: float,
    used_mib: int,
    decision: float,
    kill: float,
    others: int,
) -> None:
    """The promise: whatever the rate and whenever it begins, memory is left when the pod is killed.

    It holds for a threshold that the machine cannot fill within the time that acting takes.
    """
    limit = threshold_mib * MIB / 0.025
    growing = Workload(
        make_pod("hog"), used_mib * MIB, bytes_per_second=share_of_limit * limit, grows_from=start
    )
    node = make_node(
        growing,
        *(innocent(f"innocent-{number}") for number in range(others)),
        capacity_bytes=10_000 * MIB,
        decision_seconds=decision,
        kill_seconds=kill,
    )
    until_full = 10_000 * MIB / growing.bytes_per_second
    policy = make_policy({"memory.available": f"{threshold_mib}Mi"})
    await run(make_loop(node, policy, limit), node.clock, start + until_full + 1)
    assert node.lowest_available_bytes > 0
    assert node.evicted_names() == ["hog"]


async def test_it_kills_before_anything_is_written_down() -> None:
    node = make_node(hog(200))
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 60)
    assert node.done[:3] == ["kill hog", "record hog", "announce memory"]


async def test_far_from_every_threshold_it_looks_once_an_interval() -> None:
    node = make_node(innocent(), capacity_bytes=64_000 * MIB)
    await run(make_loop(node, make_policy(THRESHOLD), bytes_per_second=1e9), node.clock, 100)
    assert len(node.samples) <= 11
    assert node.measured_pods == 0


async def test_a_node_that_stays_just_above_its_threshold_costs_little() -> None:
    node = make_node(Workload(make_pod("large"), start_bytes=1640 * MIB))
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 60)
    assert node.evictions == []
    assert len(node.samples) < 60 * 10


async def test_memory_on_its_way_back_costs_no_second_pod_its_life() -> None:
    node = make_node(hog(200), Workload(make_pod("neighbour"), start_bytes=50 * MIB), free_seconds=3.0)
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 60)
    assert node.evicted_names() == ["hog"]


async def test_a_second_hog_is_not_waited_for() -> None:
    node = make_node(hog(200), hog(300, grows_from=5.0, name="second"), free_seconds=4.0)
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 60)
    assert sorted(node.evicted_names()) == ["hog", "second"]
    assert node.lowest_available_bytes > 100 * MIB


async def test_a_leak_outside_all_pods_does_not_clear_the_node_in_a_moment() -> None:
    small = [Workload(make_pod(f"small-{number}"), start_bytes=5 * MIB) for number in range(20)]
    node = make_node(*small, base_bytes=1700 * MIB)
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 35)
    assert 1 <= len(node.evictions) <= 4


async def test_a_pod_that_cannot_be_ended_is_passed_over() -> None:
    node = make_node(hog(50), Workload(make_pod("next"), start_bytes=400 * MIB), stuck=frozenset({"hog"}))
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 27)
    assert node.evicted_names() == ["hog", "next"]
    assert [record.name for record in node.records if record.dead_at is not None] == ["next"]


async def test_critical_pods_are_never_evicted_and_trying_costs_little() -> None:
    node = make_node(hog(100, priority=2_000_000_000))
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 60)
    assert node.evictions == []
    assert node.measured_pods <= 60


async def test_static_pods_can_be_evicted_unless_kubelets_rule_is_asked_for() -> None:
    for evicts, expected in ((True, ["hog"]), (False, [])):
        load = hog(100)
        load.pod.metadata.annotations["kubernetes.io/config.source"] = "file"
        node = make_node(load)
        policy = make_policy(THRESHOLD, evict_static_pods=evicts)
        await run(make_loop(node, policy), node.clock, 30)
        assert node.evicted_names() == expected


async def test_unknown_is_not_zero() -> None:
    node = make_node(innocent(), is_memory_known=False)
    await run(make_loop(node, make_policy(THRESHOLD)), node.clock, 60)
    assert node.evictions == []
    assert node.conditions == []


async def test_a_soft_threshold_waits_and_asks_first() -> None:
    node = make_node(hog(10, terminationGracePeriodSeconds=20))
    policy = make_policy(
        soft={"memory.available": "300Mi"}, grace={"memory.available": "30s"}, max_pod_grace_period_seconds=60
    )
    await run(make_loop(node, policy), node.clock, 220)
    (eviction,) = node.evictions
    assert (eviction.immediate, eviction.grace_seconds) == (False, 20)
    first, last = node.records
    assert first.pressure is not None
    seconds = (first.decided_at - first.pressure.crossed_at).total_seconds()
    assert 30 <= seconds < 30.1
    crossed = (first.pressure.crossed_at - START).total_seconds()
    assert crossed == pytest.approx((2048 - 100 - 300) / 10, abs=0.1)
    assert last.dead_at is not None


async def test_a_hard_threshold_cuts_the_grace_of_a_soft_one_short() -> None:
    node = make_node(hog(20, terminationGracePeriodSeconds=600))
    policy = make_policy(
        hard={"memory.available": "200Mi"},
        soft={"memory.available": "500Mi"},
        grace={"memory.available": "5s"},
        max_pod_grace_period_seconds=600,
    )
    loop = make_loop(node, policy)
    await run(loop, node.clock, 200)
    assert [eviction.immediate for eviction in node.evictions] == [False, True]
    assert node.evicted_names() == ["hog", "hog"]
    # One eviction, whose end came sooner.
    assert len(node.records) == 1
    assert node.lowest_available_bytes > 190 * MIB


async def test_the_condition_outlasts_the_pressure_by_the_transition_period() -> None:
    node = make_node(hog(100))
    policy = make_policy(THRESHOLD, pressure_transition_period_seconds=60.0)
    await run(make_loop(node, policy), node.clock, 120)
    assert node.conditions == [frozenset({Condition.MEMORY_PRESSURE}), frozenset()]


async def test_a_fork_bomb_is_ended_before_the_numbers_run_out() -> None:
    bomb = Workload(make_pod("bomb"), processes_per_second=20_000, grows_from=3.0)
    node = make_node(innocent(), bomb)
    await run(make_loop(node, make_policy({"pid.available": "2000"})), node.clock, 30)
    assert node.evicted_names() == ["bomb"]
    assert bomb.tasks(node.clock.time) == 0
    assert node.conditions[0] == frozenset({Condition.PID_PRESSURE})


async def test_garbage_goes_before_pods() -> None:
    writer = Workload(make_pod("writer"), disk_bytes=60_000 * MIB)
    node = make_node(writer, garbage_bytes=35_000 * MIB)
    await run(make_loop(node, make_policy({"nodefs.available": "10%"})), node.clock, 30)
    assert node.reclaimed == [Reclaim.CONTAINERS, Reclaim.IMAGES]
    assert node.evictions == []


async def test_a_pod_goes_where_garbage_is_not_enough() -> None:
    writer = Workload(make_pod("writer"), disk_bytes=95_000 * MIB)
    node = make_node(writer, innocent())
    await run(make_loop(node, make_policy({"nodefs.available": "10%"})), node.clock, 30)
    assert node.reclaimed == [Reclaim.CONTAINERS, Reclaim.IMAGES]
    assert node.evicted_names() == ["writer"]


async def test_a_small_disk_is_looked_at_no_more_often_than_it_is_worth() -> None:
    """It could be full in ten milliseconds; what would be done about it takes longer."""
    writer = Workload(make_pod("writer"), disk_bytes=46 * MIB)
    node = make_node(writer, innocent(), disk_capacity_bytes=48 * MIB)
    await run(make_loop(node, make_policy({"nodefs.available": "10%"})), node.clock, 60)
    assert node.evicted_names() == ["writer"]
    assert len(node.samples) < 60 * 11


async def test_a_pod_over_its_own_storage_limit_goes_alone_and_once() -> None:
    writer = Workload(make_pod("writer", storage_limit="1Gi"), disk_bytes=2_000 * MIB)
    node = make_node(writer, innocent(), kill_seconds=25.0)
    loop = make_loop(node, make_policy(THRESHOLD))
    await run(loop, node.clock, 60)
    assert node.evicted_names() == ["writer"]
    assert {record.cause for record in node.records} == {"ephemeralpodfs.limit"}
    assert "exceeds the total limit of containers 1Gi" in node.evictions[0].message.text


async def test_a_record_tells_the_whole_story() -> None:
    node = make_node(innocent(), hog(40), Workload(make_pod("vip", priority=2_000_000_000)))
    loop = make_loop(node, make_policy(THRESHOLD))
    await run(loop, node.clock, 60)
    first, last = node.records
    assert first.dead_at is None
    assert last.seconds_to_dead is not None and 0 < last.seconds_to_dead < 0.1
    assert last.pressure is not None
    assert last.pressure.threshold == "300Mi"
    assert abs(last.pressure.rate_per_second - 40 * MIB) < MIB
    assert [candidate.name for candidate in last.candidates] == ["hog", "innocent", "vip"]
    text = explain(last)
    assert "falling by 40.0 MiB/s" in text
    assert "default/vip: priority 2000000000, critical, never evicted" in text
    assert last.stats_age_seconds is not None and 0 <= last.stats_age_seconds < 0.1


async def test_a_notice_wakes_it_at_once() -> None:
    node = make_node(innocent(), capacity_bytes=64_000 * MIB)
    loop = make_loop(node, make_policy(THRESHOLD), bytes_per_second=1e9)
    task = asyncio.ensure_future(loop.run())
    await node.clock.run_until(3)
    assert node.samples == [0.0]
    loop.wake()
    await node.clock.run_until(3)
    assert node.samples == [0.0, 3.0]
    task.cancel()
    await asyncio.wait({task})
