"""The store keeps what it acknowledged, and a damaged file costs nothing but the file."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nodeagent.store import Store, StoreError


def test_versions_only_grow_and_survive_reopening(tmp_path: Path) -> None:
    store = Store(tmp_path / "state" / "nodeagent.db")
    first = store.put("Pod", "default", "a", b"1")
    second = store.put("Pod", "default", "a", b"2")
    store.close()
    again = Store(tmp_path / "state" / "nodeagent.db")
    assert again.objects("Pod") == [b"2"]
    assert first < second < again.put("Pod", "default", "b", b"3")
    again.close()


def test_what_was_acknowledged_survives_kill(tmp_path: Path) -> None:
    path = tmp_path / "nodeagent.db"
    program = (
        "import sys; from pathlib import Path; from nodeagent.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for number in range(10**9):\n"
        "    store.put('Pod', 'default', f'p{number}', b'x'); print(number, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(20)][-1]
        os.kill(writer.pid, signal.SIGKILL)
    store = Store(path)
    assert len(store.objects("Pod")) >= acknowledged + 1
    assert store.moved_aside is None
    store.close()


def test_damaged_file_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "nodeagent.db"
    path.write_bytes(b"this is not a database" * 1000)
    store = Store(path)
    assert store.moved_aside is not None
    assert store.moved_aside.read_bytes().startswith(b"this is not a database")
    store.put("Pod", "default", "a", b"1")
    assert store.objects("Pod") == [b"1"]
    store.close()


def test_directory_that_cannot_hold_a_database_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "nodeagent.db").mkdir()
    with pytest.raises(StoreError, match=r"nodeagent\.db: cannot open the database"):
        Store(tmp_path / "nodeagent.db")


def test_events_are_forgotten_after_an_hour(tmp_path: Path) -> None:
    store = Store(tmp_path / "nodeagent.db")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    store.put_event("default", "old", lambda _: b"old", start)
    store.put_event("default", "new", lambda _: b"new", start + timedelta(minutes=61))
    store.forget_old_events(start + timedelta(minutes=61))
    assert store.events() == [b"new"]
    assert store.event("default", "old") is None
    store.close()


def test_failed_write_leaves_the_old_value(tmp_path: Path) -> None:
    store = Store(tmp_path / "nodeagent.db")
    store.put("Pod", "default", "a", b"old")
    store.close()
    reader = Store(tmp_path / "nodeagent.db")
    reader._database.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreError, match="full"):
        reader.put("Pod", "default", "a", b"x" * 1_000_000)
    assert reader.objects("Pod") == [b"old"]
    reader.close()


def test_the_newest_thousand_decisions_are_kept_and_found_by_pod_and_kind(tmp_path: Path) -> None:
    store = Store(tmp_path / "nodeagent.db")
    assert store.last_decision() == 0
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(1, 1011):
        kind = "Eviction" if number % 5 == 0 else "Admission"
        store.put_decision(number, kind, ("shop", f"p{number % 2}"), now, b"%d" % number)
    store.put_decision(1010, "Eviction", ("shop", "p0"), now, b"later")
    store.close()
    again = Store(tmp_path / "nodeagent.db")
    assert again.last_decision() == 1010
    everything = again.decisions(10_000, 10_000)
    assert [number for number, _ in everything] == list(range(1010, 10, -1))
    assert everything[0] == (1010, b"later")
    assert [number for number, _ in again.decisions(1006, 2, pod=("shop", "p1"))] == [1005, 1003]
    assert [number for number, _ in again.decisions(1006, 2, kind="Eviction")] == [1005, 1000]
    assert [n for n, _ in again.decisions(1006, 2, kind="Eviction", pod=("shop", "p0"))] == [1000, 990]
    assert again.decisions(1006, 2, pod=("test", "p0")) == []
    again.close()
