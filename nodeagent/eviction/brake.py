"""Slowing the fastest growers while a decision is being made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

LARGE_SHARE = 0.25
LEAST_RATE_BYTES_PER_SECOND = 8 << 20
ROOM_SECONDS = 0.005
REFRESH_SECONDS = 0.5
# Two looks closer than this say nothing about who grows.
LEAST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Brake:
    """A pod to be held at `memory_high_bytes` for now."""

    pod_uid: str
    memory_high_bytes: int


def choose_brakes(
    before: Mapping[str, int], now: Mapping[str, int], elapsed_seconds: float
) -> tuple[Brake, ...]:
    """Return the pods behind at least a quarter of all growth, to be held at what they use now.

    `before` and `now` are bytes by pod UID; a pod that is in one of them only is left alone. A few
    milliseconds' growth is left above the usage: a limit below it would make the writer reclaim.
    """
    if elapsed_seconds < LEAST_SECONDS:
        return ()
    growth = {uid: usage - before[uid] for uid, usage in now.items() if usage > before.get(uid, usage)}
    whole = sum(growth.values())
    return tuple(
        Brake(uid, now[uid] + int(grown / elapsed_seconds * ROOM_SECONDS))
        for uid, grown in growth.items()
        if grown >= LARGE_SHARE * whole and grown / elapsed_seconds >= LEAST_RATE_BYTES_PER_SECOND
    )


class Holder(Protocol):
    """How pods are held: memory.high of their cgroups."""

    def usage(self) -> Mapping[str, int]:
        """Return memory.current of each pod, by UID."""
        ...

    def hold(self, brakes: Sequence[Brake]) -> None:
        """Set memory.high of these pods."""
        ...

    def release(self, brakes: Sequence[Brake]) -> None:
        """Set memory.high of these pods back to what it should be."""
        ...


class BrakePedal:
    """Keeps the usage of a moment ago, so that the growers are known when they must be held."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._seen_at = float("-inf")
        self._usage: Mapping[str, int] = {}
        self._held: tuple[Brake, ...] = ()

    def prepare(self, now: float) -> None:
        """Look at the pods' usage, if that was not done within half a second."""
        if now - self._seen_at >= REFRESH_SECONDS:
            self._usage, self._seen_at = self._holder.usage(), now

    def press(self, now: float) -> None:
        """Hold whoever grew most since the last look."""
        if not self._held:
            self._held = choose_brakes(self._usage, self._holder.usage(), now - self._seen_at)
            self._holder.hold(self._held)

    def release(self) -> None:
        """Let go."""
        if self._held:
            self._holder.release(self._held)
            self._held = ()
