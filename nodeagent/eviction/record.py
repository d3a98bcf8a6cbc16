"""Why a pod was evicted: the figures, everyone who was considered, and how long it took."""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from nodeagent.api.pod import Pod
from nodeagent.eviction.manager import Choice, Eviction, Policy
from nodeagent.eviction.ranking import Candidate
from nodeagent.eviction.signals import (
    PRESSURES,
    RESOURCES,
    Observation,
    Resource,
    Signal,
    is_counted,
    quantity_of,
)
from nodeagent.eviction.thresholds import Threshold

MEBIBYTE = 1 << 20


class RecordedCandidate(Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that was considered, with what decided its place."""

    namespace: str
    name: str
    uid: str
    measured: bool
    protected: bool
    priority: int
    usage: int
    request: str
    exceeds_request: bool


class Pressure(Struct, frozen=True, kw_only=True, rename="camel"):
    """The threshold that was crossed and what was seen of its signal."""

    signal: str
    hard: bool
    threshold: str
    available: int
    capacity: int
    rate_per_second: float
    measured_at: datetime | None
    crossed_at: datetime


class EvictionRecord(Struct, frozen=True, kw_only=True, rename="camel"):
    """One eviction. `pressure` is absent where a pod exceeded its own storage limit."""

    namespace: str
    name: str
    uid: str
    cause: str
    message: str
    grace_seconds: int
    decided_at: datetime
    dead_at: datetime | None = None
    pressure: Pressure | None = None
    candidates: tuple[RecordedCandidate, ...] = ()

    @property
    def stats_age_seconds(self) -> float | None:
        """Return how old the figures were that decided."""
        measured_at = self.pressure.measured_at if self.pressure is not None else None
        return None if measured_at is None else (self.decided_at - measured_at).total_seconds()

    @property
    def seconds_to_dead(self) -> float | None:
        """Return the time from crossing (or from the decision, without a threshold) to the pod's end."""
        if self.dead_at is None:
            return None
        began = self.pressure.crossed_at if self.pressure is not None else self.decided_at
        return (self.dead_at - began).total_seconds()


def record_of(eviction: Eviction, decided_at: datetime) -> EvictionRecord:
    """Begin the record of an eviction."""
    message, grace_seconds = eviction.message.text, eviction.grace_seconds
    return record_of_end(eviction.pod, eviction.cause.value, message, grace_seconds, decided_at)


def record_of_end(
    pod: Pod, cause: str, message: str, grace_seconds: float, decided_at: datetime
) -> EvictionRecord:
    """Begin the record of a pod that ends for other pods' sake, whatever the cause."""
    return EvictionRecord(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        cause=cause,
        message=message,
        grace_seconds=int(grace_seconds),
        decided_at=decided_at,
    )


def pressure_of(
    threshold: Threshold, observed: Observation, rate_per_second: float, crossed_at: datetime
) -> Pressure:
    """Return what led to a choice."""
    return Pressure(
        signal=threshold.signal.value,
        hard=threshold.is_hard,
        threshold=str(threshold.value.of(observed.capacity)),
        available=observed.available,
        capacity=observed.capacity,
        rate_per_second=rate_per_second,
        measured_at=observed.time,
        crossed_at=crossed_at,
    )


def candidates_of(policy: Policy, choice: Choice) -> tuple[RecordedCandidate, ...]:
    """Return everyone who was considered, the first to go first."""
    return tuple(_recorded(each, policy.protects(each.pod)) for each in choice.candidates)


def explain(record: EvictionRecord) -> str:
    """Return the record as text for people."""
    return "\n".join(_lines(record))


def _lines(record: EvictionRecord) -> Iterator[str]:
    yield f"{record.namespace}/{record.name} (uid {record.uid}) was evicted because of {record.cause}"
    yield f"  message     {record.message.strip()}"
    pressure = record.pressure
    signal = Signal(pressure.signal) if pressure is not None else Signal.NODEFS_AVAILABLE
    if pressure is not None:
        kind = "hard: killed at once" if pressure.hard else f"soft: {record.grace_seconds} s of grace"
        yield f"  threshold   {pressure.threshold} ({kind})"
        left, whole = quantity_of(signal, pressure.available), quantity_of(signal, pressure.capacity)
        yield f"  available   {left} of {whole}, falling by {_rate(signal, pressure.rate_per_second)}"
        yield f"  crossed     {pressure.crossed_at.isoformat(timespec='milliseconds')}"
    yield f"  decided     {record.decided_at.isoformat(timespec='milliseconds')}"
    yield f"  dead        {_end(record)}"
    if record.candidates:
        yield "  candidates, the first to go first:"
    for place, candidate in enumerate(record.candidates, start=1):
        mark = "   <- evicted" if candidate.uid == record.uid else ""
        yield f"    {place:3}. {_describe(candidate, signal)}{mark}"


def _describe(candidate: RecordedCandidate, signal: Signal) -> str:
    name = f"{candidate.namespace}/{candidate.name}"
    if candidate.protected:
        return f"{name}: priority {candidate.priority}, critical, never evicted"
    if not candidate.measured:
        return f"{name}: priority {candidate.priority}, not measured"
    place = "over its request" if candidate.exceeds_request else "within its request"
    used = f"uses {quantity_of(signal, candidate.usage)}, requests {candidate.request}"
    return f"{name}: {place}, priority {candidate.priority}, {used}"


def _end(record: EvictionRecord) -> str:
    if record.dead_at is None or record.seconds_to_dead is None:
        return "not yet"
    moment = record.dead_at.isoformat(timespec="milliseconds")
    return f"{moment}, {record.seconds_to_dead * 1000:.0f} ms after it began"


def _rate(signal: Signal, rate: float) -> str:
    if not is_counted(signal):
        return f"{rate / MEBIBYTE:.1f} MiB/s"
    if signal in PRESSURES:
        return f"{rate:.0f} percent/s"
    return f"{rate:.0f} {'PIDs' if RESOURCES[signal] is Resource.PIDS else 'inodes'}/s"


def _recorded(candidate: Candidate, protected: bool) -> RecordedCandidate:
    meta = candidate.pod.metadata
    return RecordedCandidate(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        measured=candidate.stats is not None,
        protected=protected,
        priority=candidate.priority,
        usage=candidate.usage,
        request=str(candidate.request),
        exceeds_request=candidate.exceeds_request,
    )
