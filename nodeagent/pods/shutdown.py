"""A node that goes down ends its pods first: by priority, each with its time, the critical ones last.

kubelet's graceful node shutdown (KEP-2000, KEP-2712).
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from nodeagent.api.duration import parse_duration
from nodeagent.api.pod import Pod
from nodeagent.api.qos import SYSTEM_CRITICAL_PRIORITY, pod_priority
from nodeagent.clock import Clock
from nodeagent.config import KubeletConfiguration
from nodeagent.logind import LogindError
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.record import Failure

REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Phase:
    """The pods of at least this priority, and how many seconds they get together."""

    priority: int
    seconds: float


def shutdown_phases(kubelet: KubeletConfiguration) -> tuple[Phase, ...]:
    """Return the phases, the first to end first; none where shutdowns are not delayed."""
    if kubelet.shutdown_grace_period_by_pod_priority:
        given = [
            Phase(each.priority, each.shutdown_grace_period_seconds)
            for each in kubelet.shutdown_grace_period_by_pod_priority
        ]
        return tuple(sorted(given, key=lambda phase: phase.priority))
    whole = parse_duration(kubelet.shutdown_grace_period)
    critical = parse_duration(kubelet.shutdown_grace_period_critical_pods)
    phases = (Phase(0, whole - critical), Phase(SYSTEM_CRITICAL_PRIORITY, critical))
    return tuple(phase for phase in phases if phase.seconds > 0)


def in_phases(pods: Iterable[Pod], phases: Sequence[Phase]) -> list[tuple[Phase, list[Pod]]]:
    """Deal the pods out: each to the highest phase whose priority it has, or else to the lowest."""
    dealt: list[tuple[Phase, list[Pod]]] = [(phase, []) for phase in phases]
    for pod in pods:
        reached = [found for phase, found in dealt if pod_priority(pod) >= phase.priority]
        (reached[-1] if reached else dealt[0][1]).append(pod)
    return [(phase, found) for phase, found in dealt if found]


class Delayer(Protocol):
    """Who can hold up a shutdown; `nodeagent.logind.Logind` says how. Methods raise LogindError."""

    async def connect(self) -> None: ...

    async def longest_delay_seconds(self) -> float: ...

    async def allow_delay(self, seconds: float) -> None: ...

    async def delay(self) -> None: ...

    def release(self) -> None: ...

    def shutdowns(self) -> AsyncIterator[bool]: ...

    def close(self) -> None: ...


class Pods(Protocol):
    """The pods of the node, and how they are ended: the pod manager."""

    def active_pods(self) -> list[Pod]: ...

    def evict(self, pod_uid: str, failure: Failure, grace_seconds: float) -> None: ...


class NodeShutdown:
    """Delays shutdowns of the machine for as long as its pods need, and no longer than they may."""

    def __init__(
        self,
        phases: Sequence[Phase],
        logind: Delayer,
        pods: Pods,
        events: EventRecorder,
        clock: Clock,
        say: Callable[[str], None],
        shutting_down: Callable[[bool], None],
    ) -> None:
        """`say` is told how it stands; `shutting_down` is told that a shutdown began or was called off."""
        self._phases = phases
        self._logind = logind
        self._pods = pods
        self._events = events
        self._clock = clock
        self._say = say
        self._shutting_down = shutting_down

    async def run(self) -> None:
        """Wait for shutdowns until cancelled; without logind, or without phases, there is nothing to do."""
        if not self._phases:
            return
        try:
            await self._logind.connect()
            await self._prepare()
            async for begins in self._logind.shutdowns():
                self._shutting_down(begins)
                if begins:
                    await self._end_pods()
                else:
                    self._events.node("NodeShutdownCancelled", "The shutdown was called off")
                    await self._logind.delay()
        except LogindError as error:
            self._events.node(
                "NodeShutdownNotDelayed", f"Shutdowns will not wait for pods: {error}", warning=True
            )
        finally:
            self._logind.close()

    async def _prepare(self) -> None:
        wanted = sum(phase.seconds for phase in self._phases)
        if await self._logind.longest_delay_seconds() < wanted:
            await self._logind.allow_delay(wanted)
        await self._logind.delay()

    async def _end_pods(self) -> None:
        try:
            dealt = in_phases(self._pods.active_pods(), self._phases)
            number = sum(len(pods) for _, pods in dealt)
            self._events.node("NodeShutdown", f"The node is shutting down; {number} pods are ended first")
            for phase, pods in dealt:
                await self._end(phase, pods)
            self._say("shutting down: all pods were ended")
        finally:
            self._logind.release()

    async def _end(self, phase: Phase, pods: Sequence[Pod]) -> None:
        """End the pods of one phase together; go on when they are gone, or their time is over."""
        for pod in pods:
            failure = Failure(
                reason=REASON, message=MESSAGE, at=self._clock.now(), evicted=True, disruption=True
            )
            own = pod.spec.termination_grace_period_seconds
            grace = phase.seconds if own is None else min(own, phase.seconds)
            self._pods.evict(pod.metadata.uid, failure, grace)
        uids = {pod.metadata.uid for pod in pods}
        deadline = self._clock.monotonic() + phase.seconds
        while left := sum(pod.metadata.uid in uids for pod in self._pods.active_pods()):
            self._say(
                f"shutting down: {left} of {len(pods)} pods of priority {phase.priority} and up still run"
            )
            if self._clock.monotonic() >= deadline:
                message = (
                    f"{left} pods of priority {phase.priority} and up did not end in {phase.seconds:g} s"
                )
                self._events.node("NodeShutdown", message, warning=True)
                return
            await self._clock.sleep(POLL_SECONDS)
