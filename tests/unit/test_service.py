"""What the service manager is told."""

import asyncio
import contextlib
import os
from datetime import UTC, datetime

from nodeagent.service import ServiceManager


class StoppingClock:
    """Stands still; ends the loop that sleeps on it after some naps."""

    def __init__(self, naps: int) -> None:
        self.naps = naps
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 12.5

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == self.naps:
            raise asyncio.CancelledError


def manager(sent: list[str], **environment: str) -> ServiceManager:
    return ServiceManager({"NOTIFY_SOCKET": "/run/notify", **environment}, sent.append)


def test_states_are_sent_as_systemd_spells_them() -> None:
    sent: list[str] = []
    service = manager(sent)
    service.ready("20 pods, 20 running")
    service.status("evicting")
    service.reloading(StoppingClock(1))
    service.stopping("containers run on")
    assert sent == [
        "READY=1\nSTATUS=20 pods, 20 running",
        "STATUS=evicting",
        "RELOADING=1\nMONOTONIC_USEC=12500000",
        "STOPPING=1\nSTATUS=containers run on",
    ]


def test_a_status_cannot_smuggle_in_an_assignment() -> None:
    sent: list[str] = []
    manager(sent).status("pod web\nMAINPID=1")
    assert sent == ["STATUS=pod web MAINPID=1"]


def test_without_a_manager_nothing_is_sent() -> None:
    sent: list[str] = []
    ServiceManager({}, sent.append).ready("running")
    assert sent == []


async def test_the_watchdog_is_fed_three_times_an_interval_while_alive() -> None:
    sent: list[str] = []
    clock = StoppingClock(3)
    alive = iter([True, False, True])
    service = manager(sent, WATCHDOG_USEC="30000000", WATCHDOG_PID=str(os.getpid()))
    with contextlib.suppress(asyncio.CancelledError):
        await service.keep_alive(clock, lambda: next(alive))
    assert clock.slept == [10.0, 10.0, 10.0]
    assert sent == ["WATCHDOG=1", "WATCHDOG=1"]


async def test_no_watchdog_and_another_process_s_watchdog_are_not_fed() -> None:
    for environment in ({}, {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "0"}):
        sent: list[str] = []
        await manager(sent, **environment).keep_alive(StoppingClock(1), lambda: True)
        assert sent == []
