# ruff: noqa: ASYNC240 - small local files
"""The keeper over time: killed, restarted, renewed, badgered by clients."""

import array
import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from nodeagent.runtime import protocol
from nodeagent.runtime.process import (
    KeeperUnavailable,
    ProcessRuntime,
    RuntimeFault,
    StartError,
    ensure_keeper,
)
from nodeagent.runtime.spec import ContainerSpec
from tests.unit.keeper_process import SECONDS, KeeperProcess, nothing, until

# goes on when nobody reads, and shows it
TICKING = "trap '' PIPE; i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done 2>/dev/null"


@pytest.fixture
async def keeper(tmp_path: Path) -> AsyncIterator[KeeperProcess]:
    process = KeeperProcess(tmp_path)
    process.launch()
    yield process
    await process.clean()


class RawClient:
    """A client that need not behave."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))
        self._file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, **request: object) -> dict[str, object]:
        self.send(json.dumps(request).encode() + b"\n")
        return self.read()

    def read(self) -> dict[str, object]:
        reply: dict[str, object] = json.loads(self._file.readline())
        return reply

    def is_closed(self) -> bool:
        return self._file.readline() == b""

    def close(self) -> None:
        self._file.close()
        self.socket.close()


@pytest.fixture
async def raw(keeper: KeeperProcess) -> AsyncIterator[RawClient]:
    await keeper.runtime.list()
    client = RawClient(keeper.socket)
    yield client
    client.close()


def fields_of(spec: ContainerSpec) -> object:
    return json.loads(msgspec.json.encode(spec))


async def test_after_a_crash_containers_run_on_and_their_end_is_noticed(keeper: KeeperProcess) -> None:
    before = await keeper.start(keeper.shell("c", TICKING))
    await keeper.says("c", "3")
    keeper.restart()
    assert await keeper.runtime.list() == [before]
    # nobody kept the pipe: it was opened anew at the container's end
    seen = int(keeper.output("c")[-1])
    await until(lambda: int(keeper.output("c")[-1]) > seen + 3)
    assert await keeper.runtime.signal("c", signal.SIGKILL)
    record = await keeper.ended("c")
    assert (record.exit_code, record.signal) == (None, None)
    assert record.message == "ended while no keeper watched; its exit code is not known"


async def test_an_end_without_a_keeper_is_found_by_the_next_one(keeper: KeeperProcess) -> None:
    record = await keeper.start(keeper.spec("c", "sleep", "1000"))
    keeper.signal(signal.SIGKILL)
    keeper.wait()
    os.kill(record.pid, signal.SIGKILL)
    keeper.launch()
    assert (await keeper.ended("c")).exit_code is None


async def test_exit_codes_are_kept_over_restarts(keeper: KeeperProcess) -> None:
    await keeper.start(keeper.shell("c", "exit 7"))
    record = await keeper.ended("c")
    for signum in (signal.SIGKILL, signal.SIGTERM):
        keeper.restart(signum)
        assert await keeper.runtime.list() == [record]


async def test_another_process_with_the_same_pid_is_not_taken_for_the_container(
    keeper: KeeperProcess,
) -> None:
    await keeper.start(keeper.spec("c", "sleep", "1000"))
    keeper.signal(signal.SIGKILL)
    keeper.wait()
    path = keeper.directory / "state" / "containers.jsonl"
    entry = json.loads(path.read_text().splitlines()[-1])
    os.kill(entry["put"]["pid"], signal.SIGKILL)
    path.write_text(json.dumps({"put": {**entry["put"], "pid": os.getpid()}}) + "\n")
    keeper.launch()
    assert (await keeper.ended("c")).exit_code is None
    assert not await keeper.runtime.signal("c", signal.SIGKILL)


async def test_records_of_an_earlier_boot_are_ends(keeper: KeeperProcess) -> None:
    record = await keeper.start(keeper.spec("c", "sleep", "1000"))
    keeper.signal(signal.SIGKILL)
    keeper.wait()
    path = keeper.directory / "state" / "containers.jsonl"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    path.write_text(path.read_text().replace(boot_id, "11111111-2222-3333-4444-555555555555"))
    keeper.launch()
    assert (await keeper.ended("c")).exit_code is None
    os.kill(record.pid, signal.SIGKILL)


async def test_a_child_that_is_not_released_dies_with_the_keeper(keeper: KeeperProcess) -> None:
    pids: list[int] = []

    async def kill_keeper(pid: int) -> None:
        pids.append(pid)
        keeper.restart()

    with pytest.raises(KeeperUnavailable):
        await keeper.start(keeper.spec("c", "sleep", "1000"), kill_keeper)
    await until(lambda: not is_running(pids[0]))
    assert await keeper.runtime.list() == []


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_renewed_keeper_loses_nothing(keeper: KeeperProcess) -> None:
    await keeper.start(keeper.shell("ticks", TICKING))
    await keeper.start(
        keeper.shell("c", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.02; done")
    )
    await keeper.says("c", "up")
    await keeper.says("ticks", "3")
    for pause_seconds in (0, 0.01, 0.03, 0.1, 0.3):
        keeper.signal(signal.SIGHUP)
        await asyncio.sleep(pause_seconds)
        keeper.signal(signal.SIGHUP)
        assert {record.state for record in await keeper.runtime.list()} == {"running"}
    assert await keeper.runtime.signal("c", signal.SIGTERM)
    assert (await keeper.ended("c")).exit_code == 7
    assert keeper.output("c") == ["up", "bye"]
    await keeper.runtime.signal("ticks", signal.SIGKILL)
    assert (await keeper.ended("ticks")).exit_code == 137
    ticks = keeper.output("ticks")
    assert ticks == [str(number) for number in range(1, len(ticks) + 1)]


async def test_a_child_that_is_not_released_ends_when_the_keeper_is_renewed(keeper: KeeperProcess) -> None:
    async def renew(pid: int) -> None:
        keeper.signal(signal.SIGHUP)
        await until(lambda: not is_running(pid))

    with pytest.raises(KeeperUnavailable):
        await keeper.start(keeper.spec("c", "sleep", "1000"), renew)
    await until(lambda: keeper.children() == [])


class FakeServiceManager:
    """Keeps descriptors as systemd does, and takes notice of what it is told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.setblocking(False)
        self.messages: list[str] = []
        self.store: dict[str, int] = {}

    def receive(self) -> None:
        while True:
            try:
                data, ancillary, _flags, _address = self.socket.recvmsg(4096, 1024)
            except BlockingIOError:
                return
            message = data.decode()
            self.messages.append(message)
            fields = dict(line.split("=", 1) for line in message.splitlines())
            if fields.get("FDSTORE"):
                assert fields["FDPOLL"] == "0"
                self.store[fields["FDNAME"]] = array.array("i", ancillary[0][2])[0]
            elif fields.get("FDSTOREREMOVE"):
                os.close(self.store.pop(fields["FDNAME"]))

    def close(self) -> None:
        self.receive()
        for descriptor in self.store.values():
            os.close(descriptor)
        self.socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[FakeServiceManager]:
    fake = FakeServiceManager(tmp_path / "notify")
    yield fake
    fake.close()


async def test_a_service_manager_keeps_the_pipes_over_a_crash(
    tmp_path: Path, manager: FakeServiceManager
) -> None:
    keeper = KeeperProcess(tmp_path)
    environment = {"NOTIFY_SOCKET": str(manager.path)}
    keeper.launch(environment=environment)
    await keeper.start(keeper.shell("c", TICKING))
    await keeper.start(keeper.shell("d", "echo out; echo err >&2"))
    await keeper.ended("d")
    manager.receive()
    assert manager.messages[0].startswith("READY=1\n")
    assert set(manager.store) == {"c.stdout", "c.stderr"}
    keeper.signal(signal.SIGKILL)
    keeper.wait()
    await asyncio.sleep(0.2)
    keeper.launch(environment=environment, pass_fds=list(manager.store.values()))
    seen = len(keeper.output("c"))
    await until(lambda: len(keeper.output("c")) > seen + 20)
    ticks = keeper.output("c")
    assert ticks == [str(number) for number in range(1, len(ticks) + 1)]
    await keeper.runtime.signal("c", signal.SIGKILL)
    await keeper.ended("c")
    manager.receive()
    assert manager.store == {}
    await keeper.clean()
    manager.receive()
    assert manager.messages[-1] == "STOPPING=1"


async def test_what_was_printed_last_before_a_silent_end_is_not_lost(
    tmp_path: Path, manager: FakeServiceManager
) -> None:
    keeper = KeeperProcess(tmp_path)
    environment = {"NOTIFY_SOCKET": str(manager.path)}
    keeper.launch(environment=environment)
    os.mkfifo(tmp_path / "go")
    record = await keeper.start(keeper.shell("c", "read -r line < go; echo $line", working_dir=str(tmp_path)))
    manager.receive()
    keeper.signal(signal.SIGKILL)
    keeper.wait()
    (tmp_path / "go").write_text("last words\n")
    await until(lambda: not is_running(record.pid))
    keeper.launch(environment=environment, pass_fds=list(manager.store.values()))
    await keeper.ended("c")
    assert keeper.output("c") == ["last words"]
    await keeper.clean()


async def test_two_keepers_do_not_share_a_directory(keeper: KeeperProcess) -> None:
    await keeper.runtime.list()
    second = KeeperProcess(keeper.directory)
    second.launch()
    assert second.wait() == 1
    assert (
        f"cannot begin: another keeper is at work in {keeper.directory}/state"
        in (keeper.directory / "keeper.log").read_text()
    )
    assert await keeper.runtime.list() == []


def test_a_wrong_command_line_is_answered_with_the_right_one() -> None:
    command = [sys.executable, "-m", "nodeagent.runtime.keeper", "--socket"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "expected each of --socket, --state, --log-directory, --cgroup-root with a value" in result.stderr


def test_a_place_it_cannot_use_is_answered_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    keeper = KeeperProcess(tmp_path)
    keeper.launch()
    assert keeper.wait() == 1
    said = (tmp_path / "keeper.log").read_text()
    assert said == f"cannot begin: [Errno 17] File exists: '{tmp_path}/state'\n"


async def test_many_containers_live_in_parallel(keeper: KeeperProcess) -> None:
    names = [f"c{number}" for number in range(30)]
    await asyncio.gather(*(keeper.start(keeper.shell(name, f"exit {name[1:]}")) for name in names))
    codes = {name: (await keeper.ended(name)).exit_code for name in names}
    assert codes == {name: int(name[1:]) for name in names}
    await until(lambda: keeper.children() == [])
    # log, pipes and counters of the ended ones are closed
    assert len(list(Path(f"/proc/{keeper.pid}/fd").iterdir())) < 20


async def test_all_changes_are_told_also_those_of_a_restart(keeper: KeeperProcess) -> None:
    told: list[tuple[str, str]] = []

    async def listen() -> None:
        async for record in keeper.runtime.changes():
            told.append((record.spec.container_id, record.state))

    listener = asyncio.create_task(listen())
    first = await keeper.start(keeper.spec("a", "sleep", "1000"))
    await until(lambda: ("a", "running") in told)
    keeper.signal(signal.SIGKILL)
    keeper.wait()
    os.kill(first.pid, signal.SIGKILL)
    keeper.launch()
    await until(lambda: ("a", "exited") in told)
    await keeper.start(keeper.shell("b", "exit 0"))
    await until(lambda: ("b", "exited") in told)
    assert told.index(("b", "running")) < told.index(("b", "exited"))
    listener.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listener


async def test_a_long_list_comes_in_pages(keeper: KeeperProcess) -> None:
    ballast = {"BALLAST": "x" * 60_000}
    for number in range(12):
        await keeper.start(keeper.spec(f"c{number}", "true", env=ballast))
    records = await keeper.runtime.list()
    assert sorted(record.spec.container_id for record in records) == sorted(f"c{n}" for n in range(12))
    assert records[0].spec.env == ballast


async def test_without_a_keeper_the_sentence_says_where_to_look(tmp_path: Path) -> None:
    with pytest.raises(KeeperUnavailable, match=r"no-sock: no keeper answers \(No such file or directory\)"):
        await ProcessRuntime(tmp_path / "no-sock", patience_seconds=0.1).list()


async def test_a_keeper_is_started_where_there_is_none(tmp_path: Path) -> None:
    keeper = KeeperProcess(tmp_path)
    arguments = (keeper.socket, tmp_path / "state", keeper.logs, keeper.cgroups)
    await ensure_keeper(*arguments)
    raw = RawClient(keeper.socket)
    size = 12
    credentials = raw.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid = array.array("i", credentials)[0]
    raw.close()
    await ensure_keeper(*arguments)
    await keeper.start(keeper.shell("c", "exit 3"))
    assert (await keeper.ended("c")).exit_code == 3
    assert os.getsid(pid) != os.getsid(0)
    os.kill(pid, signal.SIGTERM)
    await until(lambda: not is_running(pid))


async def test_a_client_that_leaves_takes_its_unreleased_container_along(
    keeper: KeeperProcess, raw: RawClient
) -> None:
    reply = raw.ask(do="prepare", spec=fields_of(keeper.spec("c", "sleep", "1000")))
    assert reply["record"]["state"] == "created"  # type: ignore[index]
    other = RawClient(keeper.socket)
    assert other.ask(do="prepare", spec=fields_of(keeper.spec("c", "true")))["error"] == protocol.BUSY
    assert other.ask(do="release", container_id="c")["error"] == protocol.BUSY
    other.close()
    assert len(keeper.children()) == 1
    raw.close()
    await until(lambda: keeper.children() == [])
    assert await keeper.run(keeper.shell("c", "echo mine")) == ["mine"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"no json", "Expecting value"),
        (b"[1]", "expected a JSON object"),
        (b"[" * 50_000, ""),
        (b"\xff\xfe", ""),
        (b"{}", "do: None: expected one of prepare, release"),
        (b'{"do":["list"]}', "do: ['list']"),
        (b'{"do":"prepare"}', "spec: expected an object"),
        (b'{"do":"release"}', "container_id: expected text"),
        (
            b'{"do":"signal","container_id":"c","signum":"KILL"}',
            "signum: 'KILL': expected a number from 1 to 64",
        ),
        (b'{"do":"list","after":7}', "after: expected the id of a container"),
    ],
)
async def test_nonsense_is_answered_with_a_sentence(raw: RawClient, line: bytes, message: str) -> None:
    raw.send(line + b"\n")
    reply = raw.read()
    assert reply["error"] == protocol.BAD_REQUEST
    assert message in str(reply["message"])
    assert raw.ask(do="list") == {"records": [], "next": None}


async def test_a_request_without_end_is_cut_off(keeper: KeeperProcess, raw: RawClient) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        raw.send(b"x" * (protocol.MAX_REQUEST_BYTES + 1))
    with contextlib.suppress(ConnectionResetError):
        assert raw.is_closed()
    assert await keeper.runtime.list() == []


async def test_many_requests_in_one_go_are_answered_in_order(raw: RawClient) -> None:
    raw.send(b"".join(b'{"do":"signal","container_id":"c%d","signum":9}\n' % n for n in range(5000)))
    for number in range(5000):
        assert raw.read()["message"] == f"there is no container c{number}"


async def test_a_client_that_does_not_read_holds_up_nobody(keeper: KeeperProcess, raw: RawClient) -> None:
    await keeper.start(keeper.spec("c", "true", env={"BALLAST": "x" * 100_000}))
    await keeper.ended("c")
    # every reply has 100 kB; one by one they fill the socket and then the keeper's patience
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(200):
            raw.send(b'{"do":"list"}\n')
    assert len(await keeper.runtime.list()) == 1
    with contextlib.suppress(ConnectionResetError):
        await asyncio.to_thread(read_to_end, raw)


def read_to_end(raw: RawClient) -> None:
    while not raw.is_closed():
        pass


async def test_other_users_are_not_served(keeper: KeeperProcess) -> None:
    await keeper.runtime.list()
    assert keeper.socket.stat().st_mode & 0o777 == 0o600
    keeper.socket.chmod(0o666)
    for parent in keeper.directory.parents:
        if parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(0o755)
    keeper.directory.chmod(0o755)
    os.seteuid(65534)
    try:
        stranger = RawClient(keeper.socket)
    finally:
        os.seteuid(0)
    assert stranger.is_closed()
    stranger.close()


async def test_what_cannot_be_written_down_is_not_started(keeper: KeeperProcess) -> None:
    assert await keeper.run(keeper.shell("a", "echo before")) == ["before"]
    unlimited = resource.prlimit(keeper.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    with pytest.raises(StartError, match="its record cannot be written"):
        await keeper.start(keeper.spec("b", "sleep", "1000"))
    resource.prlimit(keeper.pid, resource.RLIMIT_FSIZE, unlimited)
    assert await keeper.run(keeper.shell("c", "echo after")) == ["after"]
    keeper.restart()
    assert [record.spec.container_id for record in await keeper.runtime.list()] == ["a", "c"]


async def test_a_signal_that_there_is_not_is_an_error(keeper: KeeperProcess) -> None:
    with pytest.raises(RuntimeFault, match="signum: 0: expected a number from 1 to 64"):
        await keeper.runtime.signal("c", 0)


async def test_an_unknown_kind_of_refusal_is_still_a_sentence(keeper: KeeperProcess) -> None:
    with pytest.raises(RuntimeFault, match=r"spec\.oom_score_adj: 5000"):
        await keeper.runtime.start(keeper.spec("c", "true", oom_score_adj=5000), nothing)


def test_the_keeper_imports_nothing_heavy() -> None:
    root = Path(__file__).parents[2]
    script = "import sys; import nodeagent.runtime.keeper; print(*sys.modules)"
    command = [sys.executable, "-S", "-c", script]
    result = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(root)}
    )
    heavy = {
        "asyncio",
        "typing",
        "dataclasses",
        "pathlib",
        "logging",
        "subprocess",
        "msgspec",
        "argparse",
        "inspect",
    }
    assert heavy.isdisjoint(result.stdout.split())
