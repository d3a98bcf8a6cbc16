"""Container logs in the CRI format: framing of lines, rotation by size, a full disk that costs only lines.

A line of a log is `2026-01-01T00:00:00.000000000Z stdout F text`; a line longer than 16 KiB is cut into
pieces marked P, the last one F.
"""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable

MAX_LINE_BYTES = 16 * 1024

# what kubelet puts behind the name of a rotated log, and a counter of ours for those of one second
_ROTATED = re.compile(r"\.(\d{8}-\d{6})(?:-(\d{6}))?")
# how open(2) says that something else stands in the file's place: a link, a FIFO nobody reads, a directory
_NOT_A_FILE = (errno.ELOOP, errno.ENXIO, errno.EISDIR)


class LogPathError(Exception):
    """A log path that is not a plain file below the log directory."""


class Timestamps:
    """RFC 3339 timestamps with nanoseconds, formatted once a second."""

    __slots__ = ("_now_ns", "_second", "_text")

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self._second = -1
        self._text = ""

    def now(self) -> str:
        second, nanosecond = divmod(self._now_ns(), 1_000_000_000)
        if second != self._second:
            self._second = second
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._text}.{nanosecond:09d}Z"

    def for_file_name(self) -> str:
        """Return the second as kubelet puts it behind the name of a rotated log: 20260101-150405."""
        return time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._now_ns() // 1_000_000_000))


class LineFramer:
    """Turns the bytes of one stream into CRI lines; holds at most one unfinished line of 16 KiB."""

    __slots__ = ("_rest", "_stream")

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._rest = b""

    def feed(self, data: bytes, timestamp: str) -> bytes:
        """Return the CRI lines that `data` completes."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        full, partial = (f"{timestamp} {self._stream} {mark} ".encode() for mark in "FP")
        framed: list[bytes] = []
        if max(map(len, lines), default=0) <= MAX_LINE_BYTES:
            if lines:
                framed = [full, (b"\n" + full).join(lines), b"\n"]
        else:
            for line in lines:
                pieces, last = _cut(line)
                framed += [part for piece in pieces for part in (partial, piece, b"\n")]
                framed += [full, last, b"\n"]
        pieces, self._rest = _cut(self._rest)
        framed += [part for piece in pieces for part in (partial, piece, b"\n")]
        return b"".join(framed)

    def finish(self, timestamp: str, mark: str = "F") -> bytes:
        """Return the rest as a last line: F at the stream's end, P when a later keeper goes on with it."""
        rest, self._rest = self._rest, b""
        return f"{timestamp} {self._stream} {mark} ".encode() + rest + b"\n" if rest else b""


def _cut(line: bytes) -> tuple[list[bytes], bytes]:
    """Cut a line into full pieces and a last one, which is empty only if the line is."""
    starts = range(0, max(len(line), 1), MAX_LINE_BYTES)
    *pieces, last = [line[start : start + MAX_LINE_BYTES] for start in starts]
    return pieces, last


class LogFile:
    """One container's log below `root`: appended to, rotated, and never the cause of a failure once opened.

    No component of `path` below `root` may be a link. `max_bytes` of 0 or less never rotates; `max_files`
    counts the current file too. `report` is told when lines begin to be lost and when that ends.
    """

    __slots__ = (
        "_descriptor",
        "_directory",
        "_losing_since",
        "_max_bytes",
        "_max_files",
        "_name",
        "_report",
        "_root",
        "_size_bytes",
        "_timestamps",
        "lost_lines",
        "path",
    )

    def __init__(
        self,
        root: str,
        path: str,
        max_bytes: int,
        max_files: int,
        timestamps: Timestamps,
        report: Callable[[str], None],
    ) -> None:
        self.path = path
        self._root = root
        self._directory, self._name = os.path.split(path)
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._timestamps = timestamps
        self._report = report
        self._descriptor = -1
        self._size_bytes = 0
        self._losing_since: int | None = None
        self.lost_lines = 0

    def open(self) -> None:
        """Open or create the file and its directories; LogPathError where a link or device is in the way."""
        directory = self._open_directory()
        try:
            self._descriptor = self._open_in(directory)
        finally:
            os.close(directory)
        self._size_bytes = os.fstat(self._descriptor).st_size

    def write(self, lines: bytes) -> None:
        """Append whole lines; what the disk refuses is counted in `lost_lines`."""
        if not lines:
            return
        written = 0
        try:
            if self._descriptor < 0:
                self.open()
            written = self._append(lines)
        except (OSError, LogPathError) as error:
            self._lose(lines, str(error))
            return
        if written < len(lines):
            self._lose(lines[written:], "no space left on the device")
        elif self._losing_since is not None:
            self._report(
                f"{self.path}: writing again; {self.lost_lines - self._losing_since} lines were lost"
            )
            self._losing_since = None
        if 0 < self._max_bytes <= self._size_bytes:
            self._rotate()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, lines: bytes) -> int:
        """Write what fits and return its length, a whole number of lines."""
        written = os.write(self._descriptor, lines)
        if written < len(lines):
            whole = lines.rfind(b"\n", 0, written) + 1
            # the torn line would swallow the next one
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written + whole)
            written = whole
        self._size_bytes += written
        return written

    def _lose(self, lines: bytes, why: str) -> None:
        if self._losing_since is None:
            self._losing_since = self.lost_lines
            self._report(f"{self.path}: losing lines: {why}")
        self.lost_lines += lines.count(b"\n")

    def _open_directory(self) -> int:
        if not self._directory.startswith(f"{self._root}/"):
            raise LogPathError(f"{self.path}: expected a path below {self._root}")
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        for part in filter(None, self._directory.removeprefix(self._root).split("/")):
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=descriptor)
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            except NotADirectoryError:
                raise LogPathError(
                    f"{self.path}: {part} is not a directory (links are not followed)"
                ) from None
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor

    def _open_in(self, directory: int) -> int:
        # without O_NONBLOCK a FIFO put in the log's place would hang the keeper
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(self._name, flags, 0o640, dir_fd=directory)
        except OSError as error:
            if error.errno in _NOT_A_FILE:
                raise LogPathError(f"{self.path} is not a plain file (links are not followed)") from None
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise LogPathError(f"{self.path} is not a plain file")
        return descriptor

    def _rotate(self) -> None:
        """Give the full file a dated name, begin a new one and remove the oldest beyond `max_files`."""
        try:
            directory = self._open_directory()
            try:
                self._rotate_in(directory)
            finally:
                os.close(directory)
        except (OSError, LogPathError) as error:
            self._report(f"{self.path}: cannot rotate: {error}")
            # not again before as much has been written as would have fitted into a new file
            self._size_bytes = 0

    def _rotate_in(self, directory: int) -> None:
        older = sorted(suffix for suffix in map(self._rotated_suffix, os.listdir(directory)) if suffix)
        dated = self._name + self._next_suffix(older)
        # someone may have removed the file, or its directory
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._name, dated, src_dir_fd=directory, dst_dir_fd=directory)
        self.close()
        # besides the new file and the one just dated
        for suffix in older[: max(0, len(older) - (self._max_files - 2))]:
            os.unlink(self._name + suffix, dir_fd=directory)
        self._descriptor = self._open_in(directory)
        self._size_bytes = 0

    def _rotated_suffix(self, name: str) -> str:
        suffix = name.removeprefix(self._name)
        return suffix if name.startswith(self._name) and _ROTATED.fullmatch(suffix) else ""

    def _next_suffix(self, older: list[str]) -> str:
        """Return one that sorts behind all others, also within one second and when the clock went back."""
        suffix = f".{self._timestamps.for_file_name()}"
        latest = _ROTATED.fullmatch(older[-1]) if older else None
        if latest is None or older[-1] < suffix:
            return suffix
        return f".{latest[1]}-{int(latest[2] or 0) + 1:06d}"
