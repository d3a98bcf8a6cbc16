"""Controllers: who needs which, and handing them down the tree."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath

from nodeagent.cgroup.errors import MissingController, WriteRefused
from nodeagent.cgroup.files import CgroupTree

NEEDED = frozenset(("cpuset", "cpu", "memory", "pids"))
"""What no node can do without."""
_KERNEL_FILES = "cgroup"
_SUBTREE_CONTROL = "cgroup.subtree_control"


def needed_for(files: Iterable[str]) -> frozenset[str]:
    """Return the controllers that files belong to: cpu.max needs cpu."""
    return frozenset(file.partition(".")[0] for file in files) - {_KERNEL_FILES}


def enable(tree: CgroupTree, path: str, needed: AbstractSet[str]) -> None:
    """Hand every controller on from the root to the children of `path`; raises MissingController.

    Top-down, because a cgroup can hand on only what it was given.
    """
    for level in (*reversed([_text(parent) for parent in PurePosixPath(path).parents]), path):
        offered = tree.controllers(level)
        for controller in sorted(needed - offered):
            raise MissingController(controller, str(tree.root / level / "cgroup.controllers"))
        missing = sorted(offered - tree.enabled(level))
        if missing:
            _hand_on(tree, level, missing, needed)


def _hand_on(tree: CgroupTree, level: str, missing: Sequence[str], needed: AbstractSet[str]) -> None:
    """Enable all in one write; the kernel takes all or none, so then one by one."""
    try:
        tree.write(level, _SUBTREE_CONTROL, " ".join(f"+{controller}" for controller in missing))
        return
    except WriteRefused as error:
        if len(missing) == 1 and missing[0] in needed:
            raise error
    for controller in missing:
        try:
            tree.write(level, _SUBTREE_CONTROL, f"+{controller}")
        except WriteRefused:
            # rdma, misc and others may be refused for reasons of their own; no value of ours needs them.
            if controller in needed:
                raise


def _text(path: PurePosixPath) -> str:
    return "" if path == PurePosixPath() else str(path)
