"""How cgroups are made, changed and removed, whoever PID 1 is."""

import asyncio
from typing import Protocol

from nodeagent.cgroup.errors import NoSuchCgroup
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.reconcile import Difference, differences
from nodeagent.cgroup.values import Values
from nodeagent.clock import Clock

_MAX = "max"
# Lowering these below what is used makes the kernel reclaim, and the write lasts as long as that takes.
_MAY_BLOCK = ("memory.max", "memory.high")


class Driver(Protocol):
    """Makes the tree be as it should. Paths are relative to the cgroup mount, parents come first."""

    async def ensure_slice(self, path: str, values: Values) -> None:
        """Make an inner cgroup, or adopt the one from an earlier life, with these values."""
        ...

    async def attach(self, path: str, pid: int, values: Values) -> None:
        """Make a leaf with these values and with the process in it."""
        ...

    async def update(self, path: str, values: Values) -> tuple[Difference, ...]:
        """Write what differs, and return it; raises NoSuchCgroup."""
        ...

    async def remove(self, path: str) -> None:
        """Kill everything in a cgroup and remove it with all below; raises StuckCgroup."""
        ...

    async def close(self) -> None:
        """Give up connections; the tree stays as it is."""
        ...


def make_driver(name: str, tree: CgroupTree, clock: Clock) -> Driver:
    """Return the driver that cgroupDriver names; only what it needs is loaded."""
    if name == "systemd":
        from nodeagent.cgroup.bus import SystemdBus
        from nodeagent.cgroup.systemd import SystemdDriver

        return SystemdDriver(tree, SystemdBus(), clock)
    from nodeagent.cgroup.cgroupfs import CgroupfsDriver

    return CgroupfsDriver(tree, clock)


async def apply(tree: CgroupTree, path: str, values: Values) -> tuple[Difference, ...]:
    """Write the files that differ, and return what was written; raises WriteRefused."""
    written = differences(tree, path, values)
    for difference in written:
        if difference.file in _MAY_BLOCK and _cuts_into_use(tree, path, difference.should):
            await asyncio.to_thread(tree.write, path, difference.file, difference.should)
        else:
            tree.write(path, difference.file, difference.should)
    return written


def require(tree: CgroupTree, path: str) -> None:
    """Raise NoSuchCgroup unless the cgroup is there."""
    if not tree.exists(path):
        raise NoSuchCgroup(path)


def _cuts_into_use(tree: CgroupTree, path: str, limit: str) -> bool:
    return limit != _MAX and int(tree.read(path, "memory.current") or 0) > int(limit)
