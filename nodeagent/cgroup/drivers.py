"""How cgroups are made, changed and removed, whoever PID 1 is."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from itertools import groupby
from typing import Protocol

from nodeagent.cgroup.errors import NoSuchCgroup, WriteRefused
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.reconcile import Change, Difference, differences, in_safe_order
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


async def update_all(driver: Driver, tree: CgroupTree, desired: Mapping[str, Values]) -> tuple[Change, ...]:
    """Bring many cgroups to their values in an order that cuts no child short; return what was written.

    A cgroup that is gone by then is left out.
    """
    found = (
        Change(path, difference)
        for path, values in desired.items()
        for difference in differences(tree, path, values)
    )
    written: list[Change] = []
    for path, changes in groupby(in_safe_order(found), key=lambda change: change.path):
        values = {change.difference.file: change.difference.should for change in changes}
        with suppress(NoSuchCgroup):
            written += [Change(path, difference) for difference in await driver.update(path, values)]
    return tuple(written)


async def apply(tree: CgroupTree, path: str, values: Values) -> tuple[Difference, ...]:
    """Write the files that differ, and return what was written; raises WriteRefused and NoSuchCgroup."""
    written = differences(tree, path, values)
    try:
        for difference in written:
            await _write(tree, path, difference)
    except WriteRefused:
        require(tree, path)
        raise
    return written


def require(tree: CgroupTree, path: str) -> None:
    """Raise NoSuchCgroup unless the cgroup is there."""
    if not tree.exists(path):
        raise NoSuchCgroup(path)


async def _write(tree: CgroupTree, path: str, difference: Difference) -> None:
    if difference.file in _MAY_BLOCK and _cuts_into_use(tree, path, difference.should):
        await asyncio.to_thread(tree.write, path, difference.file, difference.should)
    else:
        tree.write(path, difference.file, difference.should)


def _cuts_into_use(tree: CgroupTree, path: str, limit: str) -> bool:
    return limit != _MAX and int(tree.read(path, "memory.current") or 0) > int(limit)
