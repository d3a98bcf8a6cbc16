"""The keeper's socket: many clients, each with one request under way, none of which the keeper waits for."""

import os
import select
import socket
import struct
from collections.abc import Callable

from nodeagent.runtime.loop import Loop
from nodeagent.runtime.protocol import MAX_REQUEST_BYTES, MAX_UNREAD_BYTES

MAX_CLIENTS = 1024
_RECEIVE_BYTES = 64 * 1024


class Client:
    """One connection. Its next request is looked at when the one before has its reply."""

    def __init__(
        self,
        connection: socket.socket,
        loop: Loop,
        on_request: Callable[["Client", bytes], None],
        on_end: Callable[["Client"], None],
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._on_request = on_request
        self._on_end = on_end
        self._received = bytearray()
        self._unsent = bytearray()
        self._answering = False
        self._serving = False
        self._open = True
        self.watching = False
        loop.watch(connection.fileno(), self._ready)

    def reply(self, message: str) -> None:
        """Answer the request under way."""
        self._answering = False
        self.tell(message)
        self._serve()

    def tell(self, message: str) -> None:
        """Send a line; a client with too many unread ones is cut off."""
        if not self._open:
            return
        self._unsent += message.encode() + b"\n"
        self._send()
        if len(self._unsent) > MAX_UNREAD_BYTES:
            self.close()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.unwatch(self._connection.fileno())
            self._connection.close()
            self._on_end(self)

    def _ready(self, events: int) -> None:
        if events & select.EPOLLOUT:
            self._send()
        if self._open and events & ~select.EPOLLOUT:
            self._receive()

    def _receive(self) -> None:
        try:
            data = self._connection.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._received += data
        if not data or len(self._received) > MAX_REQUEST_BYTES:
            self.close()
            return
        self._serve()

    def _serve(self) -> None:
        """Hand on requests until one waits for its reply; a reply at once comes back in here, and returns."""
        if self._serving:
            return
        self._serving = True
        while self._open and not self._answering and (end := self._received.find(b"\n")) >= 0:
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            self._answering = True
            self._on_request(self, line)
        self._serving = False

    def _send(self) -> None:
        try:
            sent = self._connection.send(self._unsent) if self._unsent else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        del self._unsent[:sent]
        self._loop.alter(self._connection.fileno(), select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))


class Listener:
    """Accepts clients of root and of the keeper's own user."""

    def __init__(
        self,
        path: str,
        loop: Loop,
        on_request: Callable[[Client, bytes], None],
        on_end: Callable[[Client], None],
    ) -> None:
        self._loop = loop
        self._on_request = on_request
        self._on_end = on_end
        self.clients: set[Client] = set()
        self._socket = _listen(path)
        loop.watch(self._socket.fileno(), self._accept)

    def _accept(self, _events: int) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return
        connection.setblocking(False)
        if len(self.clients) >= MAX_CLIENTS or _user_of(connection) not in (0, os.geteuid()):
            connection.close()
            return
        self.clients.add(Client(connection, self._loop, self._on_request, self._ended))

    def _ended(self, client: Client) -> None:
        self.clients.discard(client)
        self._on_end(client)


def _listen(path: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if os.path.lexists(path):
        os.unlink(path)
    mask = os.umask(0o177)
    try:
        listening.bind(path)
    finally:
        os.umask(mask)
    listening.setblocking(False)
    listening.listen(MAX_CLIENTS)
    return listening


def _user_of(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", credentials)
    return int(uid)
