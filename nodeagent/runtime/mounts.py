"""A container's mount namespace: private to it, with its own /proc, and its own root where one is given."""

import os
import stat

from nodeagent.runtime import linux
from nodeagent.runtime.checks import CheckedMount

_QUIET = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
_DEVICES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
}
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}


class NoMountPoint(Exception):
    """A place for a mount that is not there and cannot be made; the text is one sentence."""


def arrange(root_directory: str | None, mounts: list[CheckedMount], own_proc: bool) -> None:
    """Set up the mounts of the caller's own new mount namespace; raises NoMountPoint, OSError."""
    # nothing mounted here appears on the host; what the host unmounts goes here too, and is not kept busy
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_SLAVE)
    # the host's files are opened while its paths mean what they say
    sources = [linux.clone_mount(mount.source) for mount in mounts]
    if root_directory is not None:
        _enter_root(root_directory)
        _make_directory("/proc")
        linux.mount("proc", "/proc", "proc", _QUIET)
        _mount_devices()
        if os.path.isdir("/sys"):
            linux.mount("sysfs", "/sys", "sysfs", _QUIET | linux.MS_RDONLY)
    elif own_proc:
        linux.mount("proc", "/proc", "proc", _QUIET)
    for mount, source in zip(mounts, sources, strict=True):
        _bind(mount, source, may_create=root_directory is not None)
        os.close(source)


def _bind(mount: CheckedMount, source: int, may_create: bool) -> None:
    """Show what `source` is at the target, whose links stay inside the container's own root."""
    if not os.path.exists(mount.target):
        if not may_create:
            raise NoMountPoint(
                f"mount point {mount.target} is not there: a container on the host's own file system is given"
                " no new directories; create it, or give the container a root directory of its own"
            )
        os.makedirs(os.path.dirname(mount.target), 0o755, exist_ok=True)
        if stat.S_ISDIR(os.fstat(source).st_mode):
            os.mkdir(mount.target, 0o755)
        else:
            os.close(os.open(mount.target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    linux.attach_mount(source, mount.target)
    if mount.read_only:
        flags = linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | linux.MS_NOSUID
        linux.mount("none", mount.target, "", flags)


def _enter_root(root_directory: str) -> None:
    """Make a directory the root; from then on every path, links included, stays inside it."""
    linux.mount(root_directory, root_directory, "", linux.MS_BIND | linux.MS_REC)
    os.chdir(root_directory)
    # the old root lands on top of the new one and is taken away at once: no directory for it is needed
    linux.pivot_root(".", ".")
    linux.unmount(".", linux.MNT_DETACH)
    os.chdir("/")


def _mount_devices() -> None:
    _make_directory("/dev")
    linux.mount("tmpfs", "/dev", "tmpfs", linux.MS_NOSUID | linux.MS_STRICTATIME, "mode=755,size=65536k")
    mask = os.umask(0)
    for name, (major, minor) in _DEVICES.items():
        os.mknod(f"/dev/{name}", 0o666 | stat.S_IFCHR, os.makedev(major, minor))
    os.umask(mask)
    for directory in ("/dev/pts", "/dev/shm"):
        _make_directory(directory)
    linux.mount(
        "devpts",
        "/dev/pts",
        "devpts",
        linux.MS_NOSUID | linux.MS_NOEXEC,
        "newinstance,ptmxmode=0666,mode=0620",
    )
    linux.mount("shm", "/dev/shm", "tmpfs", _QUIET, "mode=1777,size=65536k")
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")


def _make_directory(path: str) -> None:
    if not os.path.isdir(path):
        os.mkdir(path, 0o755)
