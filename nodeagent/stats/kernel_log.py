"""Whom the kernel's OOM killer took, and for whose limit: read from /dev/kmsg, where it says so.

A record a read(2): "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT" (Documentation/ABI/testing/dev-kmsg).
"""

import asyncio
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# One record is never longer (CONSOLE_EXT_LOG_MAX).
RECORD_BYTES = 8192
# What other programs write to the log has a facility of theirs, and so a larger number.
KERNEL_PRIORITIES = 8
_OOM_KILL = re.compile(
    r"oom-kill:constraint=\w+,.*?(?:oom_memcg=/(?P<limit>[^,]*)|global_oom),"
    r"task_memcg=/(?P<cgroup>[^,]*),task=(?P<process>.*),pid=(?P<pid>\d+),uid=\d+"
)


@dataclass(frozen=True, slots=True)
class OomKill:
    """One process that the kernel killed. Paths are relative to the cgroup mount."""

    process: str
    pid: int
    cgroup: str
    limit: str | None
    """The cgroup whose limit was reached; None: the machine had no memory left."""


def parse_oom_kill(record: bytes) -> OomKill | None:
    """Return what a record of the log says of the OOM killer, or None if it is about something else."""
    head, separator, text = record.partition(b";")
    priority = head.partition(b",")[0]
    if not separator or not priority.isdigit() or int(priority) >= KERNEL_PRIORITIES:
        return None
    found = _OOM_KILL.match(text.partition(b"\n")[0].decode("utf-8", "replace"))
    if found is None:
        return None
    return OomKill(found["process"], int(found["pid"]), found["cgroup"], found["limit"])


class KernelLog:
    """Calls back for each kill from now on; use it from the loop that it was made in. Raises OSError."""

    def __init__(self, path: Path, killed: Callable[[OomKill], None]) -> None:
        self._killed = killed
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(self._fd, 0, os.SEEK_END)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._ready)

    def close(self) -> None:
        """Stop reading."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _ready(self) -> None:
        while True:
            try:
                record = os.read(self._fd, RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                # Records were overwritten before they were read; the next read goes on behind them.
                continue
            if not record:
                return
            kill = parse_oom_kill(record)
            if kill is not None:
                self._killed(kill)
