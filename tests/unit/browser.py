"""Debian's Chromium without a window, driven over its DevTools protocol."""

import asyncio
import contextlib
import itertools
import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium")
SECONDS = 30.0


class Page:
    """One page, and what it said on its console."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []

    async def open(self, url: str) -> None:
        await self.call("Log.enable")
        await self.call("Runtime.enable")
        await self.call("Page.navigate", url=url)

    async def value(self, expression: str) -> Any:
        """What an expression of the page's script comes to."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        look = f"() => {{ if ({expression}) {{ clearInterval(timer); done(true); }} }}"
        await self.value(f"new Promise((done) => {{ const timer = setInterval({look}, 20); }})")

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(SECONDS):
            while True:
                message = await self._socket.receive_json()
                if message.get("id") == number:
                    assert "error" not in message, message["error"]
                    return dict(message["result"])
                self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(message["params"]["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.complaints.append(message["params"]["entry"]["text"])


@contextlib.asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Page]:
    """A fresh Chromium with one page; it ends with the block."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--no-first-run", f"--user-data-dir={profile}", "--remote-debugging-port=0"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(SECONDS), aiohttp.ClientSession() as session:
            port = await _port(process.stderr)
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = await answer.json(content_type=None)
            address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
            async with session.ws_connect(address, max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        await process.wait()


async def _port(output: asyncio.StreamReader) -> int:
    async for line in output:
        if found := re.search(rb"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
            return int(found[1])
    raise AssertionError("Chromium ended before it listened")
