"""Exclusive CPUs that host processes leave too: keeps the leaves' cpuset partitions as they should be."""

from collections.abc import Iterable, Iterator

from nodeagent.cgroup.errors import WriteRefused
from nodeagent.cgroup.files import CgroupTree
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.resources.partitions import (
    EXCLUSIVE_FILE,
    PARTITION_FILE,
    Partition,
    partition_problem,
    partition_writes,
)

# Stands for leaves that are gone and have left CPUs claimed above them.
_GONE = "gone.scope"


class ExclusivePartitions:
    """Compares with the kernel and writes the difference, so that nothing has to be remembered."""

    def __init__(self, tree: CgroupTree, cgroups: PodCgroups, partition: Partition) -> None:
        self._tree = tree
        self._cgroups = cgroups
        self._partition = partition
        self._reported: frozenset[str] = frozenset()

    @property
    def is_wanted(self) -> bool:
        return self._partition is not Partition.MEMBER

    def enforce(self) -> tuple[str, ...]:
        """Make each exclusive container's leaf a partition of its own; return what is newly wrong with it.

        Where none are wanted (any more), those that are left from before are taken down.
        """
        leaves = self._cgroups.exclusive_leaves()
        wanted = leaves if self.is_wanted else {}
        found = self._found(leaves)
        # What is no partition of the right kind is built anew: the setting changed, or somebody wrote there.
        sound = {leaf: cpus for leaf, cpus in wanted.items() if not self._problem(leaf)}
        refused = (*self._write(found, sound), *self._write(sound, wanted))
        problems = frozenset((*refused, *self._not_in_force(wanted)))
        new = problems - self._reported
        self._reported = problems
        return tuple(sorted(new))

    def _found(self, leaves: Iterable[str]) -> dict[str, CpuSet]:
        """Return what the kernel has as exclusive now, by leaf."""
        kubepods = self._cgroups.layout.kubepods
        claimed = self._exclusive(kubepods)
        if not claimed:
            return {}
        found = {leaf: cpus for leaf in leaves if (cpus := self._exclusive(leaf))}
        for cpus in found.values():
            claimed -= cpus
        return {**found, f"{kubepods}/{_GONE}": claimed} if claimed else found

    def _exclusive(self, path: str) -> CpuSet:
        return CpuSet.parse(self._tree.read(path, EXCLUSIVE_FILE) or "")

    def _write(self, found: dict[str, CpuSet], wanted: dict[str, CpuSet]) -> Iterator[str]:
        for path, file, value in partition_writes(found, wanted, self._partition):
            if path.endswith(f"/{_GONE}"):
                continue
            try:
                self._tree.write(path, file, value)
            except WriteRefused as error:
                if self._tree.exists(path):
                    yield f"{path}: CPUs cannot be kept from host processes: {error}"

    def _not_in_force(self, wanted: Iterable[str]) -> Iterator[str]:
        for leaf in wanted:
            if (problem := self._problem(leaf)) and self._tree.exists(leaf):
                yield f"{leaf}: {problem}"

    def _problem(self, leaf: str) -> str:
        return partition_problem(self._tree.read(leaf, PARTITION_FILE) or "", self._partition)
