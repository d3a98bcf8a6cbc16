"""Reads from the agent's read-only server."""

import http.client
import json
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from nodeagent.cli.common import CommandError

DEFAULT_SERVER: Final = "http://127.0.0.1:10255"
TIMEOUT_SECONDS: Final = 5.0
LARGEST_ANSWER_BYTES: Final = 64 << 20


class AgentUnreachable(CommandError):
    """Nobody answered at the server's address."""


class AgentClient:
    """GET requests to one server; no proxy of the environment takes part."""

    def __init__(self, server: str = DEFAULT_SERVER) -> None:
        try:
            parts = urlsplit(server if "//" in server else f"http://{server}")
            host, port = parts.hostname, parts.port or 80
            usable = parts.scheme == "http" and parts.path in ("", "/")
        except ValueError:
            host, usable = None, False
        if not host or not usable:
            raise CommandError(f"--server {server}: expected http://HOST:PORT, such as {DEFAULT_SERVER}")
        self._host, self._port = host, port
        self.server = f"http://{parts.netloc}"

    def get(self, *path: str, **query: str) -> dict[str, Any]:
        """Return the JSON object at a path given in pieces. Raises AgentUnreachable, CommandError."""
        target = "/" + "/".join(quote(piece, safe="") for piece in path)
        target += f"?{urlencode(query)}" if query else ""
        status, body = self._request(target)
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if status != http.client.OK:
            said = answer.get("message") if isinstance(answer, dict) else None
            raise CommandError(f"{self.server}{target} answered {status}: {said or _first_line(body)}")
        if not isinstance(answer, dict):
            raise CommandError(f"{self.server}{target} did not answer with a JSON object; is it a nodeagent?")
        return answer

    def _request(self, target: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", target, headers={"Accept": "application/json"})
            response = connection.getresponse()
            return response.status, response.read(LARGEST_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise AgentUnreachable(
                f"no agent answers at {self.server} ({reason}): start it with 'systemctl start nodeagent', "
                "or name another server with --server"
            ) from error
        finally:
            connection.close()


def _first_line(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace").strip().partition("\n")[0]
