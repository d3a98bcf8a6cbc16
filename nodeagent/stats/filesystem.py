"""Filesystems and directories: what is used, what is left, in bytes and inodes."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK_BYTES = 512
MAX_DEPTH = 256
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FilesystemSample:
    """A whole filesystem, as statvfs(2) tells it; available is what is left for users without privileges."""

    capacity_bytes: int
    available_bytes: int
    used_bytes: int
    inodes: int
    inodes_free: int

    @property
    def inodes_used(self) -> int:
        return max(self.inodes - self.inodes_free, 0)


@dataclass(frozen=True, slots=True)
class DirectoryUsage:
    """What a directory and everything below it occupies on its own filesystem."""

    used_bytes: int = 0
    inodes_used: int = 0

    def __add__(self, other: "DirectoryUsage") -> "DirectoryUsage":
        return DirectoryUsage(self.used_bytes + other.used_bytes, self.inodes_used + other.inodes_used)


def read_filesystem(path: str | Path) -> FilesystemSample | None:
    """Measure the filesystem that `path` is on; None if that is unknown."""
    try:
        figures = os.statvfs(path)
    except OSError:
        return None
    return FilesystemSample(
        capacity_bytes=figures.f_blocks * figures.f_frsize,
        available_bytes=figures.f_bavail * figures.f_frsize,
        used_bytes=(figures.f_blocks - figures.f_bfree) * figures.f_frsize,
        inodes=figures.f_files,
        inodes_free=figures.f_ffree,
    )


def read_directory(path: Path) -> DirectoryUsage | None:
    """Add up a directory without following links or leaving its filesystem, 256 levels deep; None if absent.

    A file with several links is counted once. It takes as long as the directory is large, so call it
    in a thread and not while an eviction waits.
    """
    try:
        fd = os.open(path, _DIRECTORY)
    except OSError:
        return None
    try:
        return _usage_below(fd)
    finally:
        os.close(fd)


def _usage_below(root_fd: int) -> DirectoryUsage:
    top = os.fstat(root_fd)
    blocks, inodes = top.st_blocks, 1
    linked: set[int] = set()
    for entry in _entries(root_fd, top.st_dev):
        if entry.st_nlink > 1 and not stat.S_ISDIR(entry.st_mode):
            if entry.st_ino in linked:
                continue
            linked.add(entry.st_ino)
        blocks += entry.st_blocks
        inodes += 1
    return DirectoryUsage(blocks * BLOCK_BYTES, inodes)


def _entries(root_fd: int, device: int) -> Iterator[os.stat_result]:
    # Pods write here while we walk. Every step goes through a descriptor, so that no directory can be
    # swapped for a link; the depth is bounded by the descriptors that this may hold at once.
    levels = [_Level(os.dup(root_fd))]
    try:
        while levels:
            entry = next(levels[-1].entries, None)
            if entry is None:
                levels.pop().close()
                continue
            try:
                found = entry.stat(follow_symlinks=False)
                if found.st_dev != device:
                    continue
                yield found
                if stat.S_ISDIR(found.st_mode) and len(levels) < MAX_DEPTH:
                    levels.append(_Level(os.open(entry.name, _DIRECTORY, dir_fd=levels[-1].fd)))
            except OSError:
                continue  # It went away meanwhile: it occupies nothing.
    finally:
        for level in levels:
            level.close()


class _Level:
    """A directory that is being read."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.entries = os.scandir(fd)

    def close(self) -> None:
        self.entries.close()
        os.close(self.fd)
