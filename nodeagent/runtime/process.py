"""The agent's side of the keeper: start, list, signal, forget and follow containers."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from nodeagent.runtime import protocol
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec

# how long a keeper may be away (it restarts in much less) and how long it may take for a reply
PATIENCE_SECONDS = 15.0
REPLY_SECONDS = 60.0

_LINE_LIMIT_BYTES = 4 * protocol.MAX_REQUEST_BYTES
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 1.0


class RuntimeFault(Exception):
    """The process runtime could not do what it was asked; the text says why."""


class KeeperUnavailable(RuntimeFault):
    """No keeper answers, so it is not known whether anything was done. Containers go on meanwhile."""


class RuntimeBusy(RuntimeFault):
    """Not now: the container is being started or ended by someone else, or too many are kept."""


class StartError(RuntimeFault):
    """A container's program could not be run; nothing of it is left. Named as kubelet names it."""

    reason = "StartError"
    exit_code = 128


_FAULTS: dict[str, type[RuntimeFault]] = {
    protocol.BUSY: RuntimeBusy,
    protocol.NOT_FOUND: StartError,
    protocol.START_ERROR: StartError,
}


class ProcessRuntime:
    """The containers of the keeper behind `socket_path`.

    Every call makes a connection of its own and waits for a keeper that is just restarting; one that stays
    away is KeeperUnavailable.
    """

    def __init__(self, socket_path: Path, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._socket_path = socket_path
        self._patience_seconds = patience_seconds

    async def start(self, spec: ContainerSpec, attach: Callable[[int], Awaitable[None]]) -> ContainerRecord:
        """Start a container and return its record; one the keeper knows already is only looked up.

        `attach` is given the PID of a process that stands before its program's first instruction, and puts it
        into its leaf. If `attach` raises, the process is ended and the exception goes on. StartError if the
        program cannot be run.
        """
        async with self._connection() as connection:
            record = await self._prepare(connection, spec)
            if record.state != protocol.CREATED:
                return record
            named = {"container_id": spec.container_id}
            attached = False
            try:
                await attach(record.pid)
                attached = True
            finally:
                if not attached:
                    with suppress(RuntimeFault):
                        await connection.ask({"do": protocol.ABORT, **named})
            return (await connection.ask({"do": protocol.RELEASE, **named})).the_record()

    async def list(self) -> list[ContainerRecord]:
        """Return every container that was started and not forgotten."""
        async with self._connection() as connection:
            return await _list(connection)

    async def signal(self, container_id: str, signum: int) -> bool:
        """Send a signal to a container's main process; False if it does not run (any more)."""
        reply = await self._ask({"do": protocol.SIGNAL, "container_id": container_id, "signum": signum})
        return reply.done

    async def forget(self, container_id: str) -> None:
        """Drop an ended container; one that is not known is no error, RuntimeBusy if it still runs."""
        (await self._ask({"do": protocol.FORGET, "container_id": container_id})).check()

    async def changes(self) -> AsyncIterator[ContainerRecord]:
        """Yield every container's record, then each again as it starts or ends, without end.

        After a break of the connection all records come again, so that no change is missed.
        """
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            try:
                async with self._connection() as connection:
                    (await connection.ask({"do": protocol.WATCH})).check()
                    for record in await _list(connection):
                        yield record
                    pause_seconds = _FIRST_PAUSE_SECONDS
                    while True:
                        yield await connection.next_change()
            except KeeperUnavailable:
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def _prepare(self, connection: "_Connection", spec: ContainerSpec) -> ContainerRecord:
        """Ask for the stopped child; while an earlier one of the same name is still being ended, again."""
        pause_seconds = _FIRST_PAUSE_SECONDS
        deadline = asyncio.get_running_loop().time() + self._patience_seconds
        while True:
            reply = await connection.ask({"do": protocol.PREPARE, "spec": spec})
            if reply.error != protocol.BUSY or asyncio.get_running_loop().time() > deadline:
                return reply.the_record()
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def _ask(self, request: dict[str, object]) -> "_Reply":
        async with self._connection() as connection:
            return await connection.ask(request)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator["_Connection"]:
        reader, writer = await self._connect()
        try:
            yield _Connection(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        pause_seconds = _FIRST_PAUSE_SECONDS
        deadline = asyncio.get_running_loop().time() + self._patience_seconds
        while True:
            try:
                return await asyncio.open_unix_connection(self._socket_path, limit=_LINE_LIMIT_BYTES)
            except OSError as error:
                if asyncio.get_running_loop().time() >= deadline:
                    raise KeeperUnavailable(
                        f"{self._socket_path}: no keeper answers ({error.strerror});"
                        " see systemctl status nodeagent-keeper"
                    ) from None
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


async def ensure_keeper(
    socket_path: Path, state_directory: Path, log_directory: Path, cgroup_root: Path
) -> None:
    """Return when a keeper answers; start one, detached from the caller, if none does.

    For hosts without systemd, and for trials: under systemd nodeagent-keeper.service is the keeper.
    """
    try:
        async with ProcessRuntime(socket_path, patience_seconds=0)._connection():
            return
    except KeeperUnavailable:
        await asyncio.to_thread(state_directory.mkdir, parents=True, exist_ok=True, mode=0o700)
    options = {
        "--socket": socket_path,
        "--state": state_directory,
        "--log-directory": log_directory,
        "--cgroup-root": cgroup_root,
    }
    arguments = [str(word) for option in options.items() for word in option]
    with (state_directory / "keeper.log").open("ab") as log:
        # setsid forks: the keeper is nobody's child, and no signal to the caller's session reaches it
        launcher = await asyncio.create_subprocess_exec(
            *("setsid", "--fork", sys.executable, "-m", "nodeagent.runtime.keeper", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    await launcher.wait()
    await ProcessRuntime(socket_path).list()


class _Reply(msgspec.Struct, frozen=True):
    """One line from the keeper."""

    record: ContainerRecord | None = None
    records: tuple[ContainerRecord, ...] = ()
    next: str | None = None
    done: bool = False
    changed: ContainerRecord | None = None
    error: str = ""
    message: str = ""

    def check(self) -> None:
        """Raise what the keeper refused."""
        if self.error:
            raise _FAULTS.get(self.error, RuntimeFault)(self.message)

    def the_record(self) -> ContainerRecord:
        self.check()
        if self.record is None:
            raise RuntimeFault("the keeper's reply lacks the record; is it of another version?")
        return self.record


_DECODER = msgspec.json.Decoder(_Reply)


class _Connection:
    """One connection: requests and replies in turn, with changes in between."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._changes: deque[ContainerRecord] = deque()

    async def ask(self, request: dict[str, object]) -> _Reply:
        line = msgspec.json.encode(request) + b"\n"
        if len(line) > protocol.MAX_REQUEST_BYTES:
            raise StartError(
                f"the container's spec takes {len(line)} bytes, more than {protocol.MAX_REQUEST_BYTES}"
            )
        try:
            self._writer.write(line)
            async with asyncio.timeout(REPLY_SECONDS):
                await self._writer.drain()
                while (reply := await self._read()).changed is not None:
                    self._changes.append(reply.changed)
        except TimeoutError:
            raise KeeperUnavailable(
                f"the keeper did not answer {request['do']} in {REPLY_SECONDS:g} s"
            ) from None
        except OSError as error:
            raise KeeperUnavailable(f"the connection to the keeper broke: {error}") from None
        return reply

    async def next_change(self) -> ContainerRecord:
        while not self._changes:
            try:
                reply = await self._read()
            except OSError as error:
                raise KeeperUnavailable(f"the connection to the keeper broke: {error}") from None
            if reply.changed is not None:
                self._changes.append(reply.changed)
        return self._changes.popleft()

    async def _read(self) -> _Reply:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("it ended")
        return _DECODER.decode(line)


async def _list(connection: _Connection) -> list[ContainerRecord]:
    records: list[ContainerRecord] = []
    after: str | None = ""
    while after is not None:
        reply = await connection.ask({"do": protocol.LIST, "after": after})
        reply.check()
        records += reply.records
        after = reply.next
    return records
