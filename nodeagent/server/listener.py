"""Listening: an address is bound or the reason is a sentence, and no client can hold on without asking."""

import asyncio
import errno
import logging
import os
import ssl
from typing import Self

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from nodeagent.server.rest import Handler

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
FIRST_REQUEST_SECONDS = 10.0
IDLE_SECONDS = 60.0
CLOSE_SECONDS = 2.0
_LINE_BYTES = 8 * 1024


class ListenError(Exception):
    """An address cannot be listened on; the text names it, the setting and what to do."""


class Listener:
    """One application on one address."""

    def __init__(
        self,
        app: web.Application,
        *,
        first_request_seconds: float = FIRST_REQUEST_SECONDS,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._first_request_seconds = first_request_seconds
        self._max_connections = max_connections
        # Connections that have not asked for anything yet, with what will end them.
        self._silent: dict[RequestHandler, asyncio.TimerHandle] = {}
        app.middlewares.append(self._heard)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=IDLE_SECONDS,
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            shutdown_timeout=CLOSE_SECONDS,
            # Who follows a log or a watch and goes away must not be served on.
            handler_cancellation=True,
        )
        self._server: asyncio.Server | None = None

    async def start(self, address: str, port: int, setting: str, tls: ssl.SSLContext | None = None) -> Self:
        """Listen; raises ListenError. `setting` is the configuration field that names the port."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._connection,
                address,
                port,
                reuse_address=True,
                ssl=tls,
                ssl_handshake_timeout=self._first_request_seconds if tls is not None else None,
            )
        except OSError as error:
            await self._runner.cleanup()
            raise ListenError(_sentence(address, port, setting, error)) from error
        logger.info("listening on %s", ", ".join(f"{host}:{number}" for host, number in self.addresses))
        return self

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where it listens: host and port."""
        return [socket.getsockname()[:2] for socket in self._server.sockets] if self._server else []

    async def close(self) -> None:
        """Stop listening, and give answers under way two seconds."""
        if self._server is not None:
            self._server.close()
        for timer in self._silent.values():
            timer.cancel()
        await self._runner.cleanup()

    def _connection(self) -> RequestHandler:
        server = self._runner.server
        assert server is not None, "the runner is set up before the socket is opened"
        connection = server()
        loop = asyncio.get_running_loop()
        # The server itself counts those only whose TLS handshake is over.
        count = len({*server.connections, *self._silent})
        seconds = self._first_request_seconds if count < self._max_connections else 0
        self._silent[connection] = loop.call_later(seconds, self._give_up, connection)
        return connection

    def _give_up(self, connection: RequestHandler) -> None:
        del self._silent[connection]
        connection.force_close()

    @web.middleware
    async def _heard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        timer = self._silent.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        return await handler(request)


def _sentence(address: str, port: int, setting: str, error: OSError) -> str:
    # asyncio's own text repeats the address.
    reason = os.strerror(error.errno) if error.errno else str(error)
    place = f"cannot listen on {address}:{port} ({setting}): {reason}"
    if error.errno == errno.EADDRINUSE:
        return f"{place}; is a kubelet or another nodeagent running? Stop it, or choose another {setting}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{place}; this node has no such address"
    return place
