"""Signals that kubelet does not have, for those who ask for them in the AgentConfiguration."""

from nodeagent.api.duration import parse_duration
from nodeagent.api.quantity import Quantity
from nodeagent.config import AgentConfiguration
from nodeagent.eviction.signals import WHOLE_PERCENT, Signal
from nodeagent.eviction.thresholds import Amount, Threshold, ThresholdError, parse_amount


def opt_in_thresholds(agent: AgentConfiguration) -> tuple[Threshold, ...]:
    """Return the thresholds that are asked for; raises ThresholdError."""
    found = []
    if agent.eviction_allocatable_pids:
        signal = Signal.ALLOCATABLE_PIDS_AVAILABLE
        amount = parse_amount("evictionAllocatablePids", signal, agent.eviction_allocatable_pids)
        found += [] if amount is None else [Threshold(signal, amount)]
    for field, signal, text in (
        ("evictionMemoryPressure", Signal.MEMORY_UNSTALLED, agent.eviction_memory_pressure),
        ("evictionIoPressure", Signal.IO_UNSTALLED, agent.eviction_io_pressure),
    ):
        if text:
            left = Quantity.of(WHOLE_PERCENT - _percent(field, text))
            period = parse_duration(agent.eviction_pressure_period)
            if period < 1:
                raise ThresholdError("evictionPressurePeriod", f"must be at least 1s: {text}")
            found.append(Threshold(signal, Amount(left), grace_period_seconds=period))
    return tuple(found)


def _percent(field: str, text: str) -> int:
    number = text.removesuffix("%")
    if (
        number == text
        or not number.isascii()
        or not number.isdigit()
        or not 1 <= int(number[:9]) < WHOLE_PERCENT
    ):
        raise ThresholdError(field, f"must be a whole percentage from 1% to 99%: {text}")
    return int(number)
