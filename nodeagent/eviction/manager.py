"""What to do about what is observed: kubelet's synchronisation, as values in and values out.

One round is `synchronise`, then, if it names a threshold to act on, node-level reclaim (an effect), a fresh
observation, `is_resolved`, and only then `choose`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from nodeagent.api.pod import Pod
from nodeagent.api.qos import SYSTEM_CRITICAL_PRIORITY, is_critical, pod_priority
from nodeagent.api.quantity import NANOS_PER_UNIT
from nodeagent.eviction.local_storage import StorageLimit, find_excess
from nodeagent.eviction.messages import Message, node_pressure
from nodeagent.eviction.ranking import UNDIVIDED, Candidate, Filesystems, StatsByUid, rank
from nodeagent.eviction.signals import (
    CONDITIONS,
    RESOURCES,
    Condition,
    Filesystem,
    Observation,
    Observations,
    Resource,
    Signal,
    urgency,
)
from nodeagent.eviction.thresholds import Threshold, with_containerfs

IMMEDIATE_GRACE_SECONDS = 1
DEFAULT_TERMINATION_GRACE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Policy:
    """What was configured."""

    thresholds: tuple[Threshold, ...] = ()
    pressure_transition_period_seconds: float = 300.0
    max_pod_grace_period_seconds: int = 0
    local_storage_isolation: bool = True
    filesystems: Filesystems = UNDIVIDED
    evict_static_pods: bool = True
    """A node without an API server runs nothing but static pods; kubelet's rule is never to evict them."""

    @property
    def effective_thresholds(self) -> tuple[Threshold, ...]:
        """The thresholds with those derived for containerfs."""
        return with_containerfs(
            self.thresholds,
            dedicated_imagefs=self.filesystems.dedicated_imagefs,
            split_containerfs=self.filesystems.split_containerfs,
        )

    def protects(self, pod: Pod) -> bool:
        """Tell whether a pod may never be evicted."""
        if self.evict_static_pods:
            return pod_priority(pod) >= SYSTEM_CRITICAL_PRIORITY
        return is_critical(pod)


@dataclass(frozen=True, slots=True)
class State:
    """What one synchronisation leaves to the next. Moments are monotonic seconds."""

    first_observed: Mapping[Threshold, float] = field(default_factory=dict)
    met: tuple[Threshold, ...] = ()
    """The thresholds whose grace has run out."""
    conditions_last_observed: Mapping[Condition, float] = field(default_factory=dict)
    conditions: frozenset[Condition] = frozenset()
    observations: Observations = field(default_factory=dict)
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class Eviction:
    """One pod to end, and what it is told."""

    pod: Pod
    cause: Signal | StorageLimit
    message: Message
    grace_seconds: int
    """kubelet's override of the pod's own grace period."""
    immediate: bool
    """Kill at once, without asking the processes first."""
    disruption: bool
    """The pod's status says that it was disrupted (condition DisruptionTarget)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The new state, pods that exceed their own storage limits, and the thresholds to act on, in order."""

    state: State
    over_limit: tuple[Eviction, ...] = ()
    acting: tuple[Threshold, ...] = ()


class Reclaim(StrEnum):
    """What can be freed on the node before a pod must go."""

    CONTAINERS = "dead containers"
    IMAGES = "unused images"
    PAGE_CACHE = "page cache"


def synchronise(
    policy: Policy,
    state: State,
    observations: Observations,
    now: float,
    pods: Sequence[Pod] = (),
    stats: StatsByUid | None = None,
) -> Outcome:
    """Take in what was observed at `now`; act on nothing yet.

    `pods` and their `stats` are only looked at for their own storage limits.
    """
    # The original derives the thresholds of containerfs at the end of its first round.
    thresholds = policy.thresholds if state.is_first else policy.effective_thresholds
    crossed = short_of(thresholds, state, observations)
    first_observed = {each: state.first_observed.get(each, now) for each in crossed}
    last_observed = dict(state.conditions_last_observed)
    last_observed |= {CONDITIONS[RESOURCES[each.signal]]: now for each in crossed}
    met = tuple(each for each in crossed if now - first_observed[each] >= each.grace_period_seconds)
    updated = State(
        first_observed=first_observed,
        met=met,
        conditions_last_observed=last_observed,
        conditions=frozenset(
            condition
            for condition, last in last_observed.items()
            if now - last < policy.pressure_transition_period_seconds
        ),
        observations=observations,
        is_first=False,
    )
    if policy.local_storage_isolation:
        over_limit = _over_limit(policy, pods, stats or {})
        if over_limit:
            return Outcome(updated, over_limit)
    fresh = (
        each for each in met if _is_newer(observations[each.signal], state.observations.get(each.signal))
    )
    return Outcome(updated, acting=tuple(sorted(fresh, key=_urgency)))


def short_of(
    thresholds: Iterable[Threshold], state: State, observations: Observations
) -> tuple[Threshold, ...]:
    """Return the thresholds crossed now, and those acted on before whose minimum reclaim is not reached."""
    crossed = thresholds_crossed(thresholds, observations)
    unresolved = thresholds_crossed(state.met, observations, with_minimum_reclaim=True)
    return (*crossed, *(each for each in unresolved if each not in crossed))


def thresholds_crossed(
    thresholds: Iterable[Threshold], observations: Observations, *, with_minimum_reclaim: bool = False
) -> tuple[Threshold, ...]:
    """Return the thresholds that what is available lies below."""
    return tuple(
        threshold
        for threshold in thresholds
        if (observed := observations.get(threshold.signal)) is not None
        and _shortfall(threshold, observed, with_minimum_reclaim) > 0
    )


def reclaims(signal: Signal, filesystems: Filesystems) -> tuple[Reclaim, ...]:
    """Return what to free on the node before a pod is evicted for a signal."""
    filesystem = signal.partition(".")[0]
    if RESOURCES[signal] not in (Resource.EPHEMERAL_STORAGE, Resource.INODES):
        return ()
    if not filesystems.dedicated_imagefs:
        return (Reclaim.CONTAINERS, Reclaim.IMAGES)
    if filesystems.split_containerfs:
        return (Reclaim.IMAGES,) if filesystem == Filesystem.IMAGEFS else (Reclaim.CONTAINERS,)
    return () if filesystem == Filesystem.NODEFS else (Reclaim.CONTAINERS, Reclaim.IMAGES)


def is_resolved(policy: Policy, observations: Observations) -> bool:
    """Tell whether reclaim on the node was enough: nothing is short of its threshold and minimum reclaim."""
    return not thresholds_crossed(policy.effective_thresholds, observations, with_minimum_reclaim=True)


@dataclass(frozen=True, slots=True)
class Choice:
    """The pod that goes, if any may, and everyone who was considered, in order."""

    eviction: Eviction | None
    candidates: tuple[Candidate, ...]

    @property
    def usage(self) -> int:
        """What the chosen pod uses of the scarce resource."""
        eviction = self.eviction
        if eviction is None:
            return 0
        return next(each.usage for each in self.candidates if each.pod is eviction.pod)


def choose(
    policy: Policy, acting: Threshold, observed: Observation, pods: Iterable[Pod], stats: StatsByUid
) -> Choice:
    """Choose the pod to evict for a threshold that was crossed."""
    candidates = rank(acting.signal, pods, stats, policy.filesystems)
    for candidate in candidates:
        if not policy.protects(candidate.pod):
            return Choice(_for_pressure(policy, acting, observed, candidate), candidates)
    return Choice(None, candidates)


def _for_pressure(
    policy: Policy, threshold: Threshold, observed: Observation, candidate: Candidate
) -> Eviction:
    grace = IMMEDIATE_GRACE_SECONDS if threshold.is_hard else _soft_grace(policy, candidate.pod)
    return Eviction(
        pod=candidate.pod,
        cause=threshold.signal,
        message=node_pressure(threshold, observed, candidate.pod, candidate.stats),
        grace_seconds=grace,
        immediate=threshold.is_hard,
        disruption=True,
    )


def _soft_grace(policy: Policy, pod: Pod) -> int:
    """Return the lesser of the configured maximum and the pod's own; a negative maximum is none."""
    most, own = policy.max_pod_grace_period_seconds, pod.spec.termination_grace_period_seconds
    if most < 0:
        return DEFAULT_TERMINATION_GRACE_SECONDS if own is None else own
    return most if own is None else min(most, own)


def _over_limit(policy: Policy, pods: Sequence[Pod], stats: StatsByUid) -> tuple[Eviction, ...]:
    evictions = []
    for pod in pods:
        figures = stats.get(pod.metadata.uid)
        if figures is None or policy.protects(pod):
            continue
        excess = find_excess(pod, figures, dedicated_imagefs=policy.filesystems.dedicated_imagefs)
        if excess is not None:
            evictions.append(
                Eviction(
                    pod=pod,
                    cause=excess.limit,
                    message=excess.message,
                    grace_seconds=IMMEDIATE_GRACE_SECONDS,
                    immediate=True,
                    disruption=False,
                )
            )
    return tuple(evictions)


def _shortfall(threshold: Threshold, observed: Observation, with_minimum_reclaim: bool) -> int:
    """Return how much less is available than the threshold demands, in billionths, so as to be exact."""
    demanded = threshold.value.nanos_of(observed.capacity)
    if with_minimum_reclaim and threshold.minimum_reclaim is not None:
        demanded += threshold.minimum_reclaim.nanos_of(observed.capacity)
    return demanded - observed.available * NANOS_PER_UNIT


def _is_newer(observed: Observation, last: Observation | None) -> bool:
    """Tell whether a figure was measured since the last round; one without a time counts as new."""
    return observed.time is None or last is None or last.time is None or observed.time > last.time


def _urgency(threshold: Threshold) -> tuple[int, bool]:
    """Memory before all else, and of one resource a hard threshold before a soft one."""
    return urgency(threshold.signal), not threshold.is_hard
