"""logind's part in a shutdown: who asks for it may delay it, and is told when it begins.

A lock is a descriptor that logind gives out; the shutdown goes on when it is closed, or after logind's own
InhibitDelayMaxSec (https://systemd.io/INHIBITOR_LOCKS).
"""

import asyncio
import math
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbus_fast import BusType, Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.errors import DBusFastError

MICROSECONDS = 1_000_000
# A setting of this boot only: whoever wants another one writes it below /etc, where it counts more.
SETTINGS = Path("/run/systemd/logind.conf.d/90-nodeagent.conf")

_LOGIND, _LOGIND_PATH = "org.freedesktop.login1", "/org/freedesktop/login1"
_MANAGER = "org.freedesktop.login1.Manager"
_SYSTEMD, _SYSTEMD_PATH = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
_BUS = "org.freedesktop.DBus"
_SHUTDOWN = f"type='signal',sender='{_LOGIND}',interface='{_MANAGER}',member='PrepareForShutdown'"
_SIGHUP = 1
_TIMEOUT_SECONDS = 30.0


class LogindError(Exception):
    """logind cannot be asked; the text says what for and why not."""


class Logind:
    """One connection to logind; every method raises LogindError. `address` is of another bus, for tests."""

    def __init__(self, address: str | None = None, settings: Path = SETTINGS) -> None:
        self._bus = MessageBus(bus_address=address, bus_type=BusType.SYSTEM, negotiate_unix_fd=True)
        self._settings = settings
        self._lock: int | None = None
        self._announced: asyncio.Queue[bool] = asyncio.Queue()

    async def connect(self) -> None:
        """Connect, and listen for shutdowns from now on."""
        with _explained("listen for shutdowns"):
            await self._bus.connect()
            self._bus.add_message_handler(self._on_message)
            await self._call(_BUS, "/org/freedesktop/DBus", _BUS, "AddMatch", "s", [_SHUTDOWN])

    async def longest_delay_seconds(self) -> float:
        """Return how long logind lets a shutdown be delayed."""
        body = [_MANAGER, "InhibitDelayMaxUSec"]
        with _explained("ask for InhibitDelayMaxSec"):
            reply = await self._call(_LOGIND, _LOGIND_PATH, f"{_BUS}.Properties", "Get", "ss", body)
        return float(reply.body[0].value / MICROSECONDS)

    async def allow_delay(self, seconds: float) -> None:
        """Have logind allow a delay of so long, until the machine goes down."""
        with _explained(f"raise InhibitDelayMaxSec to {seconds:g} s"):
            self._settings.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._settings.write_text(f"[Login]\nInhibitDelayMaxSec={math.ceil(seconds)}\n")
            body = ["systemd-logind.service", "main", _SIGHUP]
            await self._call(_SYSTEMD, _SYSTEMD_PATH, f"{_SYSTEMD}.Manager", "KillUnit", "ssi", body)

    async def delay(self) -> None:
        """Hold up the next shutdown until `release`."""
        self.release()
        body = ["shutdown", "nodeagent", "pods are ended in order", "delay"]
        with _explained("delay shutdowns"):
            reply = await self._call(_LOGIND, _LOGIND_PATH, _MANAGER, "Inhibit", "ssss", body)
            self._lock = reply.unix_fds[reply.body[0]]

    def release(self) -> None:
        """Let a shutdown go on."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def shutdowns(self) -> AsyncIterator[bool]:
        """Give True when a shutdown begins, and False when one is called off."""
        while True:
            yield await self._announced.get()

    def close(self) -> None:
        """Let a shutdown go on, and disconnect."""
        self.release()
        self._bus.disconnect()

    async def _call(
        self,
        destination: str,
        path: str,
        interface: str,
        member: str,
        signature: str,
        body: Sequence[object],
    ) -> Any:
        message = Message(
            destination=destination,
            path=path,
            interface=interface,
            member=member,
            signature=signature,
            body=list(body),
        )
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            reply = await self._bus.call(message)
        if reply is None:
            raise EOFError("the connection was lost")
        if reply.message_type is MessageType.ERROR:
            raise LogindError(reply.body[0] if reply.body else reply.error_name)
        return reply

    def _on_message(self, message: Message) -> None:
        if message.message_type is MessageType.SIGNAL and message.member == "PrepareForShutdown":
            self._announced.put_nowait(bool(message.body[0]))


@contextmanager
def _explained(action: str) -> Iterator[None]:
    """Turn whatever goes wrong into a LogindError that says what it was about."""
    try:
        yield
    except (OSError, EOFError, TimeoutError, DBusFastError, LogindError) as error:
        raise LogindError(f"cannot {action}: {error or type(error).__name__}") from error
