"""When giving back page cache can spare a pod: kubelet's measure counts pages of files that are in use.

The kernel would take them back itself before it killed anybody, but by then the threshold is long crossed.
"""

from nodeagent.api.quantity import NANOS_PER_UNIT
from nodeagent.eviction.signals import Observation, Signal
from nodeagent.eviction.thresholds import Threshold

# What the kernel may need to give back some hundred megabytes of clean pages.
RECLAIM_SECONDS = 0.5
# Less cache than this share of the threshold buys no time worth having.
WORTH_SHARE = 0.25
# With less than this share of the threshold left, nobody waits for it any longer.
URGENT_SHARE = 0.5


def cache_may_help(
    threshold: Threshold, observed: Observation, cache_bytes: int, rate_per_second: float
) -> bool:
    """Tell whether the pods' cache covers what is missing, and memory lasts until it is given back."""
    if threshold.signal not in (Signal.MEMORY_AVAILABLE, Signal.ALLOCATABLE_MEMORY_AVAILABLE):
        return False
    demanded = _amount(threshold, observed)
    missing = demanded - observed.available
    if threshold.minimum_reclaim is not None:
        missing += threshold.minimum_reclaim.nanos_of(observed.capacity) / NANOS_PER_UNIT
    spare = observed.available - URGENT_SHARE * demanded
    return cache_bytes >= max(missing, WORTH_SHARE * demanded) and spare > RECLAIM_SECONDS * rate_per_second


def is_urgent(threshold: Threshold, observed: Observation) -> bool:
    """Tell whether so little is left that a pod must go at once."""
    return observed.available < URGENT_SHARE * _amount(threshold, observed)


def _amount(threshold: Threshold, observed: Observation) -> float:
    return threshold.value.nanos_of(observed.capacity) / NANOS_PER_UNIT
