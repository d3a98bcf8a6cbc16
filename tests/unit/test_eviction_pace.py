"""How long the loop sleeps."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.eviction.pace import Limits, Pace, Trend
from nodeagent.eviction.signals import Observation, Signal
from nodeagent.stats.fill_rate import measure_fill_rate
from tests.unit.simulated_node import MIB, make_policy

MEMORY = Signal.MEMORY_AVAILABLE
HARD = make_policy({"memory.available": "100Mi"}).thresholds
SOFT = make_policy(soft={"memory.available": "100Mi"}, grace={"memory.available": "1m"}).thresholds


def make_pace(gib_per_second: float = 1.0) -> Pace:
    return Pace(Limits(memory_bytes_per_second=gib_per_second * 1024 * MIB, pids_per_second=1000))


def sleep(pace: Pace, now: float, available_mib: float, thresholds: tuple = HARD) -> float:  # type: ignore[type-arg]
    observations = {MEMORY: Observation(int(available_mib * MIB), 4096 * MIB)}
    pace.observe(now, observations)
    return pace.sleep_seconds(now, thresholds, observations)


def test_the_machines_limit_bounds_the_sleep() -> None:
    assert sleep(make_pace(), 0.0, 1024) == pytest.approx(1.0 - 0.02)
    assert sleep(make_pace(4), 0.0, 1024) == pytest.approx(0.25 - 0.02)


def test_what_was_seen_bounds_it_too() -> None:
    pace = make_pace(0.01)
    assert sleep(pace, 0.0, 1000) == 10.0
    assert sleep(pace, 10.0, 600) == 10.0  # 40 MiB/s, 500 MiB to go
    assert sleep(pace, 20.0, 200) == pytest.approx(100 / 40)


def test_a_rate_above_the_machines_limit_becomes_the_limit() -> None:
    pace = make_pace(0.1)
    sleep(pace, 0.0, 4000)
    sleep(pace, 1.0, 2000)
    for second in range(2, 60):
        last = sleep(pace, float(second), 2000)
    assert last == pytest.approx(1.0 - 0.02, rel=0.05)


def test_how_far_a_threshold_is() -> None:
    pace = make_pace()
    (threshold,) = HARD
    assert pace.headroom(threshold, {}) is None
    for second, available_mib in enumerate((1100, 1100, 1000)):
        sleep(pace, float(second), available_mib)
        found = pace.headroom(threshold, {MEMORY: Observation(available_mib * MIB, 4096 * MIB)})
        assert found is not None
        # 100 MiB/s in the last second only; 900 MiB are left above the threshold then.
        assert found.left == (available_mib - 100) * MIB
        assert found.seconds == (9.0 if second == 2 else inf)
    crossed = pace.headroom(threshold, {MEMORY: Observation(90 * MIB, 4096 * MIB)})
    assert crossed is not None
    assert (crossed.left, crossed.seconds) == (-10 * MIB, 0.0)


def test_a_soft_threshold_needs_no_safety() -> None:
    assert sleep(make_pace(), 0.0, 1024, SOFT) == 10.0


def test_a_slow_reaction_shortens_the_sleep_for_a_while() -> None:
    pace = make_pace()
    pace.react(0.0, 0.5)
    assert sleep(pace, 0.0, 1024) == pytest.approx(0.5)
    assert sleep(pace, 10.0, 1024) == pytest.approx(0.75)
    assert sleep(pace, 3600.0, 1024) == pytest.approx(0.98)


def test_a_signal_that_was_never_seen_bounds_nothing() -> None:
    assert make_pace().sleep_seconds(0.0, HARD, {}) == 10.0


@given(
    looks=st.lists(st.tuples(st.floats(0.001, 20), st.integers(0, 4096)), min_size=1, max_size=30),
    limit=st.floats(0.01, 100),
)
def test_a_sleep_is_never_longer_than_is_safe(looks: list[tuple[float, int]], limit: float) -> None:
    pace, now = make_pace(limit), 0.0
    for elapsed, available in looks:
        now += elapsed
        seconds = sleep(pace, now, available)
        assert pace.shortest_seconds <= seconds <= pace.interval_seconds
        if available >= 100 and seconds > pace.shortest_seconds:
            assert seconds * limit * 1024 <= available


def test_a_batch_of_pages_is_no_torrent() -> None:
    pace = make_pace(0.001)
    sleep(pace, 0.0, 1000)
    sleep(pace, 0.001, 998)
    trend = pace.trend(MEMORY)
    assert trend is not None and trend.rate_per_second == 0
    sleep(pace, 1.0, 990)
    assert trend.rate_per_second == pytest.approx(10 * MIB)


def test_a_crossing_lies_between_two_looks() -> None:
    trend = Trend(10.0, 400)
    trend.look(12.0, 200)
    assert trend.crossed_at(300) == 11.0
    assert trend.rate_per_second == 100
    assert Trend(10.0, 400).crossed_at(500) == 10.0


@given(st.floats(0.01, 100), st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_crossing_is_never_outside_the_looks(elapsed: float, first: int, second: int, amount: int) -> None:
    trend = Trend(5.0, first)
    trend.look(5.0 + elapsed, second)
    assert 5.0 <= trend.crossed_at(amount) <= 5.0 + elapsed


def test_the_limits_of_a_machine() -> None:
    limits = Limits.of_machine(4, 2e9)
    assert (limits.memory_bytes_per_second, limits.pids_per_second) == (8e9, 80_000)
    assert Limits.of_machine(2, 5e6).memory_bytes_per_second == 2 * 512e6
    assert Limits.of_machine(256, 20e9).memory_bytes_per_second == 400e9
    assert limits.of(Signal.PID_AVAILABLE) == 80_000
    assert limits.of(Signal.NODEFS_INODES_FREE) == limits.inodes_per_second
    assert limits.of(Signal.IMAGEFS_AVAILABLE) == limits.storage_bytes_per_second


def test_filling_memory_is_measured() -> None:
    ticks = iter(range(100))
    assert measure_fill_rate(lambda: float(next(ticks))) == 16 << 20


def test_a_look_earns_a_rest_unless_a_threshold_is_near() -> None:
    def rest(available_mib: int, look_seconds: float) -> float:
        observations = {MEMORY: Observation(available_mib * MIB, 4096 * MIB)}
        pace.observe(1.0, observations)
        return pace.rest_seconds(look_seconds, observations, HARD)

    pace = make_pace()
    assert rest(2000, 0.001) == pytest.approx(0.1)  # one hundredth of a CPU
    assert rest(2000, 0.1) == 1.0  # however slow the machine is
    assert rest(300, 0.001) == pytest.approx(0.02)  # closer: a twentieth
    assert rest(90, 0.001) == 0.0  # crossed already
    pace = make_pace()
    sleep(pace, 0.0, 2000)
    assert rest(500, 0.001) == 0.0  # reached within a second at this rate
