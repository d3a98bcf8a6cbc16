"""Reading logs: what of them, across rotations, and as they grow; in the words of kubectl's server."""

import asyncio
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from nodeagent.api.pod_log_options import InvalidLogOptions, PodLogOptions, parse_log_options
from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.errors import ApiError
from nodeagent.cluster.kinds import POD
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.logs import ContainerLog, find_log
from nodeagent.runtime.log_reader import BLOCK_BYTES, read_log
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec
from nodeagent.server.api.app import create_api_app
from nodeagent.server.api.logs import LogEndpoint
from nodeagent.server.api.who import Role, User
from nodeagent.server.listener import Listener
from nodeagent.server.streams import write_in_time
from nodeagent.store import Store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def line(second: int, text: str, mark: str = "F", stream: str = "stdout") -> str:
    return f"2026-03-01T12:00:{second:02}.000000000Z {stream} {mark} {text}\n"


async def read(path: Path, running: object = None, **options: object) -> str:
    pieces = read_log(str(path), PodLogOptions(**options), lambda: False)  # type: ignore[arg-type]
    return b"".join([piece async for piece in pieces]).decode()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log that was rotated twice, with a long line in pieces."""
    current = tmp_path / "0.log"
    (tmp_path / "0.log.20260301-120001").write_text(line(0, "zero") + line(1, "one"))
    (tmp_path / "0.log.20260301-120003").write_text(line(2, "two", stream="stderr"))
    current.write_text(line(3, "long ", "P") + line(3, "line") + line(4, "four"))
    (tmp_path / "0.log.txt").write_text(line(9, "not a log"))
    return current


async def test_rotated_files_come_first_and_pieces_are_one_line(log: Path) -> None:
    assert await read(log) == "zero\none\ntwo\nlong line\nfour\n"
    assert await read(log, timestamps=True, since="2026-03-01T12:00:03Z") == (
        "2026-03-01T12:00:03.000000000Z long line\n2026-03-01T12:00:04.000000000Z four\n"
    )


@pytest.mark.parametrize(
    ("tail", "expected"),
    [(0, ""), (1, "four\n"), (4, "two\nlong line\nfour\n"), (5, "one\ntwo\nlong line\nfour\n")],
)
async def test_the_last_lines_are_found_across_files(log: Path, tail: int, expected: str) -> None:
    assert await read(log, tail_lines=tail) == expected


async def test_the_last_lines_of_a_large_file_are_found_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("".join(line(number % 60, f"{number} {'x' * 500}") for number in range(1000)))
    assert path.stat().st_size > 4 * BLOCK_BYTES
    found = (await read(path, tail_lines=400)).splitlines()
    assert [int(each.split()[0]) for each in found] == list(range(600, 1000))


async def test_no_more_bytes_come_than_asked_for(log: Path) -> None:
    assert await read(log, limit_bytes=6) == "zero\no"


async def test_nothing_but_plain_files_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(line(1, "secret"))
    (tmp_path / "0.log").symlink_to(secret)
    os.mkfifo(tmp_path / "1.log")
    for name in ("0.log", "1.log", "2.log"):
        assert await read(tmp_path / name) == ""


async def test_a_reader_that_follows_sees_rotation_and_the_end(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(line(0, "first"))
    running = [True]
    pieces = read_log(str(path), PodLogOptions(follow=True), lambda: running[0])
    seen = [await anext(pieces)]
    with path.open("a") as file:
        file.write(line(1, "second"))
    seen.append(await anext(pieces))
    with path.open("a") as file:
        file.write(line(2, "before the rotation"))
    path.rename(tmp_path / "0.log.20260301-120002")
    path.write_text(line(3, "after it"))
    running[0] = False
    async with asyncio.timeout(10):
        seen += [piece async for piece in pieces]
    assert b"".join(seen).decode() == "first\nsecond\nbefore the rotation\nafter it\n"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "-2"}, "tailLines"),
        ({"tailLines": "x"}, "must be greater than or equal to 0"),
        ({"limitBytes": "0"}, "must be greater than 0"),
        ({"sinceSeconds": "1", "sinceTime": "2026-03-01T12:00:00Z"}, "at most one of"),
        ({"sinceTime": "yesterday"}, "sinceTime"),
        ({"follow": "maybe"}, "expected true or false"),
        ({"colour": "red"}, "colour: expected one of"),
    ],
)
def test_a_query_that_makes_no_sense_is_named(query: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidLogOptions, match=message):
        parse_log_options(query, NOW)


def test_kubectls_own_query_is_understood() -> None:
    query = {
        "follow": "true",
        "sinceSeconds": "60",
        "tailLines": "-1",
        "timestamps": "true",
        "container": "c",
    }
    assert parse_log_options(query, NOW) == PodLogOptions(
        container="c", follow=True, timestamps=True, since="2026-03-01T11:59:00Z"
    )


def record(path: Path, attempt: int, state: str = "running") -> ContainerRecord:
    spec = ContainerSpec(
        container_id=f"c-{attempt}",
        pod_uid="u",
        pod_namespace="default",
        pod_name="web",
        container_name="main",
        attempt=attempt,
        argv=("x",),
        log_path=str(path / f"{attempt}.log"),
        cgroup="",
        pod_cgroup="",
    )
    return ContainerRecord(spec=spec, pid=1, state=state)


def test_the_latest_attempt_is_meant_and_the_one_before_it_on_request(tmp_path: Path) -> None:
    records = ContainerRecords()
    assert find_log(records, "u", "main", previous=False) is None
    records.update(record(tmp_path, 3))
    latest = find_log(records, "u", "main", previous=False)
    assert latest is not None and latest.path.endswith("/3.log") and latest.is_running()
    assert find_log(records, "u", "main", previous=True) is None
    (tmp_path / "2.log").write_text("")
    before = find_log(records, "u", "main", previous=True)
    assert before is not None and before.path.endswith("/2.log") and not before.is_running()
    records.update(record(tmp_path, 3, "exited"))
    assert not latest.is_running()


class Request:
    def __init__(self, **query: str) -> None:
        self.method, self.path, self.query = "GET", "/api/v1/namespaces/default/pods/web/log", query


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({}, "a container name must be specified for pod web, choose one of: [main side] or one of the init"),
        ({"container": "other"}, "container other is not valid for pod web"),
        ({"container": "main"}, 'container "main" in pod "web" is not available'),
        ({"container": "main", "previous": "true"}, 'previous terminated container "main" in pod "web" not'),
    ],
)
async def test_what_cannot_be_shown_is_said_in_kubelets_words(
    tmp_path: Path, query: dict[str, str], message: str
) -> None:
    store = Store(tmp_path / "nodeagent.db")
    clock = SystemClock()
    cluster = Cluster(store.resources, clock)
    cluster.begin()
    names = ("main", "side")
    spec = {
        "containers": [{"name": name, "image": "x"} for name in names],
        "initContainers": [{"name": "setup", "image": "x"}],
    }
    cluster.create(POD, "default", {"metadata": {"name": "web"}, "spec": spec})
    endpoint = LogEndpoint(cluster, lambda uid, container, previous: None, clock.now)
    with pytest.raises(ApiError) as caught:
        await endpoint.answer(Request(**query))  # type: ignore[arg-type]
    assert caught.value.code == 400
    assert message in caught.value.message
    store.close()


def opened(directory: Path) -> list[str]:
    """What this process has open below a directory."""
    links = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(str(each.readlink()))
    return [link for link in links if link.startswith(str(directory))]


async def test_rotations_between_two_looks_lose_no_line_and_hold_no_file(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(line(0, "zero"))
    running = [True]
    pieces = read_log(str(path), PodLogOptions(follow=True), lambda: running[0])
    seen = [await anext(pieces)]
    for second in range(1, 7):
        with path.open("a") as file:
            file.write(line(second, f"end {second}"))
        path.rename(tmp_path / f"0.log.20260301-12000{second}")
        path.write_text(line(second, f"begin {second}"))
        if second % 2 == 0:
            while not seen[-1].endswith(f"begin {second}\n".encode()):
                seen.append(await anext(pieces))
            (tmp_path / f"0.log.20260301-12000{second - 1}").unlink()
            assert opened(tmp_path) == [str(path)]
    running[0] = False
    seen += [piece async for piece in pieces]
    expected = ["zero", *(f"{word} {second}" for second in range(1, 7) for word in ("end", "begin"))]
    assert b"".join(seen).decode().splitlines() == expected


async def test_who_stops_following_a_silent_container_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(line(0, "hello"))
    store = Store(tmp_path / "nodeagent.db")
    cluster = Cluster(store.resources, SystemClock())
    cluster.begin()
    spec = {"containers": [{"name": "main", "image": "x"}]}
    cluster.create(POD, "default", {"metadata": {"name": "web"}, "spec": spec})
    found = ContainerLog(str(path), lambda: True)
    endpoint = LogEndpoint(cluster, lambda uid, container, previous: found, SystemClock().now)
    app = create_api_app(
        cluster,
        lambda request: User("root", Role.ADMIN),
        SystemClock().now,
        {("pods", "log"): endpoint.answer},
    )
    listener = await Listener(app).start("127.0.0.1", 0, "apiPort")
    host, port = listener.addresses[0]
    for _ in range(20):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /api/v1/namespaces/default/pods/web/log?follow=true HTTP/1.1\r\nHost: n\r\n\r\n")
        await reader.readuntil(b"hello\n")
        writer.close()
    async with asyncio.timeout(10):
        while str(path) in opened(tmp_path):  # noqa: ASYNC110 - descriptors cannot wake us
            await asyncio.sleep(0.05)
    await listener.close()
    store.close()


async def test_who_takes_nothing_is_cut_off() -> None:
    ended = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await write_in_time(request, response, bytes(1 << 20), seconds=0.2)
        finally:
            ended.set()

    app = web.Application()
    app.router.add_get("/", endless)
    listener = await Listener(app).start("127.0.0.1", 0, "apiPort")
    host, port = listener.addresses[0]
    _, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET / HTTP/1.1\r\nHost: n\r\n\r\n")
    async with asyncio.timeout(10):
        await ended.wait()
    writer.close()
    await listener.close()
