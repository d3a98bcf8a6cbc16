"""Was a container killed for memory? Counters of `memory.events`, through descriptors kept from its start.

A scope's cgroup may be removed as soon as it is empty, before its last numbers are read; the pod's slice
lives longer, and its counter includes the leaf's.
"""

import os

_MAX_BYTES = 4096


class OomCounter:
    """The `oom_kill` count of one cgroup, below it included."""

    __slots__ = ("_seen", "descriptor")

    def __init__(self, memory_events: str) -> None:
        """Open the file; OSError if the cgroup or its memory controller is not there."""
        self.descriptor = os.open(memory_events, os.O_RDONLY)
        self._seen = self._read() or 0

    def growth(self) -> int | None:
        """Return how many kills there were since the last call; None once the cgroup is gone."""
        count = self._read()
        if count is None:
            return None
        grown, self._seen = count - self._seen, count
        return grown

    def close(self) -> None:
        os.close(self.descriptor)

    def _read(self) -> int | None:
        try:
            text = os.pread(self.descriptor, _MAX_BYTES, 0)
        except OSError:
            return None
        for line in text.splitlines():
            name, _, value = line.partition(b" ")
            if name == b"oom_kill":
                return int(value)
        return None


class PodCounters:
    """The pods' own counters, each shared by the pod's containers."""

    def __init__(self) -> None:
        self._counters: dict[str, tuple[OomCounter, int]] = {}

    def acquire(self, memory_events: str) -> OomCounter | None:
        """Return the counter behind this path; None if there is no such cgroup."""
        counter, users = self._counters.get(memory_events, (None, 0))
        try:
            counter = counter or OomCounter(memory_events)
        except OSError:
            return None
        self._counters[memory_events] = (counter, users + 1)
        return counter

    def release(self, memory_events: str) -> None:
        """Give up one use."""
        counter, users = self._counters.pop(memory_events)
        if users > 1:
            self._counters[memory_events] = (counter, users - 1)
        else:
            counter.close()
