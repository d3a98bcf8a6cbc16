"""How long the loop may sleep without being late.

Two bounds, the shorter counts. One is for safety: nothing that the machine can do fills what is left before
the loop has looked again and acted. The other is for punctuality: at the rate that was seen, the threshold is
not crossed before.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from nodeagent.eviction.manager import thresholds_crossed
from nodeagent.eviction.signals import RESOURCES, Observations, Resource, Signal
from nodeagent.eviction.thresholds import Threshold

RATE_HALF_LIFE_SECONDS = 2.0
REACTION_HALF_LIFE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What the machine can do at most: units of each resource used up per second."""

    memory_bytes_per_second: float
    pids_per_second: float
    storage_bytes_per_second: float = 4e9
    inodes_per_second: float = 500_000.0

    def of(self, signal: Signal) -> float:
        """Return the limit that a signal's resource is under."""
        match RESOURCES[signal]:
            case Resource.MEMORY:
                return self.memory_bytes_per_second
            case Resource.PIDS:
                return self.pids_per_second
            case Resource.INODES:
                return self.inodes_per_second
            case Resource.EPHEMERAL_STORAGE:
                return self.storage_bytes_per_second


@dataclass(frozen=True, slots=True)
class Trend:
    """How one signal has moved: the last two looks, the recent rate, and the fastest ever seen."""

    time: float
    available: int
    rate_per_second: float = 0.0
    fastest_per_second: float = 0.0
    time_before: float | None = None
    available_before: int = 0

    def after(self, time: float, available: int) -> "Trend":
        """Return the trend with one more look; a rate fades by half in two seconds."""
        elapsed = time - self.time
        if elapsed <= 0:
            return self
        rate = max((self.available - available) / elapsed, 0.0)
        faded: float = self.rate_per_second * 0.5 ** (elapsed / RATE_HALF_LIFE_SECONDS)
        return Trend(
            time=time,
            available=available,
            rate_per_second=max(rate, faded),
            fastest_per_second=max(rate, self.fastest_per_second),
            time_before=self.time,
            available_before=self.available,
        )

    def crossed_at(self, amount: int) -> float:
        """Return when `amount` was passed, taking the way between the last two looks as straight."""
        if self.time_before is None or self.available_before <= self.available:
            return self.time
        share = (self.available_before - amount) / (self.available_before - self.available)
        return self.time_before + min(max(share, 0.0), 1.0) * (self.time - self.time_before)


class Pace:
    """Learns how fast resources go and how long acting takes, and says how long to sleep."""

    def __init__(
        self,
        limits: Limits,
        *,
        interval_seconds: float = 10.0,
        shortest_seconds: float = 0.002,
        reaction_seconds: float = 0.02,
    ) -> None:
        """Sleep between `shortest_seconds` and `interval_seconds`.

        `reaction_seconds` is the least that noticing, deciding and killing is taken to need.
        """
        self.interval_seconds = interval_seconds
        self.shortest_seconds = shortest_seconds
        self._limits = limits
        self._trends: dict[Signal, Trend] = {}
        self._least_reaction = reaction_seconds
        self._reaction = (reaction_seconds, 0.0)

    def observe(self, now: float, observations: Observations) -> None:
        """Take in one look at the signals; a signal that cannot be read now keeps what is known of it."""
        for signal, observed in observations.items():
            trend = self._trends.get(signal)
            self._trends[signal] = (
                Trend(now, observed.available) if trend is None else trend.after(now, observed.available)
            )

    def react(self, now: float, seconds: float) -> None:
        """Learn how long acting took; what was slow once counts half as much a minute later."""
        self._reaction = (max(seconds, self.reaction_seconds(now)), now)

    def reaction_seconds(self, now: float) -> float:
        """Return how long acting is expected to take."""
        seconds, learnt_at = self._reaction
        faded: float = seconds * 0.5 ** ((now - learnt_at) / REACTION_HALF_LIFE_SECONDS)
        return max(faded, self._least_reaction)

    def trend(self, signal: Signal) -> Trend | None:
        """Return how a signal has moved, if it was ever seen."""
        return self._trends.get(signal)

    def sleep_seconds(self, now: float, thresholds: Iterable[Threshold], observations: Observations) -> float:
        """Return how long nothing needs to be looked at, going by the thresholds that are not crossed yet."""
        seconds = self.interval_seconds
        for threshold in thresholds:
            if not thresholds_crossed((threshold,), observations):
                seconds = min(seconds, self.seconds_to_cross(threshold, observations))
                if threshold.is_hard:
                    seconds = min(seconds, self._seconds_to_exhaust(threshold.signal, observations, now))
        return max(seconds, self.shortest_seconds)

    def seconds_to_cross(self, threshold: Threshold, observations: Observations) -> float:
        """Return when a threshold will be reached at the recent rate: infinite if unknown, 0 if it is."""
        observed, trend = observations.get(threshold.signal), self._trends.get(threshold.signal)
        if observed is None or trend is None:
            return inf
        left = max(observed.available - threshold.value.of(observed.capacity).value(), 0)
        if left == 0:
            return 0.0
        return left / trend.rate_per_second if trend.rate_per_second > 0 else inf

    def _seconds_to_exhaust(self, signal: Signal, observations: Observations, now: float) -> float:
        """Return when nothing can be left at the fastest, less the time that acting takes."""
        observed, trend = observations.get(signal), self._trends.get(signal)
        if observed is None or trend is None:
            return inf
        fastest = max(self._limits.of(signal), trend.fastest_per_second)
        return observed.available / fastest - self.reaction_seconds(now)
