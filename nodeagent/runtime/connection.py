"""One connection from the agent to the keeper, and what can go wrong with it."""

import asyncio
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from nodeagent.runtime import protocol
from nodeagent.runtime.spec import ContainerRecord

REPLY_SECONDS = 60.0

# a page of a list, with one very large record at its end
_LINE_LIMIT_BYTES = 4 * protocol.MAX_REQUEST_BYTES


class RuntimeFault(Exception):
    """The process runtime could not do what it was asked; the text says why."""


class KeeperUnavailable(RuntimeFault):
    """No keeper answers, so it is not known whether anything was done. Containers go on meanwhile."""


class RuntimeBusy(RuntimeFault):
    """Not now: the container is being started or still runs, or too many are kept."""


class StartError(RuntimeFault):
    """A container's program could not be run; nothing of it is left. Named as kubelet names it."""

    reason = "StartError"
    exit_code = 128


_FAULTS: dict[str, type[RuntimeFault]] = {
    protocol.BUSY: RuntimeBusy,
    protocol.NOT_FOUND: StartError,
    protocol.START_ERROR: StartError,
}


class Reply(msgspec.Struct, frozen=True):
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
        """Return the record that this reply must have."""
        self.check()
        if self.record is None:
            raise RuntimeFault("the keeper's reply lacks the record; is it of another version?")
        return self.record


_DECODER = msgspec.json.Decoder(Reply)


class Connection:
    """Requests and replies in turn, with changes in between. Raises KeeperUnavailable when it breaks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._changes: deque[ContainerRecord] = deque()

    @classmethod
    async def open(cls, socket_path: Path) -> Self:
        """Connect to the keeper behind a socket."""
        try:
            return cls(*await asyncio.open_unix_connection(socket_path, limit=_LINE_LIMIT_BYTES))
        except OSError as error:
            raise KeeperUnavailable(
                f"{socket_path}: no keeper answers ({error.strerror}); see systemctl status nodeagent-keeper"
            ) from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def ask(self, verb: str, **fields: object) -> Reply:
        """Send a request and return its reply, be it a refusal."""
        line = msgspec.json.encode({"do": verb, **fields}) + b"\n"
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
            raise KeeperUnavailable(f"the keeper did not answer {verb} in {REPLY_SECONDS:g} s") from None
        except OSError as error:
            raise KeeperUnavailable(f"the connection to the keeper broke: {error}") from None
        return reply

    async def list(self) -> list[ContainerRecord]:
        """Return all records, page by page."""
        records: list[ContainerRecord] = []
        after: str | None = ""
        while after is not None:
            reply = await self.ask(protocol.LIST, after=after)
            reply.check()
            records += reply.records
            after = reply.next
        return records

    async def next_change(self) -> ContainerRecord:
        """Return the next change after `watch`, as soon as there is one."""
        while not self._changes:
            try:
                reply = await self._read()
            except OSError as error:
                raise KeeperUnavailable(f"the connection to the keeper broke: {error}") from None
            if reply.changed is not None:
                self._changes.append(reply.changed)
        return self._changes.popleft()

    async def _read(self) -> Reply:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("it ended")
        return _DECODER.decode(line)
