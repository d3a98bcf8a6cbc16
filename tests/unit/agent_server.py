"""A stand-in for the agent's read-only server: a few objects at their paths, and nothing else."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# The port "discard": on a test machine nothing listens there, and nobody is given it by chance.
NOBODY = "http://127.0.0.1:9"


@contextmanager
def serving(answers: Mapping[str, Any]) -> Iterator[str]:
    """Serve each answer at its path (text as it is, the rest as JSON); gives the server's URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path)
            missing = {
                "kind": "Status",
                "code": 404,
                "message": f"{self.path.rpartition('/')[2]!r} not found",
            }
            body = answer if isinstance(answer, str) else json.dumps(missing if answer is None else answer)
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
