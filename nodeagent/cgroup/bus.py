"""systemd's manager object over D-Bus: calls, and waiting for the jobs they start."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.errors import DBusFastError

from nodeagent.cgroup.errors import NoSuchUnit, UnitExists, UnitFailed
from nodeagent.cgroup.units import Properties

_SYSTEMD, _SYSTEMD_PATH = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
_MANAGER = "org.freedesktop.systemd1.Manager"
_JOB_REMOVED = f"type='signal',sender='{_SYSTEMD}',interface='{_MANAGER}',member='JobRemoved'"
_ERRORS = {f"{_SYSTEMD}.UnitExists": UnitExists, f"{_SYSTEMD}.NoSuchUnit": NoSuchUnit}


class SystemdBus:
    """One connection, made when it is first needed and again when it was lost.

    Every method raises UnitFailed, with UnitExists and NoSuchUnit for the two answers worth telling apart.
    `address` is another bus than the system's.
    """

    def __init__(self, timeout_seconds: float = 30.0, address: str | None = None) -> None:
        self._timeout_seconds = timeout_seconds
        self._address = address
        self._connection: MessageBus | None = None
        self._connecting = asyncio.Lock()
        self._waiting: defaultdict[str, list[asyncio.Future[str]]] = defaultdict(list)
        self._version = 0

    async def version(self) -> int:
        """Return systemd's major version."""
        with _answers("the manager", "tell its version"):
            async with asyncio.timeout(self._timeout_seconds):
                await self._connected()
        return self._version

    async def start_transient(self, unit: str, properties: Properties) -> None:
        """Make and start a transient unit, and wait for it."""
        no_auxiliary: list[object] = []
        body = [unit, "fail", _variants(properties), no_auxiliary]
        await self._job(unit, "start", "StartTransientUnit", "ssa(sv)a(sa(sv))", body)

    async def start(self, unit: str) -> None:
        """Start a unit that is loaded, and wait for it."""
        await self._job(unit, "start", "StartUnit", "ss", [unit, "replace"])

    async def stop(self, unit: str) -> None:
        """Stop a unit and wait for it."""
        await self._job(unit, "stop", "StopUnit", "ss", [unit, "replace"])

    async def set_properties(self, unit: str, properties: Properties) -> None:
        """Change properties until the unit is gone or the machine goes down."""
        body = [unit, True, _variants(properties)]
        await self._call(unit, "change", "SetUnitProperties", "sba(sv)", body)

    async def reset_failed(self, unit: str) -> None:
        """Let go of a unit that failed."""
        await self._call(unit, "reset", "ResetFailedUnit", "s", [unit])

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None

    async def _job(self, unit: str, action: str, member: str, signature: str, body: Sequence[object]) -> None:
        with self._ended(unit) as ended, _answers(unit, action):
            await self._call(unit, action, member, signature, body)
            async with asyncio.timeout(self._timeout_seconds):
                result = await ended
        if result != "done":
            raise UnitFailed(unit, action, f"its job ended as {result!r}")

    async def _call(
        self, unit: str, action: str, member: str, signature: str, body: Sequence[object]
    ) -> None:
        with _answers(unit, action):
            async with asyncio.timeout(self._timeout_seconds):
                await _send(await self._connected(), _MANAGER, member, signature, body)

    async def _connected(self) -> MessageBus:
        async with self._connecting:
            if self._connection is None or not self._connection.connected:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> MessageBus:
        connection = MessageBus(bus_address=self._address, bus_type=BusType.SYSTEM)
        await connection.connect()
        connection.add_message_handler(self._on_message)
        await connection.call(
            Message(
                destination="org.freedesktop.DBus",
                path="/org/freedesktop/DBus",
                interface="org.freedesktop.DBus",
                member="AddMatch",
                signature="s",
                body=[_JOB_REMOVED],
            )
        )
        await _send(connection, _MANAGER, "Subscribe", "", [])
        properties = "org.freedesktop.DBus.Properties"
        [version] = await _send(connection, properties, "Get", "ss", [_MANAGER, "Version"])
        self._version = _major(version.value)
        return connection

    @contextmanager
    def _ended(self, unit: str) -> Iterator[asyncio.Future[str]]:
        """Expect the end of a job before it is asked for: it may be over before the answer is read."""
        ended = asyncio.get_running_loop().create_future()
        self._waiting[unit].append(ended)
        try:
            yield ended
        finally:
            self._waiting[unit].remove(ended)
            if not self._waiting[unit]:
                del self._waiting[unit]

    def _on_message(self, message: Message) -> None:
        if message.message_type is MessageType.SIGNAL and message.member == "JobRemoved":
            _, _, unit, result = message.body
            for ended in self._waiting.get(unit, ()):
                if not ended.done():
                    ended.set_result(result)


class _Refused(Exception):
    """An error reply: D-Bus's name for it, and systemd's words."""


async def _send(
    connection: MessageBus, interface: str, member: str, signature: str, body: Sequence[object]
) -> list[Any]:
    message = Message(
        destination=_SYSTEMD,
        path=_SYSTEMD_PATH,
        interface=interface,
        member=member,
        signature=signature,
        body=list(body),
    )
    reply = await connection.call(message)
    if reply is None:
        raise EOFError("the connection was lost")
    if reply.message_type is MessageType.ERROR:
        raise _Refused(reply.error_name, reply.body[0] if reply.body else reply.error_name)
    return list(reply.body)


@contextmanager
def _answers(unit: str, action: str) -> Iterator[None]:
    """Turn whatever goes wrong on a bus into a UnitFailed that says what it was about."""
    try:
        yield
    except _Refused as refused:
        name, text = refused.args
        raise _ERRORS.get(name, UnitFailed)(unit, action, text) from None
    except TimeoutError as error:
        raise UnitFailed(unit, action, "no answer in time") from error
    except (OSError, EOFError, DBusFastError) as error:
        raise UnitFailed(unit, action, f"no connection to the system bus: {error}") from error


def _variants(properties: Properties) -> list[list[object]]:
    return [[name, Variant(signature, value)] for name, (signature, value) in properties.items()]


def _major(version: str) -> int:
    """Read "257.13-1~deb13u1", "v256-stable", "252" alike; 0 for what is no version."""
    match = re.match(r"v?(\d+)", version)
    return int(match[1]) if match else 0
