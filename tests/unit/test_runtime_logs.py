"""Container logs: framing, rotation, full disks, hostile paths."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.runtime.logs import MAX_LINE_BYTES, LineFramer, LogFile, LogPathError, Timestamps

NOON = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
STAMP = "2026-01-01T00:00:00.000000000Z"


class Now:
    """A wall clock in nanoseconds that stands still until it is moved."""

    def __init__(self) -> None:
        self.nanoseconds = NOON

    def __call__(self) -> int:
        return self.nanoseconds


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "pods"
    directory.mkdir()
    return directory


@pytest.fixture
def log(root: Path, now: Now, reports: list[str]) -> Iterator[LogFile]:
    """A log that is full after 100 bytes and keeps three files."""
    path = root / "default_web_1" / "main" / "0.log"
    opened = LogFile(str(root), str(path), 100, 3, Timestamps(now), reports.append)
    yield opened
    opened.close()


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Refuse to let files grow further, as a full disk does: first a short write, then an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def texts(framed: bytes) -> list[bytes]:
    """Put the pieces of each line together again, as a reader of the format does."""
    lines, unfinished = [], b""
    for line in framed.split(b"\n")[:-1]:
        _stamp, _stream, mark, text = line.split(b" ", 3)
        assert len(text) <= MAX_LINE_BYTES
        unfinished += text
        if mark == b"F":
            lines.append(unfinished)
            unfinished = b""
    assert not unfinished
    return lines


def test_a_line_looks_as_the_cri_says() -> None:
    assert LineFramer("stdout").feed(b"hello\n", STAMP) == f"{STAMP} stdout F hello\n".encode()


def test_nanoseconds_and_the_second_are_right(now: Now) -> None:
    timestamps = Timestamps(now)
    assert timestamps.now() == STAMP
    now.nanoseconds += 61_000_000_007
    assert timestamps.now() == "2026-01-01T00:01:01.000000007Z"
    assert timestamps.for_file_name() == "20260101-000101"


def test_a_line_waits_for_its_end() -> None:
    framer = LineFramer("stderr")
    assert framer.feed(b"half", STAMP) == b""
    assert framer.feed(b" and half\n\n", STAMP) == (
        f"{STAMP} stderr F half and half\n{STAMP} stderr F \n".encode()
    )
    assert framer.finish(STAMP) == b""


@pytest.mark.parametrize("mark", ["F", "P"])
def test_what_has_no_end_is_written_at_the_end(mark: str) -> None:
    framer = LineFramer("stdout")
    framer.feed(b"no newline", STAMP)
    assert framer.finish(STAMP, mark) == f"{STAMP} stdout {mark} no newline\n".encode()
    assert framer.finish(STAMP, mark) == b""


def test_a_line_of_exactly_16_kib_is_whole() -> None:
    line = b"x" * MAX_LINE_BYTES
    assert LineFramer("stdout").feed(line + b"\n", STAMP) == f"{STAMP} stdout F ".encode() + line + b"\n"


def test_a_longer_line_is_cut_into_pieces() -> None:
    framed = LineFramer("stdout").feed(b"x" * (MAX_LINE_BYTES + 1) + b"\n", STAMP)
    assert framed == (
        f"{STAMP} stdout P ".encode() + b"x" * MAX_LINE_BYTES + f"\n{STAMP} stdout F x\n".encode()
    )


def test_an_endless_line_is_not_kept_in_memory() -> None:
    framer = LineFramer("stdout")
    framed = b"".join(framer.feed(b"x" * 65536, STAMP) for _ in range(16))
    assert len(framed) > 16 * 65536 - MAX_LINE_BYTES
    assert len(framer.finish(STAMP)) <= MAX_LINE_BYTES + 64


@given(st.lists(st.binary(max_size=40) | st.integers(0, 40_000).map(lambda n: b"y" * n + b"\n"), max_size=12))
def test_no_byte_is_lost_however_the_stream_is_cut(chunks: list[bytes]) -> None:
    framer = LineFramer("stdout")
    framed = b"".join(framer.feed(chunk, STAMP) for chunk in chunks) + framer.finish(STAMP)
    *expected, last = b"".join(chunks).split(b"\n")
    assert texts(framed) == ([*expected, last] if last else expected)


def test_directories_and_file_have_kubelets_modes(log: LogFile, root: Path) -> None:
    log.write(b"line\n")
    directory = root / "default_web_1" / "main"
    assert directory.stat().st_mode & 0o777 == 0o755
    assert (directory / "0.log").stat().st_mode & 0o777 == 0o640
    assert (directory / "0.log").read_bytes() == b"line\n"


def test_a_full_file_is_dated_and_a_new_one_begun(log: LogFile, root: Path) -> None:
    directory = root / "default_web_1" / "main"
    log.write(b"a" * 99 + b"\n")
    log.write(b"next\n")
    assert (directory / "0.log.20260101-000000").read_bytes() == b"a" * 99 + b"\n"
    assert (directory / "0.log").read_bytes() == b"next\n"


def test_only_so_many_files_are_kept_and_the_newest_ones(log: LogFile, root: Path, now: Now) -> None:
    for number in range(6):
        log.write(b"%d" % number * 99 + b"\n")
        now.nanoseconds += 1_000_000_000
    log.write(b"current\n")
    directory = root / "default_web_1" / "main"
    assert {path.name: path.read_bytes()[:1] for path in directory.iterdir()} == {
        "0.log": b"c",
        "0.log.20260101-000004": b"4",
        "0.log.20260101-000005": b"5",
    }


@pytest.mark.parametrize("step_seconds", [0, -3600], ids=["within one second", "while the clock goes back"])
def test_rotations_stay_in_order(log: LogFile, root: Path, now: Now, step_seconds: int) -> None:
    for number in range(6):
        log.write(b"%d" % number * 99 + b"\n")
        now.nanoseconds += step_seconds * 1_000_000_000
    directory = root / "default_web_1" / "main"
    rotated = sorted(path for path in directory.iterdir() if path.name != "0.log")
    assert [path.read_bytes()[:1] for path in rotated] == [b"4", b"5"]


def test_files_of_others_are_not_rotated_away(log: LogFile, root: Path) -> None:
    directory = root / "default_web_1" / "main"
    directory.mkdir(parents=True)
    for name in ("0.log.20260101-000000.gz", "0.log.old", "1.log", "10.log.20260101-000000"):
        (directory / name).touch()
    for _ in range(5):
        log.write(b"a" * 99 + b"\n")
    assert {"0.log.20260101-000000.gz", "0.log.old", "1.log", "10.log.20260101-000000"} <= {
        path.name for path in directory.iterdir()
    }


def test_without_a_size_nothing_rotates(root: Path, now: Now) -> None:
    endless = LogFile(str(root), f"{root}/a/0.log", -1, 2, Timestamps(now), print)
    for _ in range(10):
        endless.write(b"a" * 99 + b"\n")
    endless.close()
    assert [path.name for path in (root / "a").iterdir()] == ["0.log"]


def test_an_existing_log_is_continued(root: Path, now: Now) -> None:
    (root / "a").mkdir()
    (root / "a" / "0.log").write_bytes(b"b" * 90 + b"\n")
    continued = LogFile(str(root), f"{root}/a/0.log", 100, 3, Timestamps(now), print)
    continued.write(b"0123456789\n")
    continued.close()
    assert (root / "a" / "0.log.20260101-000000").read_bytes() == b"b" * 90 + b"\n0123456789\n"


def test_a_full_disk_costs_lines_and_they_are_counted(root: Path, now: Now, reports: list[str]) -> None:
    log = LogFile(str(root), f"{root}/a/0.log", 10_000, 3, Timestamps(now), reports.append)
    log.write(b"first\n")
    with files_of_at_most(12):
        log.write(b"second\nthird\n")
        log.write(b"fourth\n")
    assert log.lost_lines == 3
    log.write(b"fifth\n")
    log.close()
    assert (root / "a" / "0.log").read_bytes() == b"first\nfifth\n"
    assert [report.removeprefix(f"{root}/a/0.log: ") for report in reports] == [
        "losing lines: no space left on the device",
        "writing again; 3 lines were lost",
    ]


def test_of_a_torn_write_the_whole_lines_stay(root: Path, now: Now, reports: list[str]) -> None:
    log = LogFile(str(root), f"{root}/a/0.log", 10_000, 3, Timestamps(now), reports.append)
    log.open()
    with files_of_at_most(9):
        log.write(b"first\nsecond\nthird\n")
    log.close()
    assert (root / "a" / "0.log").read_bytes() == b"first\n"
    assert log.lost_lines == 2


def test_a_log_directory_that_vanished_comes_back(log: LogFile, root: Path) -> None:
    log.write(b"a" * 50 + b"\n")
    for path in sorted(root.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    log.write(b"a" * 99 + b"\n")
    log.write(b"again\n")
    assert (root / "default_web_1" / "main" / "0.log").read_bytes() == b"again\n"


def test_a_link_in_the_directories_place_is_refused(log: LogFile, root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / "default_web_1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LogPathError, match="default_web_1 is not a directory"):
        log.open()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("obstacle", ["link", "fifo", "directory"])
def test_only_a_plain_file_is_written_to(log: LogFile, root: Path, tmp_path: Path, obstacle: str) -> None:
    path = root / "default_web_1" / "main" / "0.log"
    path.parent.mkdir(parents=True)
    if obstacle == "link":
        (tmp_path / "target").write_text("untouched")
        path.symlink_to(tmp_path / "target")
    elif obstacle == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(LogPathError, match="not a plain file"):
        log.open()
    log.write(b"one\ntwo\n")
    assert log.lost_lines == 2


def test_a_fifo_with_a_reader_is_refused_too(log: LogFile, root: Path) -> None:
    path = root / "default_web_1" / "main" / "0.log"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(LogPathError, match="not a plain file"):
            log.open()
    finally:
        os.close(reader)


@pytest.mark.parametrize("path", ["/etc/0.log", "/var/log/pods-of-others/0.log"])
def test_a_path_elsewhere_is_refused(root: Path, now: Now, path: str) -> None:
    with pytest.raises(LogPathError, match="expected a path below"):
        LogFile(str(root), path, 100, 3, Timestamps(now), print).open()
