"""A pod's worker, step by step: start, ask to end, kill, evict, come back."""

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from nodeagent.api.meta import ObjectMeta, format_time
from nodeagent.api.pod import Container, Pod, PodSpec
from nodeagent.cgroup.errors import StuckCgroup
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.launch import LaunchSettings
from nodeagent.pods.manager import stored_records
from nodeagent.pods.record import Failure, PodRecord
from nodeagent.pods.services import Refusal, Services
from nodeagent.pods.worker import PodWorker
from nodeagent.runtime.process import StartError
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec
from nodeagent.store import Store

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class FakeClock:
    time: datetime = START

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class FakeObserver:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


@dataclass
class FakeHost:
    """Runtime and cgroups of a host on which nothing is real."""

    clock: FakeClock
    records: ContainerRecords = field(default_factory=ContainerRecords)
    started: list[str] = field(default_factory=list)
    signals: list[tuple[str, int]] = field(default_factory=list)
    removals: int = 0
    removal_fails: bool = False
    missing_program: bool = False

    async def start(self, spec: ContainerSpec, attach: Callable[[int], Awaitable[None]]) -> ContainerRecord:
        if self.missing_program:
            raise StartError(f'exec: "{spec.argv[0]}": executable file not found in $PATH')
        self.started.append(f"{spec.container_name}/{spec.attempt}")
        await attach(100)
        return ContainerRecord(spec=spec, pid=100, state="running", started_at=format_time(self.clock.now()))

    async def signal(self, container_id: str, number: int) -> bool:
        record = self.records.get(container_id)
        assert record is not None
        self.signals.append((record.spec.container_name, number))
        return True

    async def forget(self, container_id: str) -> None:
        record = self.records.get(container_id)
        assert record is not None
        assert record.state == "exited", "only what has ended may be forgotten"

    def slice(self, pod: Pod) -> str:
        return f"kubepods.slice/{pod.metadata.uid}"

    def leaf(self, pod: Pod, container_id: str) -> str:
        return f"{self.slice(pod)}/{container_id}"

    async def ensure_pod(self, pod: Pod) -> None: ...

    async def attach(self, pod: Pod, container: Container, path: str, pid: int) -> None: ...

    def kill(self, pod: Pod) -> None:
        for record in self.records.of(pod.metadata.uid):
            self.end(record, 137)

    async def remove_pod(self, pod: Pod) -> None:
        if self.removal_fails:
            raise StuckCgroup(self.slice(pod), (100,))
        self.removals += 1
        self.kill(pod)

    def end(self, record: ContainerRecord, exit_code: int) -> None:
        if record.state != "exited":
            finished = format_time(self.clock.now())
            ended = msgspec.structs.replace(record, state="exited", exit_code=exit_code, finished_at=finished)
            self.records.update(ended)

    def end_all(self, uid: str, exit_code: int = 0) -> None:
        for record in self.records.of(uid):
            self.end(record, exit_code)


@dataclass
class Bench:
    clock: FakeClock
    host: FakeHost
    store: Store
    worker: PodWorker
    refusal: list[Refusal | None]
    pressure: list[bool]
    released: list[str]

    async def settle(self) -> float | None:
        """Step until the worker would wait."""
        while (delay := await self.worker.step()) == 0 and not self.worker.gone:
            pass
        return delay

    def reasons(self) -> list[str]:
        return [msgspec.json.decode(body)["reason"] for body in self.store.events()]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Bench]:
    def build(policy: str = "Always", grace: int = 30) -> Bench:
        clock = FakeClock()
        host = FakeHost(clock)
        store = Store(tmp_path / "nodeagent.db")
        refusal: list[Refusal | None] = [None]
        pressure, released = [False], list[str]()
        services = Services(
            clock=clock,
            runtime=host,
            cgroups=host,
            store=store,
            events=EventRecorder(store, clock, "n1"),
            launch=LaunchSettings("n1", "10.0.0.1", tmp_path / "logs", 1000, 2),
            memory_capacity_bytes=1 << 30,
            admit=lambda pod: refusal[0] or pod,
            starting=lambda pod, name: None,
            release=released.append,
            may_return=lambda: not pressure[0],
            records=host.records,
            observer=FakeObserver(),
            longest_backoff_seconds=300,
        )
        spec = PodSpec(
            containers=(Container(name="c", image="x", command=("sleep",)),),
            restart_policy=policy,
            termination_grace_period_seconds=grace,
        )
        pod = Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u1"), spec=spec)
        worker = PodWorker(PodRecord(pod=pod, source="f", created=START), services)
        return Bench(clock, host, store, worker, refusal, pressure, released)

    return build


def eviction(bench: Bench) -> Failure:
    return Failure(reason="Evicted", message="low on memory", at=bench.clock.now(), evicted=True)


async def test_pod_starts_and_is_remembered(make: Callable[..., Bench]) -> None:
    bench = make()
    assert await bench.settle() is None
    assert bench.host.started == ["c/0"]
    (stored,) = stored_records(bench.store)
    assert stored.admitted
    assert stored.pod.status.phase == "Running"


async def test_deleted_pod_is_asked_then_killed_when_its_time_is_up(make: Callable[..., Bench]) -> None:
    bench = make(grace=7)
    await bench.settle()
    bench.worker.delete()
    assert await bench.settle() == 7
    assert bench.host.signals == [("c", signal.SIGTERM)]
    assert not bench.worker.gone
    bench.clock.advance(7)
    await bench.settle()
    assert bench.worker.gone
    assert bench.released == ["u1"]
    assert stored_records(bench.store) == []


async def test_deleted_pod_that_ends_in_time_is_gone_at_once(make: Callable[..., Bench]) -> None:
    bench = make()
    await bench.settle()
    bench.worker.delete()
    await bench.settle()
    bench.host.end_all("u1")
    await bench.settle()
    assert bench.worker.gone


async def test_hard_eviction_kills_before_anything_else(make: Callable[..., Bench]) -> None:
    bench = make()
    await bench.settle()
    bench.worker.evict(eviction(bench), 0)
    (record,) = bench.host.records.of("u1")
    assert record.state == "exited"
    assert bench.worker.pod.status.phase == "Failed"
    assert bench.worker.pod.status.reason == "Evicted"


async def test_evicted_pod_holds_its_cpus_until_its_processes_are_gone(make: Callable[..., Bench]) -> None:
    bench = make()
    await bench.settle()
    bench.worker.evict(eviction(bench), 20)
    await bench.settle()
    assert bench.worker.holds_resources
    assert bench.released == []
    bench.host.end_all("u1")
    await bench.settle()
    assert not bench.worker.holds_resources
    assert bench.released == ["u1"]


async def test_evicted_pod_whose_end_is_reported_late_is_waited_for(make: Callable[..., Bench]) -> None:
    """The keeper's word comes when the event loop has time for it: the worker must not take all of it."""
    bench = make(policy="Never")
    await bench.settle()
    bench.host.kill = lambda pod: None  # type: ignore[method-assign]
    bench.worker.evict(eviction(bench), 0)
    delays = [await bench.worker.step() for _ in range(6)]
    assert bench.released == ["u1"]
    assert delays[-1] == 1.0
    bench.host.end_all("u1", 137)
    assert await bench.settle() is None
    assert bench.worker.pod.status.reason == "Evicted"


async def test_evicted_pod_comes_back_after_the_pressure_with_new_containers(
    make: Callable[..., Bench],
) -> None:
    bench = make()
    await bench.settle()
    bench.pressure[0] = True
    bench.worker.evict(eviction(bench), 0)
    await bench.settle()
    bench.clock.advance(600)
    await bench.settle()
    assert bench.worker.pod.status.phase == "Failed"
    bench.pressure[0] = False
    await bench.settle()
    assert bench.worker.pod.status.phase == "Running"
    assert bench.host.started == ["c/0", "c/0"]


async def test_evicted_pod_that_never_restarts_stays_evicted(make: Callable[..., Bench]) -> None:
    bench = make(policy="Never")
    await bench.settle()
    bench.worker.evict(eviction(bench), 0)
    bench.clock.advance(3600)
    assert await bench.settle() is None
    assert bench.worker.pod.status.phase == "Failed"


async def test_eviction_survives_the_agent(make: Callable[..., Bench]) -> None:
    bench = make()
    await bench.settle()
    bench.worker.evict(eviction(bench), 20)
    bench.clock.advance(20)
    (stored,) = stored_records(bench.store)
    restarted = PodWorker(stored, bench.worker._services)
    await restarted.step()
    await restarted.step()
    (record,) = bench.host.records.of("u1")
    assert record.state == "exited"
    assert restarted.pod.status.reason == "Evicted"


async def test_refused_pod_says_why_and_is_tried_again(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.refusal[0] = Refusal("OutOfcpu", "Node didn't have enough resource: cpu")
    assert await bench.settle() == 20
    assert (bench.worker.pod.status.phase, bench.worker.pod.status.reason) == ("Failed", "OutOfcpu")
    bench.refusal[0] = None
    bench.clock.advance(20)
    await bench.settle()
    assert bench.worker.pod.status.phase == "Running"


async def test_missing_program_backs_off_and_names_it(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.host.missing_program = True
    delay = await bench.settle()
    assert delay == 10
    status = bench.worker.pod.status.container_statuses[0]
    assert status.state.waiting is not None
    assert status.state.waiting.reason == "CrashLoopBackOff"
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 128
    assert status.last_state.terminated.reason == "StartError"


async def test_container_without_a_command_fails_the_pod_for_good(make: Callable[..., Bench]) -> None:
    bench = make()
    spec = msgspec.structs.replace(bench.worker.pod.spec, containers=(Container(name="c", image="nginx"),))
    pod = msgspec.structs.replace(bench.worker.pod, spec=spec)
    bench.worker.record = msgspec.structs.replace(bench.worker.record, pod=pod)
    assert await bench.settle() is None
    assert bench.worker.pod.status.reason == "CreateContainerConfigError"


async def test_run_to_completion(make: Callable[..., Bench]) -> None:
    bench = make(policy="Never")
    await bench.settle()
    bench.host.end_all("u1", exit_code=0)
    assert await bench.settle() is None
    assert bench.worker.pod.status.phase == "Succeeded"
    assert bench.released == ["u1"]


async def test_stuck_removal_is_reported_and_tried_again(make: Callable[..., Bench]) -> None:
    bench = make(grace=0)
    await bench.settle()
    bench.worker.delete()
    bench.host.removal_fails = True
    first, second = await bench.settle(), await bench.settle()
    assert (first, second) == (0.5, 1.0)
    assert "FailedSync" in bench.reasons()
    bench.host.removal_fails = False
    await bench.settle()
    assert bench.worker.gone


async def test_crash_is_restarted_once_at_once_and_then_waits(make: Callable[..., Bench]) -> None:
    bench = make()
    await bench.settle()
    bench.host.end_all("u1", exit_code=1)
    await bench.settle()
    assert bench.host.started == ["c/0", "c/1"]
    bench.host.end_all("u1", exit_code=1)
    assert await bench.settle() == 10
    assert bench.host.started == ["c/0", "c/1"]
    assert bench.worker.pod.status.container_statuses[0].restart_count == 1


async def test_a_pod_that_was_being_evicted_keeps_its_grace_when_the_agent_restarts(
    make: Callable[..., Bench],
) -> None:
    bench = make(policy="Never")
    await bench.settle()
    bench.worker.evict(eviction(bench), 20)
    await bench.settle()
    bench.clock.advance(5)
    (stored,) = stored_records(bench.store)
    bench.worker = PodWorker(stored, bench.worker._services)
    assert await bench.settle() == 15
    assert bench.host.removals == 0
    bench.clock.advance(15)
    await bench.settle()
    assert bench.host.removals == 1
    assert bench.worker.pod.status.phase == "Failed"
