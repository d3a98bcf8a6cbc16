"""Long answers, written piece by piece to clients that may not take them."""

import asyncio

from aiohttp import web

STALLED_SECONDS = 30.0


async def write_in_time(
    request: web.Request, response: web.StreamResponse, piece: bytes, seconds: float = STALLED_SECONDS
) -> None:
    """Write one piece; a client that takes nothing for so long is cut off: ConnectionResetError."""
    try:
        async with asyncio.timeout(seconds):
            await response.write(piece)
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError(f"the client took nothing for {seconds:g} s") from None
