"""Reading a container's log: from where it is asked for, over rotations, and on as it grows."""

import asyncio
import os
import re
import stat
from collections.abc import AsyncGenerator, Callable

from nodeagent.api.pod_log_options import PodLogOptions

BLOCK_BYTES = 64 * 1024
POLL_SECONDS = 0.3
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ROTATED = re.compile(r"\.\d{8}-\d{6}(-\d{6})?")


async def read_log(
    path: str, options: PodLogOptions, is_running: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield what is wanted of the log, as users read it; a following reader ends when the container has.

    `path` is the current file, whose rotated forms lie beside it. Links are not followed.
    """
    printer = _Printer(options)
    files = await asyncio.to_thread(_open_all, path)
    try:
        await asyncio.to_thread(_seek, files, options.tail_lines)
        for descriptor in files:
            while block := await asyncio.to_thread(os.read, descriptor, BLOCK_BYTES):
                if text := printer.take(block):
                    yield text
                if printer.is_full:
                    return
        while options.follow:
            was_running = is_running()
            block = await asyncio.to_thread(_more, files, path)
            if text := printer.take(block):
                yield text
            if printer.is_full or (not block and not was_running):
                return
            if not block:
                await asyncio.sleep(POLL_SECONDS)
        if rest := printer.rest():
            yield rest
    finally:
        for descriptor in files:
            os.close(descriptor)


class _Printer:
    """Turns lines of the CRI format into what was written; pieces of one line are put together again."""

    def __init__(self, options: PodLogOptions) -> None:
        self._timestamps = options.timestamps
        self._since = (options.since or "").removesuffix("Z").encode()
        self._left = options.limit_bytes
        self._unfinished = b""
        self._is_inside = False

    @property
    def is_full(self) -> bool:
        return self._left == 0

    def take(self, block: bytes) -> bytes:
        """Return what the block's whole lines say."""
        *lines, self._unfinished = (self._unfinished + block).split(b"\n")
        return self._bounded(b"".join(map(self._printed, lines)))

    def rest(self) -> bytes:
        """End a line of which the end was never written."""
        return self._bounded(b"\n") if self._is_inside else b""

    def _printed(self, line: bytes) -> bytes:
        stamp, _, rest = line.partition(b" ")
        stream, _, rest = rest.partition(b" ")
        mark, _, text = rest.partition(b" ")
        if stream not in (b"stdout", b"stderr") or mark not in (b"F", b"P") or stamp < self._since:
            return b""
        start = stamp + b" " if self._timestamps and not self._is_inside else b""
        self._is_inside = mark == b"P"
        return start + text + (b"" if self._is_inside else b"\n")

    def _bounded(self, text: bytes) -> bytes:
        if self._left is None:
            return text
        text = text[: self._left]
        self._left -= len(text)
        return text


def _open_all(path: str) -> list[int]:
    """Open the rotated files, oldest first, and the current one; what is no plain file is left out."""
    directory, name = os.path.split(path)
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    rotated = sorted(
        each for each in names if each.startswith(name) and _ROTATED.fullmatch(each[len(name) :])
    )
    found = (_open(os.path.join(directory, each)) for each in (*rotated, name))
    return [descriptor for descriptor in found if descriptor is not None]


def _open(path: str) -> int | None:
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _seek(files: list[int], tail_lines: int | None) -> None:
    """Begin at the last lines; files that lie wholly before them are passed over."""
    if tail_lines is None:
        return
    missing = tail_lines
    for descriptor in reversed(files):
        end = os.fstat(descriptor).st_size
        missing = _seek_back(descriptor, end, missing) if missing > 0 else _skip(descriptor, end)


def _skip(descriptor: int, end: int) -> int:
    os.lseek(descriptor, end, os.SEEK_SET)
    return 0


def _seek_back(descriptor: int, end: int, lines: int) -> int:
    """Go to the start of the last `lines` lines, or of the file; return how many are missing."""
    # The newline at the very end closes the last line.
    position, wanted = end, lines + 1
    while position > 0:
        size = min(BLOCK_BYTES, position)
        position -= size
        block = os.pread(descriptor, size, position)
        found = block.count(b"\n")
        if found >= wanted:
            place = len(block)
            for _ in range(wanted):
                place = block.rindex(b"\n", 0, place)
            os.lseek(descriptor, position + place + 1, os.SEEK_SET)
            return 0
        wanted -= found
    os.lseek(descriptor, 0, os.SEEK_SET)
    return wanted - 1


def _more(files: list[int], path: str) -> bytes:
    """Return what has come since; a file that was rotated away is read to its end first."""
    if files and (block := os.read(files[-1], BLOCK_BYTES)):
        return block
    try:
        now = os.stat(path, follow_symlinks=False)
    except OSError:
        return b""
    known = os.fstat(files[-1]) if files else None
    if known is not None and (known.st_dev, known.st_ino) == (now.st_dev, now.st_ino):
        return b""
    descriptor = _open(path)
    if descriptor is None:
        return b""
    files.append(descriptor)
    return os.read(descriptor, BLOCK_BYTES)
