"""The conversation with logind, on a bus of its own."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from nodeagent.logind import Logind, LogindError

pytestmark = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="no dbus-daemon here")
LOGIND, PATH, MANAGER = (
    "org.freedesktop.login1",
    "/org/freedesktop/login1",
    "org.freedesktop.login1.Manager",
)
DELAY_SECONDS = 5


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A message bus that lets everybody do everything."""
    configuration = tmp_path / "bus.conf"
    configuration.write_text(
        f"<busconfig><listen>unix:path={tmp_path}/bus</listen><auth>EXTERNAL</auth><policy context='default'>"
        "<allow send_destination='*'/><allow own='*'/><allow receive_sender='*'/></policy></busconfig>"
    )
    daemon = subprocess.Popen(
        ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert daemon.stdout is not None
    yield daemon.stdout.readline().strip()
    daemon.kill()
    daemon.wait()
    daemon.stdout.close()


class FakeLogind:
    """Answers as logind and systemd do, and hands out a pipe's end as the lock."""

    def __init__(self, bus: MessageBus) -> None:
        self.bus = bus
        self.calls: list[tuple[str, list[object]]] = []
        self.lock, self._given = os.pipe()

    @classmethod
    async def on(cls, address: str) -> "FakeLogind":
        bus = await MessageBus(bus_address=address, negotiate_unix_fd=True).connect()
        fake = cls(bus)
        bus.add_message_handler(fake.answer)
        for name in (LOGIND, "org.freedesktop.systemd1"):
            await bus.request_name(name)
        return fake

    def answer(self, message: Message) -> Message | None:
        if message.message_type is not MessageType.METHOD_CALL:
            return None
        self.calls.append((message.member, list(message.body)))
        match message.member:
            case "Get":
                return Message.new_method_return(message, "v", [Variant("t", DELAY_SECONDS * 1_000_000)])
            case "Inhibit":
                return Message.new_method_return(message, "h", [0], [self._given])
            case "KillUnit":
                return Message.new_method_return(message)
        return None

    def announce(self, begins: bool) -> None:
        signal = Message.new_signal(PATH, MANAGER, "PrepareForShutdown", "b", [begins])
        self.bus.send(signal)

    def is_released(self) -> bool:
        """The other end of the pipe is closed everywhere, as logind notices it."""
        os.close(self._given)
        return os.read(self.lock, 1) == b""


async def test_a_shutdown_is_delayed_announced_and_let_go(address: str, tmp_path: Path) -> None:
    fake = await FakeLogind.on(address)
    settings = tmp_path / "logind.conf.d/90.conf"
    logind = Logind(address, settings)
    await logind.connect()
    assert await logind.longest_delay_seconds() == DELAY_SECONDS
    await logind.allow_delay(29.5)
    assert settings.read_text() == "[Login]\nInhibitDelayMaxSec=30\n"
    await logind.delay()
    assert fake.calls == [
        ("Get", [MANAGER, "InhibitDelayMaxUSec"]),
        ("KillUnit", ["systemd-logind.service", "main", 1]),
        ("Inhibit", ["shutdown", "nodeagent", "pods are ended in order", "delay"]),
    ]
    fake.announce(True)
    fake.announce(False)
    announced = logind.shutdowns()
    assert [await asyncio.wait_for(anext(announced), 5) for _ in range(2)] == [True, False]
    logind.close()
    assert await asyncio.to_thread(fake.is_released)
    fake.bus.disconnect()


async def test_no_logind_is_an_error_that_says_what_was_wanted(address: str, tmp_path: Path) -> None:
    logind = Logind(address, tmp_path / "90.conf")
    await logind.connect()
    with pytest.raises(LogindError, match="cannot delay shutdowns: The name org"):
        await logind.delay()
    logind.close()


async def test_no_bus_is_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(LogindError, match="cannot listen for shutdowns: "):
        await Logind(f"unix:path={tmp_path}/none").connect()
