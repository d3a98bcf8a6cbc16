"""What should be against what the kernel says."""

from collections.abc import Iterable
from dataclasses import dataclass
from mmap import PAGESIZE

from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.values import Values, hugepage_size_bytes
from nodeagent.hardware.cpuset import CpuSet

_MAX = "max"
# The one of the memory controller's files that counts no bytes.
_SWITCH = "memory.oom.group"
_UNLIMITED = float("inf")


@dataclass(frozen=True, slots=True)
class Difference:
    """A file of one cgroup that does not say what it should; `is_` is None where there is no such file."""

    file: str
    is_: str | None
    should: str


@dataclass(frozen=True, slots=True)
class Change:
    """A difference and the cgroup it was found in."""

    path: str
    difference: Difference


def differences(tree: CgroupTree, path: str, desired: Values) -> tuple[Difference, ...]:
    """Return the files that must be written, in the order of `desired`."""
    found = ((file, tree.read(path, file), should) for file, should in desired.items())
    return tuple(Difference(file, is_, should) for file, is_, should in found if not same(file, is_, should))


def same(file: str, is_: str | None, should: str) -> bool:
    """Tell whether a file says what was written to it, in the kernel's own rounding and spelling."""
    if is_ is None or is_ == should:
        return is_ is not None
    if file.startswith("cpuset."):
        return CpuSet.parse(is_) == CpuSet.parse(should)
    if file.startswith("memory.") and file != _SWITCH and should.isdecimal() and is_.isdecimal():
        return int(is_) == int(should) // PAGESIZE * PAGESIZE
    if file.startswith("hugetlb.") and should.isdecimal() and is_.isdecimal():
        size = hugepage_size_bytes(file)
        return int(is_) == int(should) // size * size
    return False


def grows(difference: Difference) -> bool:
    """Tell whether a change gives more than there was."""
    if difference.file.startswith("cpuset."):
        return CpuSet.parse(difference.is_ or "") <= CpuSet.parse(difference.should)
    return _amount(difference.should) >= _amount(difference.is_ or _MAX)


def in_safe_order(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Order changes of a tree so that no child is ever cut by a parent that was meant to grow with it.

    What grows is written from the root down, then what shrinks from the leaves up.
    """
    every = sorted(changes, key=lambda change: change.path.count("/"))
    growing = [change for change in every if grows(change.difference)]
    shrinking = [change for change in reversed(every) if not grows(change.difference)]
    return (*growing, *shrinking)


def _amount(text: str) -> float:
    """Return what a value grants: the first word, or for cpu.max the share of a period."""
    first, *period = text.split()
    if first == _MAX:
        return _UNLIMITED
    return int(first) / int(period[0]) if period else int(first)
