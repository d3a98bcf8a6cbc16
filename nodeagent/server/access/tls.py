"""The API over TLS: for whoever holds a certificate of the node's own authority."""

import asyncio
import logging
import ssl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from nodeagent.clock import Clock
from nodeagent.server.api.who import Role, User
from nodeagent.server.listener import Listener, ListenError

logger = logging.getLogger(__name__)

ADMINS, READERS = "nodeagent:admins", "nodeagent:readers"
ROLES = {ADMINS: Role.ADMIN, READERS: Role.READ_ONLY}
NAMES = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")
RENEWED_SECONDS = 12 * 3600.0
RETRY_SECONDS = 60.0
_SECONDS = 60.0


def certificate_holder(request: web.Request) -> User | None:
    """Return the user that a request's client certificate is for; only the node's own authority counts."""
    found = request.get_extra_info("peercert")
    if not found:
        return None
    subject = {key: value for part in found.get("subject", ()) for key, value in part}
    name, group = subject.get("commonName", ""), subject.get("organizationName", "")
    role = ROLES.get(group)
    return User(name, role, (group,)) if name and role is not None else None


def ensure_certificates(directory: Path, names: Sequence[str]) -> None:
    """Have certificates made where they are missing or old; takes a second or two, raises ListenError."""
    command = (sys.executable, "-m", "nodeagent.server.access.authority", str(directory), *names)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise ListenError(f"making certificates in {directory} took more than {_SECONDS:g} s") from None
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ListenError(f"certificates for the API cannot be made in {directory}: {reason}")


def server_context(directory: Path) -> ssl.SSLContext:
    """Return what the API is served with; raises ListenError. A client without a certificate gets 401."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    _load(context, directory)
    return context


def _load(context: ssl.SSLContext, directory: Path) -> None:
    try:
        context.load_cert_chain(directory / "server.crt", directory / "server.key")
        context.load_verify_locations(directory / "ca.crt")
    except (OSError, ssl.SSLError) as error:
        raise ListenError(f"the API's certificates in {directory} cannot be used: {error}") from error


class TlsServer:
    """Serves the API while it runs; certificates are renewed long before they expire."""

    def __init__(
        self, app: web.Application, directory: Path, address: str, port: int, host: str, clock: Clock
    ) -> None:
        self._app = app
        self._directory = directory
        self._address = address
        self._port = port
        own = () if address in EVERYWHERE else (address,)
        self._names = tuple(dict.fromkeys((*NAMES, host, *own)))
        self._clock = clock
        self._context: ssl.SSLContext | None = None
        self._listener: Listener | None = None

    async def run(self) -> None:
        """Go on until cancelled; what goes wrong is said, and tried again."""
        try:
            while True:
                seconds = RENEWED_SECONDS
                try:
                    await self.look()
                except ListenError as error:
                    logger.error("the API is not served with TLS: %s", error)
                    seconds = RETRY_SECONDS
                await self._clock.sleep(seconds)
        finally:
            await self.close()

    async def look(self) -> None:
        """Have certificates that are good, and serve with them; raises ListenError."""
        await asyncio.to_thread(ensure_certificates, self._directory, self._names)
        if self._context is None:
            self._context = server_context(self._directory)
        else:
            _load(self._context, self._directory)
        if self._listener is None:
            listener = Listener(self._app)
            await listener.start(self._address, self._port, "apiPort", tls=self._context)
            self._listener = listener

    async def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            await self._listener.close()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where it listens: host and port."""
        return self._listener.addresses if self._listener is not None else []
