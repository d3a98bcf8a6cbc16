"""The keeper's side of systemd: readiness, and a store for descriptors that outlives the process."""

import array
import contextlib
import os
import socket
import stat
from collections.abc import Callable, Mapping

# behind stdin, stdout and stderr
_FIRST_DESCRIPTOR = 3


class ServiceManager:
    """Talks to $NOTIFY_SOCKET by plain datagrams; without one every call does nothing."""

    def __init__(self, environment: Mapping[str, str], report: Callable[[str], None]) -> None:
        self._report = report
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._socket: socket.socket | None = None
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            # systemd may be busy reloading; the containers' output must not wait for that
            self._socket.setblocking(False)

    def notify(self, *lines: str) -> None:
        """Send one message."""
        self._send("\n".join(lines), [])

    def store(self, name: str, descriptor: int) -> None:
        """Keep a descriptor over restarts."""
        # without FDPOLL=0 a pipe whose writer ended would be dropped with its unread rest
        self._send(f"FDSTORE=1\nFDPOLL=0\nFDNAME={name}", [descriptor])

    def unstore(self, name: str) -> None:
        """Give up a stored descriptor."""
        self._send(f"FDSTOREREMOVE=1\nFDNAME={name}", [])

    def _send(self, message: str, descriptors: list[int]) -> None:
        if self._socket is None:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        rights = array.array("i", descriptors).tobytes()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if descriptors else []
        try:
            self._socket.sendmsg([message.encode()], ancillary, 0, address)
        except OSError as error:
            self._report(f"{self._address}: {error.strerror}: not told: {message!r}")


def inherited_pipes() -> dict[int, int]:
    """Return the pipes this process was born with, by inode: kept by systemd, or by an exec of itself."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        # the listing's own descriptor is gone by now
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            if descriptor >= _FIRST_DESCRIPTOR and stat.S_ISFIFO(status.st_mode):
                os.set_inheritable(descriptor, False)
                found[status.st_ino] = descriptor
    return found


def stored_names(environment: Mapping[str, str], own_pid: int) -> list[str]:
    """Return the names of what systemd's store holds for this process."""
    names = environment.get("LISTEN_FDNAMES", "") if environment.get("LISTEN_PID") == str(own_pid) else ""
    return names.split(":") if names else []
