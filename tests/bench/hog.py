"""Uses something up, in the machine: hog.py CUE KIND MEGABYTES_PER_SECOND (0: as fast as it goes).

Begins when the file CUE is there. Kinds: anonymous, tmpfs, cache (a file read again and again), log, inodes.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

MEGABYTE = 1_000_000
FILE_BYTES = 512 * MEGABYTE
CACHED = Path("/var/tmp/cached")


def anonymous() -> Callable[[int], object]:
    held: list[bytes] = []
    return lambda count: held.append(b"x" * count)


def tmpfs() -> Callable[[int], object]:
    """A file without a name on the kernel's own tmpfs: it is gone when the last process that has it is."""
    fd = os.memfd_create("hog")
    return lambda count: os.write(fd, b"x" * count)


def cache() -> Callable[[int], object]:
    """Pages that are read twice count as in use: kubelet's working set holds them."""
    fd = os.open(CACHED, os.O_RDWR | os.O_CREAT, 0o600)
    CACHED.unlink()
    written = 0

    def grow(count: int) -> None:
        nonlocal written
        place = written % FILE_BYTES
        if written < FILE_BYTES:
            os.pwrite(fd, b"x" * count, place)
        os.pread(fd, count, place)
        os.pread(fd, count, place)
        written += count

    return grow


def log() -> Callable[[int], object]:
    return lambda count: os.write(1, (b"x" * 99 + b"\n") * (count // 100))


def inodes() -> Callable[[int], object]:
    """Empty files, a hundred a megabyte, in the directory of its own log: there they count as its own."""
    directory = max(Path("/var/log/pods").glob("default_hog*/c"), key=lambda path: path.stat().st_mtime)
    made = 0

    def grow(count: int) -> None:
        nonlocal made
        for _ in range(100 * count // MEGABYTE):
            (directory / f"empty-{made}").touch()
            made += 1

    return grow


KINDS = {each.__name__: each for each in (anonymous, tmpfs, cache, log, inodes)}


def main(cue: Path, kind: str, megabytes_per_second: float) -> None:
    while not cue.exists():
        time.sleep(0.1)
    grow = KINDS[kind]()
    began, grown = time.monotonic(), 0
    while True:
        grow(MEGABYTE)
        grown += MEGABYTE
        if megabytes_per_second:
            due = began + grown / MEGABYTE / megabytes_per_second
            time.sleep(max(due - time.monotonic(), 0.0))


main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
