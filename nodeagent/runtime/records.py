"""The keeper's memory on disk: a file of JSON lines, appended to, compacted, and read after a restart.

A line is `{"put": RECORD}`, the newest one for a container counting, or `{"forget": CONTAINER_ID}`.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable

from nodeagent.runtime.checks import BadRequest, CheckedRecord, CheckedSpec

# written anew when it holds this many lines more than twice the containers
SLACK_LINES = 256
_MAX_DAMAGED_BYTES = 1024 * 1024


class Stored:
    """A container as it was written down; `spec_json` and `text` are the JSON it came in."""

    __slots__ = ("record", "spec", "spec_json", "text")

    def __init__(self, entry: dict[str, object]) -> None:
        fields = entry["put"]
        if not isinstance(fields, dict):
            raise BadRequest("put: expected an object")
        self.spec = CheckedSpec(fields["spec"])
        self.spec_json = json.dumps(fields["spec"])
        self.record = CheckedRecord(fields)
        self.text = json.dumps(fields)


class RecordFile:
    """Where records go before anybody is told. `report` gets a sentence for what is wrong with the file."""

    def __init__(self, directory: str, report: Callable[[str], None]) -> None:
        self._directory = directory
        self._path = f"{directory}/containers.jsonl"
        self._report = report
        self._descriptor = -1
        self._size_bytes = 0
        self._lines = 0
        # a record is missing from the file: the disk refused it
        self.behind = False
        # the file has taken the old one's place, which is yet to reach the disk
        self._renamed = False

    def load(self) -> list[Stored]:
        """Return the newest record of every container; lines that are none are reported and moved aside."""
        found: dict[str, Stored] = {}
        damaged: list[bytes] = []
        try:
            with open(self._path, "rb") as file:
                for line in file:
                    if not _apply(line, found):
                        damaged.append(line)
        except FileNotFoundError:
            pass
        if damaged:
            self._set_aside(damaged)
        self.rewrite(stored.text for stored in found.values())
        if self._descriptor < 0:
            self._open_as_it_is()
        return list(found.values())

    def put(self, *records: str) -> None:
        """Append records, given as JSON text; `behind` if the disk refuses."""
        self._append("".join(f'{{"put":{record}}}\n' for record in records), len(records))

    def forget(self, container_id: str) -> None:
        """Append that a container is no more; `behind` if the disk refuses."""
        self._append(f"{json.dumps({'forget': container_id})}\n", 1)

    def sync(self) -> None:
        """Return when everything appended so far is on the disk."""
        try:
            os.fdatasync(self._descriptor)
            if self._renamed:
                _sync_directory(self._directory)
                self._renamed = False
        except OSError as error:
            self._report(f"{self._path}: {error.strerror}: records may not survive a crash of the machine")

    def wants_rewrite(self, containers: int) -> bool:
        """Whether the file has grown too long, or misses something."""
        return self.behind or self._lines > 2 * containers + SLACK_LINES

    def rewrite(self, records: Iterable[str]) -> None:
        """Replace the file by one with these records only; on a full disk the old one stays."""
        lines = [f'{{"put":{record}}}\n'.encode() for record in records]
        try:
            descriptor = _write_new(self._path, lines)
        except OSError as error:
            self._report(f"{self._path}: {error.strerror}: the container records are not written anew")
            return
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._size_bytes = sum(map(len, lines))
        self._lines = len(lines)
        self.behind = False
        self._renamed = True

    def _append(self, text: str, lines: int) -> None:
        data = text.encode()
        try:
            _write_whole(self._descriptor, data)
        except OSError as error:
            self._report(f"{self._path}: {error.strerror}: a container's record is not written")
            self.behind = True
            # what was written of it would spoil the next line, unless the file is replaced before
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size_bytes)
            return
        self._size_bytes += len(data)
        self._lines += lines

    def _open_as_it_is(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size_bytes = os.fstat(self._descriptor).st_size
        self.behind = True

    def _set_aside(self, damaged: list[bytes]) -> None:
        aside = f"{self._path}.damaged"
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                if os.fstat(descriptor).st_size < _MAX_DAMAGED_BYTES:
                    os.write(descriptor, b"".join(damaged)[:_MAX_DAMAGED_BYTES])
            finally:
                os.close(descriptor)
        except OSError as error:
            self._report(f"{aside}: {error.strerror}: damaged records are dropped")
        self._report(f"{self._path}: {len(damaged)} lines are no container records; moved to {aside}")


def _apply(line: bytes, found: dict[str, Stored]) -> bool:
    """Take one line into account; False if it makes no sense."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict) or not line.endswith(b"\n"):
            return False
        if "forget" in entry:
            found.pop(str(entry["forget"]), None)
            return True
        stored = Stored(entry)
    except (ValueError, KeyError, RecursionError, BadRequest):
        return False
    found[stored.spec.container_id] = stored
    return True


def _write_new(path: str, lines: list[bytes]) -> int:
    """Put a file with these lines in another's place, and return it open for more."""
    fresh = f"{path}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        for line in lines:
            _write_whole(descriptor, line)
        os.fsync(descriptor)
        os.rename(fresh, path)
    except OSError:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise
    return descriptor


def _write_whole(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        # a full disk takes a part first, and raises at the next call
        rest = rest[os.write(descriptor, rest) :]


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
