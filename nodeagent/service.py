"""What the agent tells the service manager that runs it: ready, busy with what, still alive."""

import os
from collections.abc import Callable, Mapping

from nodeagent.clock import Clock

MICROSECONDS = 1_000_000


class ServiceManager:
    """systemd's end of sd_notify(3); where no manager listens, nothing is sent and that is no error."""

    def __init__(
        self, environment: Mapping[str, str] = os.environ, send: Callable[[str], object] | None = None
    ) -> None:
        self._send = send or _send if "NOTIFY_SOCKET" in environment else None
        self.watchdog_seconds = _watchdog_seconds(environment)

    def ready(self, status: str) -> None:
        """Starting, or reloading, is over."""
        self._notify("READY=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        """One line for `systemctl status`."""
        self._notify(f"STATUS={status}")

    def reloading(self, clock: Clock) -> None:
        """A reload has begun; `ready` ends it."""
        self._notify("RELOADING=1", f"MONOTONIC_USEC={int(clock.monotonic() * MICROSECONDS)}")

    def stopping(self, status: str) -> None:
        self._notify("STOPPING=1", f"STATUS={status}")

    async def keep_alive(self, clock: Clock, is_alive: Callable[[], bool]) -> None:
        """Feed the watchdog for as long as `is_alive` says so; return at once when there is no watchdog.

        A missed meal is not made up for: systemd then kills the agent and starts it again.
        """
        while self.watchdog_seconds is not None:
            if is_alive():
                self._notify("WATCHDOG=1")
            await clock.sleep(self.watchdog_seconds / 3)

    def _notify(self, *assignments: str) -> None:
        if self._send is not None:
            # A line break in a status would begin an assignment of its own.
            self._send("\n".join(assignment.replace("\n", " ") for assignment in assignments))


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    microseconds = environment.get("WATCHDOG_USEC", "")
    # The variables are inherited: another process's watchdog is not ours to feed.
    if not microseconds.isdecimal() or environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(microseconds) / MICROSECONDS or None


def _send(state: str) -> None:
    import systemd.daemon

    systemd.daemon.notify(state)
