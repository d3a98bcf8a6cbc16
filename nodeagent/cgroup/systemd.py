"""The driver for hosts whose PID 1 is systemd: slices and scopes are transient units.

Every value is both a property of the unit and a text in the file. systemd writes a unit's files again
whenever it looks at the slice anew (after daemon-reload: when the next unit starts beside it), and
would undo what it does not know. The file is written as well because a property can be coarser.
"""

from contextlib import suppress

from nodeagent.cgroup import controllers
from nodeagent.cgroup.bus import SystemdBus
from nodeagent.cgroup.drivers import apply, require
from nodeagent.cgroup.errors import NoSuchUnit, UnitExists, UnitFailed
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import check_path
from nodeagent.cgroup.reconcile import Difference
from nodeagent.cgroup.removal import kill_all, remove_tree
from nodeagent.cgroup.units import scope_properties, slice_properties, unit_of, value_properties
from nodeagent.cgroup.values import Values
from nodeagent.clock import Clock


class SystemdDriver:
    """`nodeagent.cgroup.drivers.Driver` over org.freedesktop.systemd1."""

    def __init__(self, tree: CgroupTree, bus: SystemdBus, clock: Clock) -> None:
        self._tree = tree
        self._bus = bus
        self._clock = clock

    async def ensure_slice(self, path: str, values: Values) -> None:
        unit = unit_of(check_path(path))
        try:
            await self._bus.start_transient(unit, slice_properties(values))
        except UnitExists:
            # From an earlier life, or made by systemd for a unit below it: ours all the same.
            await self._bus.start(unit)
            await self.update(path, values)
        controllers.enable(self._tree, path, controllers.needed_for(values))
        await apply(self._tree, path, values)

    async def attach(self, path: str, pid: int, values: Values) -> None:
        unit = unit_of(check_path(path))
        properties = scope_properties(path, pid, values, await self._bus.version())
        try:
            await self._bus.start_transient(unit, properties)
        except UnitExists:
            # An agent that died between the scope and its container leaves the scope, which systemd may never
            # see to be empty; one that failed keeps its name on an old systemd. One with processes is in use.
            if self._tree.populated(path):
                raise
            with suppress(NoSuchUnit):
                await self._bus.stop(unit)
            await self._bus.reset_failed(unit)
            await self._bus.start_transient(unit, properties)
        if pid not in self._tree.processes(path):
            raise UnitFailed(unit, f"put process {pid} into", f"it is not in {path}/cgroup.procs")
        await apply(self._tree, path, values)

    async def update(self, path: str, values: Values) -> tuple[Difference, ...]:
        require(self._tree, path)
        # The file comes first: a memory limit below what is used takes hold slowly, and PID 1 must not wait.
        changed = await apply(self._tree, path, values)
        properties = value_properties({difference.file: difference.should for difference in changed})
        if properties:
            await self._bus.set_properties(unit_of(path), properties)
            await apply(self._tree, path, values)
        return changed

    async def remove(self, path: str) -> None:
        unit = unit_of(check_path(path))
        await kill_all(self._tree, path, self._clock)
        with suppress(NoSuchUnit):
            await self._bus.stop(unit)
        await remove_tree(self._tree, path, self._clock)

    async def close(self) -> None:
        self._bus.close()
