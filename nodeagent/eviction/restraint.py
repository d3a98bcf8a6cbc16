"""When not to act again so soon: kubelet's pace where haste would help nobody."""

from nodeagent.api.quantity import NANOS_PER_UNIT
from nodeagent.eviction.signals import PRESSURES, RESOURCES, Observation, Resource, Signal
from nodeagent.eviction.thresholds import Threshold

NOBODY_SECONDS = 1.0
TRIFLE_SHARE = 0.05
SLOW = (Resource.EPHEMERAL_STORAGE, Resource.INODES)


class Restraint:
    """Remembers what was done about each resource, and when."""

    def __init__(self, interval_seconds: float) -> None:
        """`interval_seconds` is the time between two rounds of kubelet."""
        self._interval = interval_seconds
        self._until: dict[Signal, float] = {}
        self._announced_at: dict[Resource, float] = {}
        self._cache_dropped_at = float("-inf")
        self._evicted_at: dict[Resource, float] = {}

    def until(self, signal: Signal) -> float:
        """Return until when nothing is to be done about a signal."""
        return self._until.get(signal, 0.0)

    def found_nobody(self, signal: Signal, now: float) -> None:
        """Learn that no pod may be evicted; asking again takes a while."""
        self._until[signal] = now + NOBODY_SECONDS

    def evicted(self, resource: Resource, now: float) -> None:
        """Learn that a pod was evicted for a resource."""
        self._evicted_at[resource] = now

    def may_drop_cache(self, now: float) -> bool:
        """Tell whether to take page cache back: once an interval, as what is in use comes back."""
        if now < self._cache_dropped_at + self._interval:
            return False
        self._cache_dropped_at = now
        return True

    def may_announce(self, resource: Resource, now: float) -> bool:
        """Tell whether to say that something is done about a resource: once an interval."""
        last = self._announced_at.get(resource)
        if last is not None and now < last + self._interval:
            return False
        self._announced_at[resource] = now
        return True

    def may_evict(self, threshold: Threshold, observed: Observation, usage: int, now: float) -> bool:
        """Tell whether a pod that uses this much may go now.

        If what fills the node is no pod, all pods would otherwise be gone in a moment, and for nothing. So
        one whose end helps little, and any while a disk fills, goes an interval after the last or later.
        """
        resource = RESOURCES[threshold.signal]
        last = self._evicted_at.get(resource)
        if threshold.signal in PRESSURES:
            # The average takes its time to show what an eviction did.
            return self._may_again(
                threshold.signal, last, max(self._interval, threshold.grace_period_seconds), now
            )
        is_trifle = usage * NANOS_PER_UNIT < TRIFLE_SHARE * threshold.value.nanos_of(observed.capacity)
        if not is_trifle and resource not in SLOW:
            return True
        return self._may_again(threshold.signal, last, self._interval, now)

    def _may_again(self, signal: Signal, last: float | None, pause_seconds: float, now: float) -> bool:
        if last is None or now >= last + pause_seconds:
            return True
        self._until[signal] = last + pause_seconds
        return False
