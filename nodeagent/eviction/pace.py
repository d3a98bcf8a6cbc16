"""How long the loop may sleep without being late.

Two bounds, the shorter counts. One is for safety: nothing that the machine can do fills what is left before
the loop has looked again and acted. The other is for punctuality: at the rate that was seen, the threshold is
not crossed before.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from nodeagent.api.quantity import NANOS_PER_UNIT
from nodeagent.eviction.signals import RESOURCES, WHOLE_PERCENT, Observations, Resource, Signal
from nodeagent.eviction.thresholds import Threshold

# What watching may take of one CPU: while every threshold is far, and while one is closer than that.
FAR_SHARE = 0.01
CLOSE_SHARE = 0.05
# A threshold is far when this many times its amount is left above it.
FAR_FACTOR = 5
# What is gone in a moment, and then costs processes that nobody chose.
SUDDEN = (Resource.MEMORY, Resource.PIDS)
# What is left of anything else is worth no more looks than this: freeing it takes longer.
SHORTEST_OF_SLOW_SECONDS = 0.1
LONGEST_REST_SECONDS = 1.0
# A threshold is near when the recent rate crosses it within this time.
NEAR_SECONDS = 5.0
RATE_HALF_LIFE_SECONDS = 2.0
RATE_WINDOW_SECONDS = 0.05
SLOWEST_FILL_RATE = 512e6
FASTEST_FILL_RATE = 400e9
FORKS_PER_SECOND = 20_000.0
REACTION_HALF_LIFE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What the machine can do at most: units of each resource used up per second."""

    memory_bytes_per_second: float
    pids_per_second: float
    storage_bytes_per_second: float = 4e9
    inodes_per_second: float = 500_000.0

    @classmethod
    def of_machine(cls, cpus: int, fill_rate_bytes_per_second: float) -> "Limits":
        """Return the limits of a machine of which one CPU fills memory at a rate that was measured.

        A machine that was busy when it was measured is taken for no slower than the slowest that is sold,
        and memory buses set an end to what many CPUs can do together.
        """
        one_cpu = max(fill_rate_bytes_per_second, SLOWEST_FILL_RATE)
        return cls(
            memory_bytes_per_second=min(cpus * one_cpu, FASTEST_FILL_RATE),
            pids_per_second=cpus * FORKS_PER_SECOND,
        )

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
            case Resource.IO:
                return WHOLE_PERCENT


class Trend:
    """How one signal moves: the last two looks, the recent rate, and the fastest ever seen."""

    __slots__ = (
        "_measured_from",
        "_rate",
        "available",
        "available_before",
        "fastest_per_second",
        "time",
        "time_before",
    )

    def __init__(self, time: float, available: int) -> None:
        self.time = self.time_before = time
        self.available = self.available_before = available
        self.fastest_per_second = 0.0
        self._rate = 0.0
        self._measured_from = (time, available)

    def look(self, time: float, available: int) -> None:
        """Take in one more look."""
        self.time_before, self.available_before = self.time, self.available
        self.time, self.available = time, available
        since, had = self._measured_from
        # Memory is accounted in batches: over a shorter time, a batch would look like a torrent.
        if time - since >= RATE_WINDOW_SECONDS:
            rate = max((had - available) / (time - since), 0.0)
            self._rate = max(rate, self._faded(time - since))
            self.fastest_per_second = max(rate, self.fastest_per_second)
            self._measured_from = (time, available)

    @property
    def rate_per_second(self) -> float:
        """The fastest fall of late; one that is over counts half as much every two seconds."""
        return self._faded(self.time - self._measured_from[0])

    def crossed_at(self, amount: int) -> float:
        """Return when `amount` was passed, taking the way between the last two looks as straight."""
        fall = self.available_before - self.available
        if fall <= 0:
            return self.time
        share = min(max((self.available_before - amount) / fall, 0.0), 1.0)
        return self.time_before + share * (self.time - self.time_before)

    def _faded(self, seconds: float) -> float:
        faded: float = self._rate * 0.5 ** (seconds / RATE_HALF_LIFE_SECONDS)
        return faded


@dataclass(frozen=True, slots=True)
class Headroom:
    """How far a threshold is: what is left above it, and after how long the recent rate crosses it."""

    threshold: Threshold
    left: float
    seconds: float
    available: float = 0.0
    """What is left in all, in the signal's own unit."""


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
            if trend is None:
                self._trends[signal] = Trend(now, observed.available)
            else:
                trend.look(now, observed.available)

    def react(self, now: float, seconds: float) -> None:
        """Learn how long acting took; what was slow once counts half as much ten seconds later."""
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
            left = _left(threshold, observations)
            trend = self._trends.get(threshold.signal)
            if left is None or left < 0 or trend is None:
                continue
            bound = left / trend.rate_per_second if trend.rate_per_second > 0 else seconds
            if threshold.is_hard:
                fastest = max(self._limits.of(threshold.signal), trend.fastest_per_second)
                until_nothing = observations[threshold.signal].available / fastest
                bound = min(bound, until_nothing - self.reaction_seconds(now))
            is_sudden = RESOURCES[threshold.signal] in SUDDEN
            seconds = min(
                seconds, max(bound, self.shortest_seconds if is_sudden else SHORTEST_OF_SLOW_SECONDS)
            )
        return max(seconds, self.shortest_seconds)

    def rest_seconds(
        self, look_seconds: float, observations: Observations, thresholds: Iterable[Threshold]
    ) -> float:
        """Return the rest that a look which took so long has earned: watching must not itself be a load.

        On a slow or crowded machine the bounds above shrink as looks grow; without a floor they would meet.
        Nothing is earned where a threshold is near by what was seen, little where it is not far.
        """
        share = FAR_SHARE
        for threshold in thresholds:
            left = _left(threshold, observations)
            if left is None:
                continue
            if left < 0 or self.is_near(threshold, observations, NEAR_SECONDS):
                return 0.0
            amount = threshold.value.nanos_of(observations[threshold.signal].capacity) / NANOS_PER_UNIT
            if RESOURCES[threshold.signal] in SUDDEN and left < FAR_FACTOR * amount:
                share = CLOSE_SHARE
        return min(look_seconds / share, LONGEST_REST_SECONDS)

    def headroom(self, threshold: Threshold, observations: Observations) -> Headroom | None:
        """Return how far a threshold is, if its signal is known; what does not fall never crosses it."""
        left, trend = _left(threshold, observations), self._trends.get(threshold.signal)
        if left is None or trend is None:
            return None
        if left <= 0:
            return Headroom(threshold, left, 0.0, trend.available)
        rate = trend.rate_per_second
        return Headroom(threshold, left, left / rate if rate > 0 else inf, trend.available)

    def is_near(self, threshold: Threshold, observations: Observations, seconds: float) -> bool:
        """Tell whether a threshold will be crossed within `seconds` at the recent rate, or is already."""
        left, trend = _left(threshold, observations), self._trends.get(threshold.signal)
        if left is None or trend is None:
            return False
        return left <= trend.rate_per_second * seconds


def _left(threshold: Threshold, observations: Observations) -> float | None:
    """Return how much may still go before a threshold is crossed; None if that is unknown."""
    observed = observations.get(threshold.signal)
    if observed is None:
        return None
    return observed.available - threshold.value.nanos_of(observed.capacity) / NANOS_PER_UNIT
