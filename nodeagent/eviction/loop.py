"""The loop that keeps the node from running out: look, decide, act, sleep no longer than is safe."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from msgspec.structs import replace as with_changes

from nodeagent.api.pod import Pod
from nodeagent.cgroup.errors import CgroupError
from nodeagent.clock import Clock
from nodeagent.eviction.departures import Departures, Scarcity
from nodeagent.eviction.local_storage import has_storage_limits
from nodeagent.eviction.manager import (
    Choice,
    Eviction,
    Policy,
    Reclaim,
    State,
    choose,
    is_resolved,
    reclaims,
    short_of,
    synchronise,
)
from nodeagent.eviction.node import Node
from nodeagent.eviction.pace import Headroom, Pace
from nodeagent.eviction.page_cache import cache_may_help, is_urgent
from nodeagent.eviction.ranking import StatsByUid
from nodeagent.eviction.record import Pressure, candidates_of, pressure_of, record_of
from nodeagent.eviction.restraint import Restraint
from nodeagent.eviction.signals import (
    RESOURCES,
    Filesystem,
    Observation,
    Observations,
    Resource,
    observe,
    observe_hot,
)
from nodeagent.eviction.thresholds import Threshold
from nodeagent.stats.summary import Summary

RETURNING_POLL_SECONDS = 0.005
# Memory that is nearly where it was is nearly as far from its end: three percent of the way pay for two.
CALM_MARGIN = 0.95
CALM_REACTIONS = 2.0


class EvictionLoop:
    """Watches the signals and ends pods in time. `filesystems` names those in each hot sample, in order."""

    def __init__(
        self,
        node: Node,
        clock: Clock,
        policy: Policy,
        pace: Pace,
        filesystems: Sequence[Filesystem] = (Filesystem.NODEFS,),
    ) -> None:
        self.state = State()
        self._node = node
        self._clock = clock
        self._policy = policy
        self._thresholds = policy.effective_thresholds
        self._memory_thresholds = tuple(filter(_is_of_memory, self._thresholds))
        self._other_thresholds = tuple(each for each in self._thresholds if not _is_of_memory(each))
        self._pace = pace
        self._filesystems = filesystems
        self._departures = Departures(clock, node.evict, node.recorded, self.wake)
        self._reclaiming: dict[Resource, asyncio.Task[None]] = {}
        self._restraint = Restraint(pace.interval_seconds)
        self._round_due = clock.monotonic()
        self._observations: Observations = {}
        self._cache_bytes = 0
        self._seldom: Observations = {}
        self._calm_until = 0.0
        self._calm_seconds = 0.0
        self._task: asyncio.Task[None] | None = None
        self._is_asleep = False
        self._is_woken = False

    async def run(self) -> None:
        """Go on until cancelled."""
        self._task = asyncio.current_task()
        try:
            while True:
                await self._sleep(self.step())
        finally:
            self._departures.cancel()
            for task in self._reclaiming.values():
                task.cancel()

    def wake(self) -> None:
        """Look again at once: something happened."""
        if self._is_asleep and not self._is_woken and self._task is not None:
            self._task.cancel()
        self._is_woken = True
        self._calm_until = 0.0

    def headrooms(self) -> list[Headroom]:
        """Return how far each threshold was at the last look."""
        found = (self._pace.headroom(each, self._observations) for each in self._thresholds)
        return [each for each in found if each is not None]

    def step(self) -> float:
        """Look once, begin what is called for, and return how many seconds it is safe to sleep."""
        began = self._clock.monotonic()
        if began < self._calm_until and self._node.is_calm():
            return max(min(self._calm_seconds, self._calm_until - began), self._pace.shortest_seconds)
        self._departures.collect()
        observations = self._look(began)
        short = self._short_of(observations, began)
        if began >= self._round_due or any(self._calls_for_action(each, began) for each in short):
            self._round(began, observations)
            short = self._short_of(observations, began)
        self._put_away(short)
        ended = self._clock.monotonic()
        cost = ended - began
        seconds = self._sleep_seconds(ended, short, observations)
        if not self._is_acting(short, ended):
            # Waiting for what was done about some thresholds is no reason to look more often at the others.
            others = [each for each in self._thresholds if each not in short]
            rest = self._pace.rest_seconds(cost, observations, others)
            held = (self._held_seconds(each, ended) for each in short)
            seconds = max(seconds, min((rest, *held)))
        return seconds - cost

    async def _sleep(self, seconds: float) -> None:
        """Sleep until it is time or until woken; woken by cancelling, which costs no second task a sleep."""
        seconds = 0.0 if self._is_woken else max(seconds, 0.0)
        planned = self._clock.monotonic() + seconds
        self._is_woken, self._is_asleep = False, True
        try:
            await self._clock.sleep(seconds)
            # Whatever else this process was busy with will delay the next kill as well.
            now = self._clock.monotonic()
            self._pace.react(now, now - planned)
        except asyncio.CancelledError:
            if not self._is_woken or self._task is None or self._task.uncancel() > 0:
                raise
        finally:
            self._is_asleep = self._is_woken = False

    def _put_away(self, short: Sequence[Threshold]) -> None:
        """Put away reclaims that are done and no longer needed; an error in one ends the loop."""
        scarce = {RESOURCES[threshold.signal] for threshold in short}
        for resource in [each for each, task in self._reclaiming.items() if task.done()]:
            if resource not in scarce:
                self._reclaiming.pop(resource).result()

    def _is_memory_near(self, observations: Observations, seconds: float) -> bool:
        return any(self._pace.is_near(each, observations, seconds) for each in self._memory_thresholds)

    def _look(self, now: float) -> Observations:
        sample = self._node.sample()
        self._cache_bytes = sample.pods_cache_bytes or 0
        self._observations = observations = observe_hot(sample, self._clock.now(), self._filesystems)
        self._pace.observe(now, observations)
        return observations

    def _short_of(self, observations: Observations, now: float) -> tuple[Threshold, ...]:
        return short_of(self._thresholds, self.state, self._adjusted(observations, now))

    def _adjusted(self, observations: Observations, now: float) -> Observations:
        """Count what killed pods will give back as available."""
        if self._departures.is_empty:
            return observations
        return {
            signal: replace(
                observed,
                available=observed.available + self._departures.returning(signal, observed.available, now),
            )
            for signal, observed in observations.items()
        }

    def _calls_for_action(self, threshold: Threshold, now: float) -> bool:
        first = self.state.first_observed.get(threshold)
        if first is None:
            return True
        return now - first >= threshold.grace_period_seconds and not self._is_held(threshold, now)

    def _is_acting(self, short: Sequence[Threshold], now: float) -> bool:
        """Tell whether something is to be done, or shows any moment what it did."""
        return (
            self._departures.any_giving_back(now)
            or self._is_reclaiming(Resource.MEMORY)
            or any(self._calls_for_action(each, now) for each in short)
        )

    def _is_held(self, threshold: Threshold, now: float) -> bool:
        """Tell whether nothing can be done about a threshold just now that is not being done."""
        resource = RESOURCES[threshold.signal]
        observed = self._observations.get(threshold.signal)
        cannot_wait = resource is Resource.MEMORY and observed is not None and is_urgent(threshold, observed)
        return (
            now < self._restraint.until(threshold.signal)
            or (self._is_reclaiming(resource) and not cannot_wait)
            # One pod at a time: those with grace are waited for, unless a hard threshold is crossed.
            or (not threshold.is_hard and self._departures.any_for(resource))
        )

    def _round(self, now: float, observations: Observations) -> None:
        limited: list[Pod] = []
        stats: StatsByUid = {}
        if now >= self._round_due:
            self._round_due = now + self._pace.interval_seconds
            if self._policy.local_storage_isolation:
                limited = [pod for pod in self._node.active_pods() if has_storage_limits(pod)]
            summary = self._node.summary(limited)
            stats = _by_uid(summary)
            self._seldom = observe(summary)
        observations = {**self._seldom, **observations}
        outcome = synchronise(
            self._policy, self.state, self._adjusted(observations, now), now, limited, stats
        )
        changed = outcome.state.conditions != self.state.conditions
        self.state = outcome.state
        if changed:
            self._node.conditions_changed(self.state.conditions)
        for eviction in outcome.over_limit:
            if not self._departures.includes(eviction.pod.metadata.uid):
                self._departures.begin(eviction, record_of(eviction, self._clock.now()), Scarcity(), now)
        for threshold in outcome.acting:
            if not self._is_held(threshold, now):
                self._act(threshold, observations, now)
                return

    def _act(self, threshold: Threshold, observations: Observations, now: float) -> None:
        if not self._is_reclaim_enough(threshold, observations, now):
            self._take_a_pod(threshold, observations[threshold.signal], now)
        # Said last: who remembers it may have to wait for a disk.
        resource = RESOURCES[threshold.signal]
        if self._restraint.may_announce(resource, now):
            self._node.attempting_to_reclaim(resource)

    def _take_a_pod(self, threshold: Threshold, observed: Observation, now: float) -> None:
        choice = self._choose(threshold, observed, now)
        if choice.eviction is None:
            self._restraint.found_nobody(threshold.signal, now)
        elif self._restraint.may_evict(threshold, observed, choice.usage, now):
            self._evict(threshold, observed, choice.eviction, choice, now)

    def _choose(self, threshold: Threshold, observed: Observation, now: float) -> Choice:
        pods = [pod for pod in self._node.active_pods() if not self._is_going(pod, threshold, now)]
        choice = choose(self._policy, threshold, observed, pods, self._usage(threshold, pods))
        if choice.eviction is None:
            return choice
        # What each container used is only read for the message.
        victim = choice.eviction.pod
        stats = _by_uid(self._node.summary([victim]))
        return replace(choice, eviction=choose(self._policy, threshold, observed, [victim], stats).eviction)

    def _evict(
        self, threshold: Threshold, observed: Observation, eviction: Eviction, choice: Choice, now: float
    ) -> None:
        if eviction.immediate:
            # Before it is put on record; that a pod cannot be killed is noticed when its end is waited for.
            with suppress(CgroupError):
                self._node.kill(eviction.pod)
        record = with_changes(
            record_of(eviction, self._clock.now()),
            pressure=self._pressure(threshold, observed, now),
            candidates=candidates_of(self._policy, choice),
        )
        decided = self._clock.monotonic()
        # What was left when the pod was chosen counts from here, however long the choice took.
        scarcity = Scarcity(RESOURCES[threshold.signal], choice.usage, self._look(decided))
        self._departures.begin(eviction, record, scarcity, decided)
        self._restraint.evicted(RESOURCES[threshold.signal], decided)
        self._pace.react(decided, decided - now)

    def _usage(self, threshold: Threshold, pods: Sequence[Pod]) -> StatsByUid:
        if RESOURCES[threshold.signal] in (Resource.MEMORY, Resource.PIDS):
            return {stats.pod_ref.uid: stats for stats in self._node.pod_usage(pods)}
        return _by_uid(self._node.summary(pods))

    def _is_reclaim_enough(self, threshold: Threshold, observations: Observations, now: float) -> bool:
        """Reclaim on the node first, beside the loop; tell whether to leave the pods alone for now."""
        resource = RESOURCES[threshold.signal]
        if self._is_reclaiming(resource):
            return False
        done = self._reclaiming.pop(resource, None)
        if done is not None:
            done.result()
            return is_resolved(self._policy, observations)
        wanted = self._reclaims(threshold, observations[threshold.signal], now)
        if wanted:
            self._reclaiming[resource] = asyncio.ensure_future(self._reclaim(wanted))
        return bool(wanted)

    def _reclaims(self, threshold: Threshold, observed: Observation, now: float) -> Sequence[Reclaim]:
        trend = self._pace.trend(threshold.signal)
        rate = trend.rate_per_second if trend is not None else 0.0
        may_help = cache_may_help(threshold, observed, self._cache_bytes, rate)
        if may_help and self._restraint.may_drop_cache(now):
            return (Reclaim.PAGE_CACHE,)
        return reclaims(threshold.signal, self._policy.filesystems)

    def _is_reclaiming(self, resource: Resource) -> bool:
        task = self._reclaiming.get(resource)
        return task is not None and not task.done()

    async def _reclaim(self, wanted: Sequence[Reclaim]) -> None:
        for what in wanted:
            await self._node.reclaim(what)
        self.wake()

    def _is_going(self, pod: Pod, threshold: Threshold, now: float) -> bool:
        """Tell whether a pod is leaving as fast as a threshold wants it to, or cannot be made to."""
        uid = pod.metadata.uid
        return (
            self._departures.is_killed(uid)
            or (not threshold.is_hard and self._departures.includes(uid))
            or self._departures.is_stuck(uid, now)
        )

    def _pressure(self, threshold: Threshold, observed: Observation, now: float) -> Pressure:
        trend = self._pace.trend(threshold.signal)
        crossed = self.state.first_observed.get(threshold, now)
        if trend is not None and crossed == now:
            crossed = trend.crossed_at(threshold.value.of(observed.capacity).value())
        return pressure_of(
            threshold,
            observed,
            trend.rate_per_second if trend is not None else 0.0,
            self._clock.now() - timedelta(seconds=self._clock.monotonic() - crossed),
        )

    def _sleep_seconds(self, now: float, short: Sequence[Threshold], observations: Observations) -> float:
        memory = self._pace.sleep_seconds(now, self._memory_thresholds, observations)
        rest = self._pace.sleep_seconds(now, self._other_thresholds, observations)
        rest = min(rest, self._round_due - now, *(self._held_seconds(threshold, now) for threshold in short))
        if self._departures.any_giving_back(now) or self._is_reclaiming(Resource.MEMORY):
            rest = min(rest, RETURNING_POLL_SECONDS)
        # While memory is calm, the next looks need only make sure that it still is.
        is_calm = (
            not short
            and memory > CALM_REACTIONS * self._pace.reaction_seconds(now)
            and not self._is_memory_near(observations, self._pace.interval_seconds)
        )
        self._calm_until = now + rest if is_calm else 0.0
        self._calm_seconds = CALM_MARGIN * memory
        return max(min(memory, rest), self._pace.shortest_seconds)

    def _held_seconds(self, threshold: Threshold, now: float) -> float:
        """Return how long nothing is to be done about a threshold that is crossed."""
        grace_ends = self.state.first_observed.get(threshold, now) + threshold.grace_period_seconds
        if now < grace_ends:
            return grace_ends - now
        restrained_until = self._restraint.until(threshold.signal)
        if now < restrained_until:
            return restrained_until - now
        return self._pace.interval_seconds if self._is_held(threshold, now) else 0.0


def _is_of_memory(threshold: Threshold) -> bool:
    return RESOURCES[threshold.signal] is Resource.MEMORY


def _by_uid(summary: Summary) -> StatsByUid:
    return {stats.pod_ref.uid: stats for stats in summary.pods}
