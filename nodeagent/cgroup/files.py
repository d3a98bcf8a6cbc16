"""Reading and writing the files of one cgroup tree; the only module that opens them."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nodeagent.cgroup.errors import InvalidName, WriteRefused
from nodeagent.cgroup.layout import check_path

MAX_FILE_BYTES = 1 << 20
_SHORT_PAGE = 2048
# A buffer is made before it is filled: a small one is five times as fast on a slow machine.
_CHUNK_BYTES = 16384
_GONE = (errno.ENOENT, errno.ENODEV)
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


class CgroupTree:
    """A cgroup v2 hierarchy, or a directory that looks like one.

    Every path is relative to the root, is checked, and is opened below the root's descriptor without
    following links. Paths that are not there read as None or empty: cgroups come and go.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Give the root's descriptor back."""
        os.close(self._root_fd)

    def open(self, path: str, file: str = "", flags: int = _READ) -> int:
        """Return a descriptor of a cgroup's file, or of its directory; raises FileNotFoundError."""
        return os.open(_relative(path, file), flags, dir_fd=self._root_fd)

    def read(self, path: str, file: str) -> str | None:
        """Return a file's text without the final newline, or None if it or its cgroup is not there."""
        try:
            fd = self.open(path, file)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise
        try:
            return _read_all(fd).decode("ascii", "replace").rstrip("\n")
        except OSError as error:
            # A cgroup removed between open and read, or a file without a value (EOPNOTSUPP).
            if error.errno in (*_GONE, errno.EOPNOTSUPP):
                return None
            raise
        finally:
            os.close(fd)

    def write(self, path: str, file: str, value: str) -> None:
        """Write one value in one write(2), as the kernel wants it; raises WriteRefused."""
        try:
            fd = self.open(path, file, _WRITE)
            try:
                os.write(fd, value.encode("ascii"))
            finally:
                os.close(fd)
        except OSError as error:
            raise WriteRefused(path, file, value, error.errno or 0) from error

    def exists(self, path: str) -> bool:
        """Tell whether the cgroup is there."""
        try:
            os.close(self.open(path, flags=os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW))
        except OSError as error:
            if error.errno in (*_GONE, errno.ENOTDIR, errno.ELOOP):
                return False
            raise
        return True

    def create(self, path: str) -> None:
        """Make one cgroup; it may be there already, its parent must be."""
        with suppress(FileExistsError):
            os.mkdir(_relative(path), 0o755, dir_fd=self._root_fd)

    def remove(self, path: str) -> bool:
        """Remove one cgroup; return False while it is busy (processes, children, or the kernel still is)."""
        try:
            os.rmdir(_relative(path), dir_fd=self._root_fd)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
                return False
            raise
        return True

    def children(self, path: str) -> tuple[str, ...]:
        """Return the paths of the cgroups directly below, in name order."""
        try:
            fd = self.open(path, flags=_DIRECTORY)
        except OSError as error:
            if error.errno in _GONE:
                return ()
            raise
        try:
            with os.scandir(fd) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        finally:
            os.close(fd)
        return tuple(f"{path}/{name}" if path else name for name in names)

    def descendants(self, path: str) -> Iterator[str]:
        """Return every cgroup below, children before their parents: the order of removal."""
        # Without recursion: a container may nest its own cgroups a thousand deep.
        found = list(self.children(path))
        for child in found:
            found.extend(self.children(child))
        return reversed(found)

    def processes(self, path: str) -> tuple[int, ...]:
        """Return the PIDs in this cgroup itself."""
        return tuple(int(pid) for pid in (self.read(path, "cgroup.procs") or "").split())

    def processes_below(self, path: str) -> tuple[int, ...]:
        """Return the PIDs in this cgroup and all cgroups below, ascending."""
        pids = set(self.processes(path))
        for child in self.descendants(path):
            pids.update(self.processes(child))
        return tuple(sorted(pids))

    def populated(self, path: str) -> bool:
        """Tell whether a live process is in this cgroup or below."""
        return "populated 1" in (self.read(path, "cgroup.events") or "")

    def kill(self, path: str) -> None:
        """Send SIGKILL to every process in this cgroup and below; no fork can escape it (Linux 5.14)."""
        try:
            self.write(path, "cgroup.kill", "1")
        except WriteRefused as error:
            if error.errno not in _GONE or self.exists(path):
                raise

    def controllers(self, path: str = "") -> frozenset[str]:
        """Return the controllers that a cgroup offers."""
        return frozenset((self.read(path, "cgroup.controllers") or "").split())

    def enabled(self, path: str) -> frozenset[str]:
        """Return the controllers that a cgroup hands on to its children."""
        return frozenset((self.read(path, "cgroup.subtree_control") or "").split())


def _read_all(fd: int) -> bytes:
    # The kernel fills a page at a time for lists (cgroup.procs) and ends them with a shorter one.
    text = os.read(fd, _CHUNK_BYTES)
    chunk = text
    while len(chunk) >= _SHORT_PAGE and len(text) < MAX_FILE_BYTES:
        chunk = os.read(fd, _CHUNK_BYTES)
        text += chunk
    return text


def _relative(path: str, file: str = "") -> str:
    check_path(path)
    if file and ("/" in file or file in (".", "..") or "\0" in file):
        raise InvalidName(f"{file!r} is not the name of a cgroup file")
    return f"{path}/{file}" if path and file else path or file or "."
