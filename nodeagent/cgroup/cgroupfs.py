"""The driver for hosts whose PID 1 is not systemd: plain directories and writes."""

from pathlib import PurePosixPath

from nodeagent.cgroup import controllers
from nodeagent.cgroup.drivers import apply, require
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.reconcile import Difference
from nodeagent.cgroup.removal import kill_all, remove_tree
from nodeagent.cgroup.values import Values
from nodeagent.clock import Clock


class CgroupfsDriver:
    """`nodeagent.cgroup.drivers.Driver` by mkdir and write."""

    def __init__(self, tree: CgroupTree, clock: Clock) -> None:
        self._tree = tree
        self._clock = clock

    async def ensure_slice(self, path: str, values: Values) -> None:
        await self._create(path, values)
        # A cgroup that hands controllers on may hold no process; pods' processes are in the leaves only.
        controllers.enable(self._tree, path, controllers.needed_for(values))

    async def attach(self, path: str, pid: int, values: Values) -> None:
        await self._create(path, values)
        self._tree.write(path, "cgroup.procs", str(pid))

    async def update(self, path: str, values: Values) -> tuple[Difference, ...]:
        require(self._tree, path)
        return await apply(self._tree, path, values)

    async def remove(self, path: str) -> None:
        await kill_all(self._tree, path, self._clock)
        await remove_tree(self._tree, path, self._clock)

    async def close(self) -> None:
        pass

    async def _create(self, path: str, values: Values) -> None:
        parent = PurePosixPath(path).parent
        controllers.enable(
            self._tree, "" if parent == PurePosixPath() else str(parent), controllers.needed_for(values)
        )
        self._tree.create(path)
        await apply(self._tree, path, values)
