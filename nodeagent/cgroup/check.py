"""What a host must have before the agent can do anything on it, and how to get what it lacks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodeagent.cgroup.controllers import NEEDED

NEEDED_KERNEL = (5, 14)
_LARGEST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that a host lacks: what was found, where, and how to mend it."""

    found: str
    where: str
    mend: str

    def __str__(self) -> str:
        return f"{self.found} ({self.where}); {self.mend}"


def host_lacks(proc_root: Path, cgroup_root: Path, user_id: int, *, fail_swap_on: bool) -> Iterator[Lack]:
    """Yield everything that keeps the agent from working here, in the order in which to mend it."""
    checks = (
        user_lack(user_id),
        kernel_lack(proc_root),
        hierarchy_lack(proc_root, cgroup_root),
        controllers_lack(cgroup_root),
        swap_lack(proc_root) if fail_swap_on else None,
    )
    return (lack for lack in checks if lack is not None)


def user_lack(user_id: int) -> Lack | None:
    """The agent writes to cgroups, kills and changes users."""
    if user_id == 0:
        return None
    return Lack(f"running as user {user_id}", "effective user id", "'nodeagent run' needs root")


def kernel_lack(proc_root: Path) -> Lack | None:
    """Without cgroup.kill a fork bomb cannot be ended."""
    release = kernel_release(proc_root)
    match = re.match(r"(\d+)\.(\d+)", release)
    if match and (int(match[1]), int(match[2])) >= NEEDED_KERNEL:
        return None
    needed = ".".join(map(str, NEEDED_KERNEL))
    return Lack(
        f"Linux {release or 'of unknown version'}",
        str(_osrelease(proc_root)),
        f"boot a kernel of version {needed} or later: cgroup.kill came with it",
    )


def kernel_release(proc_root: Path) -> str:
    """Return what `uname -r` prints."""
    return read_text(_osrelease(proc_root))


def hierarchy_lack(proc_root: Path, cgroup_root: Path) -> Lack | None:
    """All controllers must be in the one hierarchy of cgroup v2."""
    path = proc_root / "self/mountinfo"
    mounts = [
        (line.split()[4], line.partition(" - ")[2].split(" ")[0])
        for line in read_text(path).splitlines()
        if " - " in line
    ]
    old = sorted(where for where, kind in mounts if kind == "cgroup")
    if (str(cgroup_root), "cgroup2") in mounts:
        if not old:
            return None
        found = f"cgroup2 on {cgroup_root}, but v1 hierarchies beside it: {', '.join(old)}"
    else:
        kind = "hybrid" if any(kind == "cgroup2" for _, kind in mounts) else "v1" if old else "no cgroup"
        found = f"{kind} hierarchy: {cgroup_root} is not a cgroup2 mount"
    mend = "boot with systemd.unified_cgroup_hierarchy=1 and without cgroup_no_v1= and systemd.legacy options"
    return Lack(found, str(path), mend)


def controllers_lack(cgroup_root: Path) -> Lack | None:
    """Limits of CPU, memory and tasks are written for every pod."""
    missing = sorted(NEEDED - set(offered_controllers(cgroup_root)))
    if not missing:
        return None
    return Lack(
        f"cgroup controllers missing: {', '.join(missing)}",
        str(_controllers(cgroup_root)),
        "boot without cgroup_disable= and cgroup_no_v1=; for memory some boards need cgroup_enable=memory",
    )


def offered_controllers(cgroup_root: Path) -> list[str]:
    """Return the controllers of the hierarchy."""
    return read_text(_controllers(cgroup_root)).split()


def swap_lack(proc_root: Path) -> Lack | None:
    """What failSwapOn: true forbids."""
    devices = swap_devices(proc_root)
    if not devices:
        return None
    return Lack(
        f"swap is on: {', '.join(devices)}",
        str(_swaps(proc_root)),
        "running with swap on is not supported, please disable swap or set failSwapOn: false "
        "('swapoff -a', and its line in /etc/fstab)",
    )


def swap_devices(proc_root: Path) -> list[str]:
    """Return the files and devices that are swapped to."""
    return [line.split()[0] for line in read_text(_swaps(proc_root)).splitlines()[1:] if line.strip()]


def read_text(path: Path) -> str:
    """Return a kernel file's text; empty where it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST_TEXT).strip()
    except OSError:
        return ""


def _osrelease(proc_root: Path) -> Path:
    return proc_root / "sys/kernel/osrelease"


def _controllers(cgroup_root: Path) -> Path:
    return cgroup_root / "cgroup.controllers"


def _swaps(proc_root: Path) -> Path:
    return proc_root / "swaps"
