"""Requests to the node's own API over its unix socket, as root."""

import argparse
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from nodeagent.cli.common import CommandError

SOCKET: Final = Path("/run/nodeagent/api.sock")
TIMEOUT_SECONDS: Final = 60.0
LARGEST_ANSWER_BYTES: Final = 64 << 20
_BLOCK_BYTES: Final = 64 * 1024


def add_socket_option(parser: argparse.ArgumentParser) -> None:
    """Add `--socket`."""
    parser.add_argument("--socket", type=Path, default=SOCKET, help="the API's socket; default: %(default)s")


class NotFound(CommandError):
    """The API has no such object."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class ApiClient:
    """One request a call; refusals are CommandErrors with the API's words."""

    def __init__(self, path: Path = SOCKET) -> None:
        self._path = path

    def call(
        self,
        method: str,
        *pieces: str,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that answers; raises NotFound, CommandError."""
        connection = _UnixConnection(self._path, TIMEOUT_SECONDS)
        try:
            response = self._send(connection, method, pieces, query or {}, body, content_type)
            data = response.read(LARGEST_ANSWER_BYTES)
        finally:
            connection.close()
        answer = _read(data)
        if response.status >= http.client.BAD_REQUEST:
            raise _error(response.status, answer, data)
        return answer

    def stream(self, *pieces: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """Yield an answer's bytes as they come; raises NotFound, CommandError."""
        connection = _UnixConnection(self._path, None)
        try:
            response = self._send(connection, "GET", pieces, query, None, "")
            if response.status >= http.client.BAD_REQUEST:
                data = response.read(LARGEST_ANSWER_BYTES)
                raise _error(response.status, _read(data), data)
            while block := response.read1(_BLOCK_BYTES):
                yield block
        finally:
            connection.close()

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        pieces: tuple[str, ...],
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        content_type: str,
    ) -> http.client.HTTPResponse:
        target = "/" + "/".join(quote(piece, safe="") for piece in pieces)
        target += f"?{urlencode(query)}" if query else ""
        headers = {"Content-Type": content_type} if body is not None else {}
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, target, body=data, headers=headers)
            return connection.getresponse()
        except PermissionError as error:
            raise CommandError(
                f"{self._path}: {error.strerror}: only root may use the API's socket"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise CommandError(
                f"no agent answers at {self._path} ({reason}): start it with 'systemctl start nodeagent'"
            ) from error


def _read(data: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _error(status: int, answer: Mapping[str, Any], data: bytes) -> CommandError:
    message = answer.get("message") or data[:200].decode("utf-8", "replace").strip() or f"status {status}"
    reason = answer.get("reason")
    text = f"Error from server ({reason}): {message}" if reason else str(message)
    return NotFound(text) if status == http.client.NOT_FOUND else CommandError(text)
