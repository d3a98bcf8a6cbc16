"""A node that goes down ends its pods first, the critical ones last, and then lets the shutdown go on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nodeagent.api.pod import Pod
from nodeagent.config.schema import KubeletConfiguration, ShutdownByPriority
from nodeagent.logind import LogindError
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.record import Failure
from nodeagent.pods.shutdown import NodeShutdown, Phase, in_phases, shutdown_phases
from nodeagent.store import Store
from tests.unit.simulated_node import VirtualClock, make_pod

CRITICAL = 2_000_000_000
PHASES = (Phase(0, 20), Phase(CRITICAL, 10))


@dataclass
class FakeLogind:
    """Notes what it is asked for."""

    clock: VirtualClock
    allowed_seconds: float = 5.0
    refusal: str = ""
    calls: list[str] = field(default_factory=list)
    released_at: float | None = None
    announced: asyncio.Queue[bool] = field(default_factory=asyncio.Queue)

    async def connect(self) -> None:
        if self.refusal:
            raise LogindError(self.refusal)

    async def longest_delay_seconds(self) -> float:
        return self.allowed_seconds

    async def allow_delay(self, seconds: float) -> None:
        self.calls.append(f"allow {seconds:g}")

    async def delay(self) -> None:
        self.calls.append("delay")

    def release(self) -> None:
        self.released_at = self.clock.monotonic()

    async def shutdowns(self) -> AsyncIterator[bool]:
        while True:
            yield await self.announced.get()

    def close(self) -> None:
        self.calls.append("close")


@dataclass
class FakePods:
    """Pods that are gone so many seconds after they were told to go, or when their grace is over."""

    clock: VirtualClock
    pods: dict[str, tuple[Pod, float]]
    ended: list[tuple[str, float, float]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    leaves_at: dict[str, float] = field(default_factory=dict)

    def active_pods(self) -> list[Pod]:
        now = self.clock.monotonic()
        return [pod for uid, (pod, _) in self.pods.items() if self.leaves_at.get(uid, now + 1) > now]

    def evict(self, pod_uid: str, failure: Failure, grace_seconds: float) -> None:
        pod, takes_seconds = self.pods[pod_uid]
        self.ended.append((pod.metadata.name, round(self.clock.monotonic(), 1), grace_seconds))
        self.failures.append(failure)
        self.leaves_at[pod_uid] = self.clock.monotonic() + min(takes_seconds, grace_seconds)


@dataclass
class Bench:
    logind: FakeLogind
    pods: FakePods
    shutdown: NodeShutdown
    said: list[str]
    states: list[bool]
    store: Store

    async def run(self, *announcements: bool, seconds: float = 60) -> None:
        for each in announcements:
            self.logind.announced.put_nowait(each)
        task = asyncio.ensure_future(self.shutdown.run())
        await self.logind.clock.run_until(seconds)
        task.cancel()
        await asyncio.wait({task})


def make(
    directory: Path, *pods: tuple[Pod, float], phases: tuple[Phase, ...] = PHASES, refusal: str = ""
) -> Bench:
    clock, said, states = VirtualClock(), [], []
    store = Store(directory / "nodeagent.db")
    logind = FakeLogind(clock, refusal=refusal)
    manager = FakePods(clock, {pod.metadata.uid: (pod, takes) for pod, takes in pods})
    events = EventRecorder(store, clock, "node")
    shutdown = NodeShutdown(phases, logind, manager, events, clock, said.append, states.append)
    return Bench(logind, manager, shutdown, said, states, store)


async def test_critical_pods_go_last_and_nobody_waits_for_longer_than_needed(tmp_path: Path) -> None:
    quick = make_pod("quick", terminationGracePeriodSeconds=5)
    slow = make_pod("slow", terminationGracePeriodSeconds=600)
    critical = make_pod("critical", priority=CRITICAL)
    bench = make(tmp_path, (critical, 2.0), (quick, 9.0), (slow, 12.0))
    await bench.run(True)
    # The slow one's ten minutes are cut to the twenty seconds of its phase. It needs twelve of them, and the
    # next look is up to 0.2 s later.
    assert bench.pods.ended == [("quick", 0.0, 5), ("slow", 0.0, 20), ("critical", 12.2, 10)]
    assert bench.logind.released_at == pytest.approx(14.0, abs=0.5)
    assert {(each.reason, each.message) for each in bench.pods.failures} == {
        ("Terminated", "Pod was terminated in response to imminent node shutdown.")
    }
    assert bench.states == [True]
    assert bench.said[0] == "shutting down: 2 of 2 pods of priority 0 and up still run"
    assert bench.said[-1] == "shutting down: all pods were ended"


async def test_pods_that_do_not_end_hold_up_nothing_for_ever(tmp_path: Path) -> None:
    stuck = make_pod("stuck", terminationGracePeriodSeconds=600)
    bench = make(tmp_path, (stuck, 600.0))
    bench.pods.evict = lambda *_: None  # type: ignore[method-assign, assignment]
    await bench.run(True)
    assert bench.logind.released_at == pytest.approx(20.0, abs=0.5)


async def test_logind_is_asked_for_the_time_that_is_needed(tmp_path: Path) -> None:
    bench = make(tmp_path)
    await bench.run()
    assert bench.logind.calls == ["allow 30", "delay", "close"]


async def test_a_shutdown_that_is_called_off_is_delayed_again_the_next_time(tmp_path: Path) -> None:
    bench = make(tmp_path)
    await bench.run(True, False)
    assert bench.states == [True, False]
    assert bench.logind.calls == ["allow 30", "delay", "delay", "close"]


@pytest.mark.parametrize("phases", [(), PHASES])
async def test_without_phases_or_logind_the_agent_goes_on(tmp_path: Path, phases: tuple[Phase, ...]) -> None:
    bench = make(tmp_path, phases=phases, refusal="cannot listen for shutdowns: no bus")
    await asyncio.wait_for(bench.shutdown.run(), 5)
    stored = b"".join(bench.store.events()).decode()
    assert ("Shutdowns will not wait for pods: cannot listen for shutdowns: no bus" in stored) is bool(phases)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ()),
        (
            {"shutdown_grace_period": "30s", "shutdown_grace_period_critical_pods": "10s"},
            (Phase(0, 20), Phase(CRITICAL, 10)),
        ),
        ({"shutdown_grace_period": "30s"}, (Phase(0, 30),)),
        (
            {
                "shutdown_grace_period_by_pod_priority": (
                    ShutdownByPriority(priority=1000, shutdown_grace_period_seconds=9),
                    ShutdownByPriority(priority=-5, shutdown_grace_period_seconds=3),
                )
            },
            (Phase(-5, 3), Phase(1000, 9)),
        ),
    ],
)
def test_phases_follow_the_configuration(settings: dict[str, object], expected: tuple[Phase, ...]) -> None:
    assert shutdown_phases(KubeletConfiguration(**settings)) == expected  # type: ignore[arg-type]


def test_a_pod_goes_with_the_highest_phase_it_reaches() -> None:
    phases = (Phase(10, 1), Phase(100, 1), Phase(1000, 1))
    pods = [make_pod(f"p{priority}", priority=priority) for priority in (5, 10, 99, 1000, 2000)]
    dealt = [
        (phase.priority, [pod.metadata.name for pod in found]) for phase, found in in_phases(pods, phases)
    ]
    assert dealt == [(10, ["p5", "p10", "p99"]), (1000, ["p1000", "p2000"])]
