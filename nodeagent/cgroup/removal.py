"""Killing what is in a cgroup and removing it, bottom-up, within a bound."""

import asyncio
import os
import select
from contextlib import suppress

from nodeagent.cgroup.errors import StuckCgroup
from nodeagent.cgroup.files import CgroupTree
from nodeagent.clock import Clock

# Together the pauses bound a removal to about 6 s; a process in the kernel's D state outlasts any bound.
_PAUSES_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0)
_EMPTY_SECONDS = 5.0


async def kill_all(tree: CgroupTree, path: str, clock: Clock) -> None:
    """Kill every process in a cgroup and below, and wait until none is left; raises StuckCgroup."""
    if not tree.populated(path):
        return
    tree.kill(path)
    if not await _wait_empty(tree, path, clock):
        raise StuckCgroup(path, tree.processes_below(path))


async def remove_tree(tree: CgroupTree, path: str, clock: Clock) -> None:
    """Remove an empty cgroup and all below it, children first; raises StuckCgroup."""
    for pause in (*_PAUSES_SECONDS, 0.0):
        # Looked up again each time: what lives there may make cgroups of its own until it is dead.
        if all([tree.remove(child) for child in (*tree.descendants(path), path)]):
            return
        if tree.populated(path):
            await kill_all(tree, path, clock)
        await clock.sleep(pause)
    raise StuckCgroup(path, tree.processes_below(path))


async def _wait_empty(tree: CgroupTree, path: str, clock: Clock) -> bool:
    """Wait until cgroup.events says that no process is left; False when that takes too long."""
    try:
        fd = tree.open(path, "cgroup.events")
    except FileNotFoundError:
        return True
    deadline = clock.monotonic() + _EMPTY_SECONDS
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    with select.epoll() as poller:
        # asyncio asks for readability only, and the kernel announces a change here as "priority".
        # A plain file (a test's tree) cannot be waited for, and is read again and again.
        with suppress(PermissionError):
            poller.register(fd, select.EPOLLPRI)
        loop.add_reader(poller.fileno(), changed.set)
        try:
            while _populated(fd):
                left = deadline - clock.monotonic()
                if left <= 0:
                    return False
                await _first(changed, clock, min(left, 0.2))
                changed.clear()
        finally:
            loop.remove_reader(poller.fileno())
            os.close(fd)
    return True


async def _first(changed: asyncio.Event, clock: Clock, seconds: float) -> None:
    waiting = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def _populated(fd: int) -> bool:
    # Read through the polled descriptor itself: that is what marks the change as seen.
    try:
        return b"populated 1" in os.pread(fd, 256, 0)
    except OSError:
        return False
