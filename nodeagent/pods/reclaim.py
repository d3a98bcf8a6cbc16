"""What can be freed on the node before a pod must go. It takes a while: call it in a thread."""

import errno
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from nodeagent.cgroup.errors import WriteRefused
from nodeagent.cgroup.files import CgroupTree
from nodeagent.stats.kernel_files import parse_flat_keyed

# A pod that has begun since the running ones were listed has a directory as young as that.
YOUNG_SECONDS = 2.0

Running = Mapping[str, Collection[tuple[str, int]]]
"""Of each active pod, by UID: the names and attempts of its running containers."""


def remove_dead_logs(directory: Path, running: Running, now: float) -> None:
    """Remove the logs of pods that are over, and of containers' earlier attempts. `now`: Unix seconds."""
    if not directory.is_dir():
        return
    for path in directory.iterdir():
        # Whoever removes a pod removes its logs as well: what is gone is no error.
        with suppress(FileNotFoundError):
            if path.is_symlink() or not path.is_dir():
                continue
            uid = path.name.rpartition("_")[2]
            if uid in running:
                _remove_earlier_attempts(path, running[uid])
            elif path.stat().st_mtime < now - YOUNG_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def drop_cache(tree: CgroupTree, kubepods: str) -> None:
    """Have the kernel take page cache back from the pods: what is not in use, and half of what is.

    memory.reclaim (Linux 5.19) gives what it can; memory.low and memory.min are respected.
    """
    stat = parse_flat_keyed(tree.read(kubepods, "memory.stat") or "")
    wanted = stat.get("inactive_file", 0) + stat.get("active_file", 0) // 2
    # Before Linux 6.11 it cannot be told to leave anonymous memory alone.
    for value in (f"{wanted} swappiness=0", str(wanted)):
        try:
            tree.write(kubepods, "memory.reclaim", value)
        except WriteRefused as error:
            if error.errno == errno.EINVAL:
                continue
        return


def _remove_earlier_attempts(pod_directory: Path, running: Collection[tuple[str, int]]) -> None:
    for container in pod_directory.iterdir():
        if container.is_symlink() or not container.is_dir():
            continue
        logs = {path: int(path.name.partition(".")[0]) for path in container.iterdir() if _is_log(path)}
        latest = max(logs.values(), default=0)
        for path, attempt in logs.items():
            if attempt < latest and (container.name, attempt) not in running:
                path.unlink(missing_ok=True)


def _is_log(path: Path) -> bool:
    attempt, _, kind = path.name.partition(".")
    return attempt.isascii() and attempt.isdigit() and kind.startswith("log")
