"""The kernel's own notices of pressure, which wake the loop earlier than it meant to.

kernfs reports a change by POLLPRI, which asyncio does not ask for. So the files sit in a private epoll
whose own descriptor becomes readable, and that one asyncio does watch.
"""

import asyncio
import logging
import os
import select
from collections.abc import Callable
from pathlib import Path

from nodeagent.cgroup.files import CgroupTree

logger = logging.getLogger(__name__)

READ_BYTES = 4096
PSI_TRIGGER = b"some 100000 1000000"
"""Wake when some task waited for memory for 100 ms within one second."""


class Notices:
    """Calls back when a watched file changes; use it from the loop that it was made in."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._epoll = select.epoll()
        self._files: dict[int, bool] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._ready)

    def watch_node(self, tree: CgroupTree, kubepods: str, proc_root: Path) -> None:
        """Watch what concerns all pods; a kernel without PSI gives no notice of waiting. Raises OSError."""
        for file in ("memory.events", "pids.events"):
            self.watch_events(tree, kubepods, file)
        try:
            self.watch_pressure(proc_root / "pressure/memory")
        except OSError as error:
            logger.warning("memory pressure gives no early notice here (%s); polling alone watches", error)

    def watch_events(self, tree: CgroupTree, path: str, file: str) -> None:
        """Watch a cgroup's events file (memory.events, pids.events); raises OSError."""
        self._add(tree.open(path, file), is_events=True)

    def watch_pressure(self, file: Path, trigger: bytes = PSI_TRIGGER) -> None:
        """Ask for a notice when tasks wait longer than the trigger says; raises OSError."""
        fd = os.open(file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(fd, trigger + b"\0")
        except OSError:
            os.close(fd)
            raise
        self._add(fd, is_events=False)

    def close(self) -> None:
        """Stop watching."""
        self._loop.remove_reader(self._epoll.fileno())
        for fd in self._files:
            os.close(fd)
        self._files.clear()
        self._epoll.close()

    def _add(self, fd: int, *, is_events: bool) -> None:
        if is_events:
            # Only a change after the last read counts.
            os.pread(fd, READ_BYTES, 0)
        self._files[fd] = is_events
        self._epoll.register(fd, select.EPOLLPRI)

    def _ready(self) -> None:
        for fd, _ in self._epoll.poll(0):
            self._acknowledge(fd)
        self._wake()

    def _acknowledge(self, fd: int) -> None:
        if not self._files[fd]:
            return
        try:
            os.pread(fd, READ_BYTES, 0)
        except OSError:
            # The cgroup is gone; its file would be ready for ever.
            self._epoll.unregister(fd)
            del self._files[fd]
            os.close(fd)
