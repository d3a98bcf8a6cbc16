"""What is counted about evictions, for the metrics endpoint to show."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

AGE_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
DEATH_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Distribution:
    """A histogram: how many values were at most each bound, their sum and their number."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.total = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count one value."""
        self.total += value
        self._counts[bisect_left(self.bounds, value)] += 1

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """Return each bound with the number of values up to it; the last bound is infinite."""
        pairs, seen = [], 0
        for bound, count in zip((*self.bounds, float("inf")), self._counts, strict=True):
            seen += count
            pairs.append((bound, seen))
        return pairs


@dataclass(slots=True)
class EvictionCounters:
    """Evictions by signal, how old the figures were that decided, and the time from crossing to dead."""

    evictions: Counter[str] = field(default_factory=Counter)
    stats_age_seconds: dict[str, Distribution] = field(default_factory=dict)
    crossing_to_dead_seconds: dict[str, Distribution] = field(default_factory=dict)
    samples: int = 0

    def decided(self, signal: str, age_seconds: float | None) -> None:
        """Count a decision to evict, made on figures that were `age_seconds` old."""
        self.evictions[signal] += 1
        if age_seconds is not None:
            self.stats_age_seconds.setdefault(signal, Distribution(AGE_BUCKETS)).add(age_seconds)

    def dead(self, signal: str, seconds: float) -> None:
        """Count an eviction's end, so long after the threshold was crossed."""
        self.crossing_to_dead_seconds.setdefault(signal, Distribution(DEATH_BUCKETS)).add(seconds)
