"""What must happen next to a pod's containers: decided from the spec and from what was seen, nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from nodeagent.api.duration import format_duration
from nodeagent.api.meta import parse_time
from nodeagent.api.pod import Container, Pod
from nodeagent.api.resources import is_restartable_init
from nodeagent.runtime.spec import ContainerRecord

FIRST_BACKOFF_SECONDS = 10.0
LONGEST_BACKOFF_SECONDS = 300.0
# A container that ran this long since its last back-off step is forgiven, whatever the longest back-off is.
BACKOFF_EXPIRY_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long the next restart of one container waits, counted from its end."""

    delay_seconds: float
    updated: datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container is not running, in kubelet's words."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """A container to be started, and which attempt this is (0 is the first)."""

    container: Container
    attempt: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The next steps of one pod, and how its containers look meanwhile."""

    start: tuple[Start, ...] = ()
    stop: tuple[ContainerRecord, ...] = ()
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    initialized: bool = False
    outcome: str | None = None
    recheck_seconds: float | None = None


def latest_records(records: Iterable[ContainerRecord]) -> dict[str, ContainerRecord]:
    """Return the newest attempt of each container, by container name."""
    latest: dict[str, ContainerRecord] = {}
    for record in sorted(records, key=lambda record: record.spec.attempt):
        latest[record.spec.container_name] = record
    return latest


def has_ended(record: ContainerRecord) -> bool:
    """Say whether this attempt is over; one lost track of is over too, with its exit code unknown."""
    return record.state == "exited"


def never_started(record: ContainerRecord) -> bool:
    """Say whether this attempt failed before its first instruction (no such program, no such directory)."""
    return has_ended(record) and record.pid == 0


def succeeded(record: ContainerRecord) -> bool:
    """Say whether this attempt ended with exit code 0."""
    return has_ended(record) and record.exit_code == 0


def should_restart(pod: Pod, container: Container, record: ContainerRecord, *, is_init: bool) -> bool:
    """Apply the restart policy to an attempt that is over."""
    if is_init and is_restartable_init(container):
        return True
    policy = pod.spec.restart_policy or "Always"
    if is_init:
        return policy != "Never" and not succeeded(record)
    return policy == "Always" or (policy == "OnFailure" and not succeeded(record))


def next_backoff(
    backoff: Backoff | None, now: datetime, longest_seconds: float = LONGEST_BACKOFF_SECONDS
) -> Backoff:
    """Return the back-off after a restart: 10 s, doubling to the longest, forgiven after 10 quiet minutes."""
    if backoff is None or (now - backoff.updated).total_seconds() > BACKOFF_EXPIRY_SECONDS:
        return Backoff(min(FIRST_BACKOFF_SECONDS, longest_seconds), now)
    return Backoff(min(backoff.delay_seconds * 2, longest_seconds), now)


def backoff_remaining_seconds(backoff: Backoff | None, record: ContainerRecord, now: datetime) -> float:
    """Return how long a restart of the container that ended as `record` must still wait."""
    if backoff is None or record.finished_at is None:
        return 0.0
    finished = parse_time(record.finished_at)
    if (finished - backoff.updated).total_seconds() > BACKOFF_EXPIRY_SECONDS:
        return 0.0
    return max(0.0, (finished + timedelta(seconds=backoff.delay_seconds) - now).total_seconds())


class _Planner:
    """Collects the plan of one pod while its containers are looked at in order."""

    def __init__(
        self, pod: Pod, records: Iterable[ContainerRecord], backoffs: Mapping[str, Backoff], now: datetime
    ) -> None:
        self.pod = pod
        self.latest = latest_records(records)
        self.backoffs = backoffs
        self.now = now
        self.start: list[Start] = []
        self.waiting: dict[str, Waiting] = {}
        self.recheck_seconds: float | None = None

    def want_running(self, container: Container) -> None:
        """Start the container, unless it runs already or its back-off says to wait."""
        record = self.latest.get(container.name)
        if record is None:
            self.start.append(Start(container, 0))
            self.waiting[container.name] = Waiting("ContainerCreating")
            return
        if not has_ended(record):
            return
        backoff = self.backoffs.get(container.name)
        remaining = backoff_remaining_seconds(backoff, record, self.now)
        if remaining <= 0 or backoff is None:
            self.start.append(Start(container, record.spec.attempt + 1))
            return
        self.recheck_seconds = min(remaining, self.recheck_seconds or remaining)
        identity = f"{self.pod.metadata.name}_{self.pod.metadata.namespace}({self.pod.metadata.uid})"
        self.waiting[container.name] = Waiting(
            "CrashLoopBackOff",
            f"back-off {format_duration(backoff.delay_seconds)} restarting failed "
            f"container={container.name} pod={identity}",
        )

    def initialize(self) -> bool | None:
        """Advance the init containers; return whether all are done, None when one failed for good."""
        begun = any(container.name in self.latest for container in self.pod.spec.containers)
        for container in self.pod.spec.init_containers:
            record = self.latest.get(container.name)
            if is_restartable_init(container):
                self.want_running(container)
                if not begun and (record is None or has_ended(record)):
                    return False
            elif not begun:
                if record is not None and succeeded(record):
                    continue
                ended = record is not None and has_ended(record)
                if (
                    record is not None
                    and ended
                    and not should_restart(self.pod, container, record, is_init=True)
                ):
                    return None
                self.want_running(container)
                return False
        return True

    def running_sidecars(self) -> tuple[ContainerRecord, ...]:
        """Return what still runs of the sidecars, in the order in which they are stopped."""
        records = [self.latest.get(container.name) for container in self.pod.spec.init_containers]
        return tuple(record for record in reversed(records) if record is not None and not has_ended(record))

    def finish(self, outcome: str) -> Plan:
        """Stop the sidecars of a pod whose work is over; the outcome stands when they are gone."""
        sidecars = self.running_sidecars()
        return Plan(stop=sidecars, outcome=None if sidecars else outcome, initialized=True)


def plan(
    pod: Pod, records: Iterable[ContainerRecord], backoffs: Mapping[str, Backoff], now: datetime
) -> Plan:
    """Decide the next steps of a pod that should run: init containers in order, then all the others."""
    planner = _Planner(pod, records, backoffs, now)
    ended = [planner.latest.get(container.name) for container in pod.spec.containers]
    over = [
        record is not None and has_ended(record) and not should_restart(pod, container, record, is_init=False)
        for container, record in zip(pod.spec.containers, ended, strict=True)
    ]
    if over and all(over):
        return planner.finish(
            "Succeeded" if all(record and succeeded(record) for record in ended) else "Failed"
        )
    initialized = planner.initialize()
    if initialized is None:
        return planner.finish("Failed")
    for container, is_over in zip(pod.spec.containers, over, strict=True):
        if not initialized:
            reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
            planner.waiting[container.name] = Waiting(reason)
        elif not is_over:
            planner.want_running(container)
    for container in pod.spec.init_containers:
        if container.name not in planner.latest:
            planner.waiting.setdefault(container.name, Waiting("PodInitializing"))
    return Plan(
        start=tuple(planner.start),
        waiting=planner.waiting,
        initialized=initialized,
        recheck_seconds=planner.recheck_seconds,
    )
