"""The API on a unix socket: for root on this machine, as the kernel says who is at the other end."""

import os
import socket
import struct
from pathlib import Path
from typing import Self

from aiohttp import web

from nodeagent.server.api.who import Role, User
from nodeagent.server.listener import CLOSE_SECONDS, IDLE_SECONDS, ListenError

SOCKET = Path("/run/nodeagent/api.sock")
_CREDENTIALS = struct.Struct("3i")


def peer(request: web.Request) -> User | None:
    """Return the user at the other end of a unix socket (SO_PEERCRED): root, or whoever runs the agent."""
    connection = request.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    answer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(answer)
    return User("root", Role.ADMIN) if uid in (0, os.geteuid()) else None


class UnixListener:
    """One application on one socket, which only its owner can open."""

    def __init__(self, app: web.Application, path: Path = SOCKET) -> None:
        self._path = path
        self._runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=IDLE_SECONDS,
            shutdown_timeout=CLOSE_SECONDS,
            # Who follows a log or a watch and goes away must not be served on.
            handler_cancellation=True,
        )

    async def start(self) -> Self:
        """Listen; raises ListenError. A socket that an earlier agent left is replaced."""
        await self._runner.setup()
        try:
            self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)
            await web.SockSite(self._runner, _bound(self._path)).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ListenError(f"cannot listen on {self._path}: {error.strerror}") from error
        return self

    async def close(self) -> None:
        """Stop listening, and give answers under way two seconds."""
        await self._runner.cleanup()
        self._path.unlink(missing_ok=True)


def _bound(path: Path) -> socket.socket:
    endpoint = socket.socket(socket.AF_UNIX)
    try:
        # Before it has a name, so that there is no moment at which others could open it.
        os.fchmod(endpoint.fileno(), 0o600)
        endpoint.bind(str(path))
    except OSError:
        endpoint.close()
        raise
    return endpoint
