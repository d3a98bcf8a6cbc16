"""The keeper's records on disk: what survives a restart, a crash in the middle of a line, a full disk."""

import json
import resource
from pathlib import Path

import msgspec
import pytest

from nodeagent.runtime.records import SLACK_LINES, RecordFile
from nodeagent.runtime.spec import ContainerSpec


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def file(tmp_path: Path, reports: list[str]) -> RecordFile:
    opened = RecordFile(str(tmp_path), reports.append)
    opened.load()
    return opened


def record(container_id: str, state: str = "running", **fields: object) -> str:
    spec = ContainerSpec(
        container_id=container_id,
        pod_uid="1",
        pod_namespace="default",
        pod_name="web",
        container_name="main",
        argv=("true",),
        log_path="/var/log/pods/default_web_1/main/0.log",
        cgroup="kubepods.slice/x.scope",
        pod_cgroup="kubepods.slice",
    )
    return json.dumps({"spec": msgspec.to_builtins(spec), "pid": 42, "state": state, **fields})


def loaded(directory: Path, reports: list[str]) -> dict[str, tuple[str, int | None]]:
    found = RecordFile(str(directory), reports.append).load()
    return {stored.spec.container_id: (stored.record.state, stored.record.exit_code) for stored in found}


def test_the_newest_record_of_each_container_counts(
    file: RecordFile, tmp_path: Path, reports: list[str]
) -> None:
    file.put(record("a"), record("b"))
    file.put(record("a", "exited", exit_code=7))
    file.put(record("c"))
    file.forget("b")
    assert loaded(tmp_path, reports) == {"a": ("exited", 7), "c": ("running", None)}
    assert reports == []


def test_a_file_is_private_to_root(file: RecordFile, tmp_path: Path) -> None:
    file.put(record("a"))
    assert (tmp_path / "containers.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "damage",
    [
        b'{"put":{"spec":{"container_id":"b"',
        b"\x00\xff\xfe\n",
        b"[]\n",
        b"17\n",
        b"{}\n",
        b'{"put":3}\n',
        b'{"put":{"spec":{},"pid":1,"state":"running"}}\n',
        record("b").replace('"pid": 42', '"pid": "42"').encode() + b"\n",
        b'{"put":' + record("b", "dreaming").encode() + b"}\n",
        b'{"put":' + record("b", pipes=[1, 2]).encode() + b"}\n",
        b"[" * 100_000 + b"\n",
    ],
    ids=[
        "torn",
        "binary",
        "list",
        "number",
        "empty",
        "no record",
        "no spec",
        "bare",
        "state",
        "pipes",
        "deep",
    ],
)
def test_a_damaged_line_is_reported_and_moved_aside(
    file: RecordFile, tmp_path: Path, reports: list[str], damage: bytes
) -> None:
    file.put(record("a"))
    path = tmp_path / "containers.jsonl"
    path.write_bytes(path.read_bytes() + damage)
    assert loaded(tmp_path, reports) == {"a": ("running", None)}
    assert (tmp_path / "containers.jsonl.damaged").read_bytes() == damage
    assert len(reports) == 1 and "1 lines are no container records" in reports[0]
    reports.clear()
    assert loaded(tmp_path, reports) == {"a": ("running", None)}
    assert reports == []


def test_records_behind_a_damaged_line_are_kept(file: RecordFile, tmp_path: Path, reports: list[str]) -> None:
    path = tmp_path / "containers.jsonl"
    path.write_bytes(b"rubbish\n")
    file = RecordFile(str(tmp_path), reports.append)
    file.load()
    file.put(record("a"))
    assert loaded(tmp_path, reports) == {"a": ("running", None)}


def test_a_record_of_an_older_keeper_lacks_the_newer_fields(tmp_path: Path, reports: list[str]) -> None:
    fields = json.loads(record("a"))
    for name in ("hostname", "host_ipc", "no_new_privileges"):
        del fields["spec"][name]
    (tmp_path / "containers.jsonl").write_text(json.dumps({"put": fields}) + "\n")
    assert loaded(tmp_path, reports) == {"a": ("running", None)}


def test_the_file_is_written_anew_before_it_grows_without_end(
    file: RecordFile, tmp_path: Path, reports: list[str]
) -> None:
    for _ in range(SLACK_LINES + 3):
        assert not file.wants_rewrite(1)
        file.put(record("a"))
    assert file.wants_rewrite(1)
    file.rewrite([record("a", "exited", exit_code=0)])
    assert not file.wants_rewrite(1)
    assert len((tmp_path / "containers.jsonl").read_bytes().splitlines()) == 1
    file.put(record("b"))
    assert loaded(tmp_path, reports) == {"a": ("exited", 0), "b": ("running", None)}


def test_on_a_full_disk_a_record_is_refused_and_made_up_for_later(
    file: RecordFile, tmp_path: Path, reports: list[str]
) -> None:
    file.put(record("a"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "containers.jsonl").stat().st_size + 100, hard))
    try:
        file.put(record("b"))
        assert file.behind
        assert file.wants_rewrite(2)
        file.rewrite([record("a"), record("b")])
        assert file.wants_rewrite(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file.put(record("c"))
    assert loaded(tmp_path, []) == {"a": ("running", None), "c": ("running", None)}
    file.rewrite([record("a"), record("b"), record("c")])
    assert not file.behind
    assert set(loaded(tmp_path, [])) == {"a", "b", "c"}
    assert any("a container's record is not written" in report for report in reports)
