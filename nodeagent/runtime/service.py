"""The keeper's side of systemd: readiness, and a store for descriptors that outlives the process."""

import array
import os
import socket
from collections.abc import Mapping

# where descriptors handed over by the service manager begin
_FIRST_DESCRIPTOR = 3


class ServiceManager:
    """Talks to $NOTIFY_SOCKET by plain datagrams; without one every call does nothing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._socket: socket.socket | None = None
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            # systemd may be busy reloading; the containers' output must not wait for that
            self._socket.setblocking(False)

    def notify(self, *lines: str) -> bool:
        """Send one message; False if nobody took it."""
        return self._send("\n".join(lines), [])

    def store(self, name: str, descriptor: int) -> bool:
        """Keep a descriptor over restarts."""
        # without FDPOLL=0 a pipe whose writer ended would be dropped with its unread rest
        return self._send(f"FDSTORE=1\nFDPOLL=0\nFDNAME={name}", [descriptor])

    def unstore(self, name: str) -> bool:
        """Give up a stored descriptor."""
        return self._send(f"FDSTOREREMOVE=1\nFDNAME={name}", [])

    def _send(self, message: str, descriptors: list[int]) -> bool:
        if self._socket is None:
            return False
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        rights = array.array("i", descriptors).tobytes()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if descriptors else []
        try:
            self._socket.sendmsg([message.encode()], ancillary, 0, address)
        except OSError:
            return False
        return True


def handed_over(environment: Mapping[str, str], own_pid: int) -> dict[str, int]:
    """Return the descriptors that the service manager kept, by name, made private to this process."""
    if environment.get("LISTEN_PID") != str(own_pid):
        return {}
    count = int(environment.get("LISTEN_FDS", "0"))
    names = environment.get("LISTEN_FDNAMES", "").split(":")
    found = dict(zip(names, range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + count), strict=False))
    for descriptor in found.values():
        os.set_inheritable(descriptor, False)
    return found
