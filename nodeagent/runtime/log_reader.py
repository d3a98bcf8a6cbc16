"""Reading a container's log: from where it is asked for, over rotations, and on as it grows."""

import asyncio
import functools
import os
import re
import stat
from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

from nodeagent.api.pod_log_options import PodLogOptions

BLOCK_BYTES = 64 * 1024
POLL_SECONDS = 0.3
T = TypeVar("T")
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ROTATED = re.compile(r"\.\d{8}-\d{6}(-\d{6})?")


async def read_log(
    path: str, options: PodLogOptions, is_running: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield what is wanted of the log, as users read it; a following reader ends when the container has.

    `path` is the current file, whose rotated forms lie beside it. Links are not followed.
    """
    printer = _Printer(options)
    files = await _in_thread(lambda: _open_all(path))
    try:
        await _in_thread(lambda: _seek(files, options.tail_lines))
        for descriptor in files:
            while block := await _in_thread(functools.partial(os.read, descriptor, BLOCK_BYTES)):
                if text := printer.take(block):
                    yield text
                if printer.is_full:
                    return
        while options.follow:
            was_running = is_running()
            block = await _in_thread(lambda: _more(files, path))
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


async def _in_thread(function: Callable[[], T]) -> T:
    """Wait for a thread even when cancelled: it works on descriptors that are closed afterwards."""
    task = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


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
    """Return what has come since; of a file that was rotated away everything, then the next one's.

    Only the file that is read stays open: the space of one that is removed meanwhile may be wanted.
    """
    while len(files) > 1:
        os.close(files.pop(0))
    if files and (block := os.read(files[0], BLOCK_BYTES)):
        return block
    following = _next(files[0] if files else None, path)
    if following is None:
        return b""
    # What was written between the last look and the rotation.
    if files and (block := os.read(files[0], BLOCK_BYTES)):
        os.close(following)
        return block
    files.append(following)
    while len(files) > 1:
        os.close(files.pop(0))
    return os.read(following, BLOCK_BYTES)


def _next(descriptor: int | None, path: str) -> int | None:
    """Open the file that followed an open one: the oldest one left, when that is gone itself."""
    try:
        current = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    known = os.fstat(descriptor) if descriptor is not None else None
    if known is not None and os.path.samestat(known, current):
        return None
    files = _open_all(path)
    places = [
        n for n, each in enumerate(files) if known is not None and os.path.samestat(os.fstat(each), known)
    ]
    chosen = files[places[0] + 1 :][:1] if places else files[:1]
    if known is None:
        chosen = files[-1:]
    for each in files:
        if each not in chosen:
            os.close(each)
    return chosen[0] if chosen else None
