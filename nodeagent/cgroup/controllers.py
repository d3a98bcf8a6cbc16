"""Controllers: who needs which, and handing them down the tree."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath

from nodeagent.cgroup.errors import MissingController, WriteRefused
from nodeagent.cgroup.files import CgroupTree

NEEDED = frozenset(("cpuset", "cpu", "memory", "pids"))
"""What no node can do without."""
_KERNEL_FILES = "cgroup"


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
        for controller in sorted(offered - tree.enabled(level)):
            try:
                tree.write(level, "cgroup.subtree_control", f"+{controller}")
            except WriteRefused:
                # rdma, misc and others may be refused for reasons of their own; no value of ours needs them.
                if controller in needed:
                    raise


def _text(path: PurePosixPath) -> str:
    return "" if path == PurePosixPath() else str(path)
