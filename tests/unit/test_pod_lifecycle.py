"""Which containers start, wait or stop: init order, sidecars, restart policies, crash back-off."""

from datetime import UTC, datetime, timedelta

import pytest

from nodeagent.api.meta import ObjectMeta, format_time
from nodeagent.api.pod import Container, Pod, PodSpec
from nodeagent.pods.lifecycle import Backoff, Plan, next_backoff, plan
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def pod(*, init: tuple[Container, ...] = (), apps: str = "app", policy: str = "Always") -> Pod:
    containers = tuple(Container(name=name) for name in apps.split())
    spec = PodSpec(containers=containers, init_containers=init, restart_policy=policy)
    return Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u1"), spec=spec)


def record(
    name: str, attempt: int = 0, exit_code: int | None = None, ended_seconds_ago: float | None = None
) -> ContainerRecord:
    """A running container, or one that ended so long ago."""
    spec = ContainerSpec(
        container_id=f"{name}-{attempt}",
        pod_uid="u1",
        pod_namespace="default",
        pod_name="p",
        container_name=name,
        attempt=attempt,
        argv=("true",),
        log_path="/var/log/pods/x",
        cgroup="",
        pod_cgroup="",
    )
    if ended_seconds_ago is None:
        return ContainerRecord(spec=spec, state="running", pid=1, started_at=format_time(NOW))
    finished = format_time(NOW - timedelta(seconds=ended_seconds_ago))
    return ContainerRecord(
        spec=spec, state="exited", pid=1, started_at=finished, finished_at=finished, exit_code=exit_code
    )


def starts(decided: Plan) -> list[tuple[str, int]]:
    return [(start.container.name, start.attempt) for start in decided.start]


def decide(of: Pod, *records: ContainerRecord, **backoffs: Backoff) -> Plan:
    return plan(of, records, backoffs, NOW)


def test_all_app_containers_start_at_once() -> None:
    assert starts(decide(pod(apps="a b"))) == [("a", 0), ("b", 0)]


def test_init_containers_run_one_after_the_other_before_the_apps() -> None:
    two = pod(init=(Container(name="i1"), Container(name="i2")))
    assert starts(decide(two)) == [("i1", 0)]
    assert starts(decide(two, record("i1"))) == []
    assert starts(decide(two, record("i1", exit_code=0, ended_seconds_ago=1))) == [("i2", 0)]
    done = decide(
        two,
        record("i1", exit_code=0, ended_seconds_ago=2),
        record("i2", exit_code=0, ended_seconds_ago=1),
    )
    assert done.initialized
    assert starts(done) == [("app", 0)]


def test_waiting_apps_say_that_the_pod_initializes() -> None:
    decided = decide(pod(init=(Container(name="i1"),)))
    assert decided.waiting["app"].reason == "PodInitializing"
    assert not decided.initialized


def test_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    never = pod(init=(Container(name="i1"),), policy="Never")
    assert decide(never, record("i1", exit_code=1, ended_seconds_ago=1)).outcome == "Failed"


def test_sidecar_starts_before_the_apps_and_is_restarted_whatever_the_policy() -> None:
    with_sidecar = pod(init=(Container(name="s", restart_policy="Always"),), policy="Never")
    assert starts(decide(with_sidecar)) == [("s", 0)]
    assert starts(decide(with_sidecar, record("s"))) == [("app", 0)]
    ended = record("s", exit_code=0, ended_seconds_ago=1)
    assert starts(decide(with_sidecar, ended, record("app"))) == [("s", 1)]


def test_sidecars_stop_in_reverse_order_when_the_work_is_done() -> None:
    sidecars = tuple(Container(name=name, restart_policy="Always") for name in ("s1", "s2"))
    finished = record("app", exit_code=0, ended_seconds_ago=1)
    decided = decide(pod(init=sidecars, policy="Never"), record("s1"), record("s2"), finished)
    assert [stopped.spec.container_name for stopped in decided.stop] == ["s2", "s1"]
    assert decided.outcome is None
    ends = [record(name, exit_code=143, ended_seconds_ago=0) for name in ("s1", "s2")]
    assert decide(pod(init=sidecars, policy="Never"), *ends, finished).outcome == "Succeeded"


def test_restart_policies() -> None:
    failed = record("app", exit_code=1, ended_seconds_ago=1)
    done = record("app", exit_code=0, ended_seconds_ago=1)
    assert starts(decide(pod(policy="Always"), done)) == [("app", 1)]
    assert starts(decide(pod(policy="OnFailure"), failed)) == [("app", 1)]
    assert decide(pod(policy="OnFailure"), done).outcome == "Succeeded"
    assert decide(pod(policy="Never"), failed).outcome == "Failed"


def test_pod_with_one_failed_container_waits_for_the_other() -> None:
    failed = record("a", exit_code=1, ended_seconds_ago=1)
    running = decide(pod(apps="a b", policy="Never"), failed, record("b"))
    assert running.outcome is None
    assert starts(running) == []


def test_container_lost_track_of_counts_as_failed() -> None:
    lost = record("app", ended_seconds_ago=1)
    assert decide(pod(policy="Never"), lost).outcome == "Failed"
    assert starts(decide(pod(policy="OnFailure"), lost)) == [("app", 1)]


def test_crash_loop_backs_off_from_ten_seconds_to_five_minutes() -> None:
    backoff = None
    delays = []
    for _ in range(7):
        backoff = next_backoff(backoff, NOW)
        delays.append(backoff.delay_seconds)
    assert delays == [10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(("longest", "delays"), [(15, [10, 15, 15]), (4, [4, 4, 4])])
def test_the_configured_longest_back_off_ends_the_doubling(longest: float, delays: list[float]) -> None:
    backoff = None
    for delay in delays:
        backoff = next_backoff(backoff, NOW, longest)
        assert backoff.delay_seconds == delay


def test_second_crash_waits_and_says_so() -> None:
    decided = decide(
        pod(), record("app", 1, 1, ended_seconds_ago=4), app=Backoff(10, NOW - timedelta(seconds=5))
    )
    assert starts(decided) == []
    assert decided.recheck_seconds == 6
    assert decided.waiting["app"].reason == "CrashLoopBackOff"
    assert decided.waiting["app"].message == (
        "back-off 10s restarting failed container=app pod=p_default(u1)"
    )


def test_backoff_is_forgiven_after_ten_quiet_minutes() -> None:
    long_ago = Backoff(300, NOW - timedelta(seconds=700))
    assert starts(decide(pod(), record("app", 3, 1, ended_seconds_ago=1), app=long_ago)) == [("app", 4)]
    assert next_backoff(long_ago, NOW).delay_seconds == 10
