"""Wakes when a directory changes: inotify, with a poll for what inotify cannot see."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from asyncinotify import Inotify, Mask

_CHANGES = (
    Mask.CLOSE_WRITE
    | Mask.MOVED_TO
    | Mask.MOVED_FROM
    | Mask.DELETE
    | Mask.ATTRIB
    | Mask.DELETE_SELF
    | Mask.MOVE_SELF
)
# Files often come in groups: one look at all of them is cheaper than one each.
SETTLE_SECONDS = 0.05


async def changes(directory: Path | None, poll_seconds: float, wake: asyncio.Event) -> AsyncIterator[None]:
    """Yield at once, then after every change in `directory`, when woken, and every `poll_seconds`."""
    if directory is None:
        yield
        return
    with Inotify() as inotify:
        watched: tuple[int, int] | None = None
        while True:
            watched = _watch(inotify, directory, watched)
            yield
            wake.clear()
            woken = asyncio.ensure_future(wake.wait())
            changed = asyncio.ensure_future(inotify.get())
            done, pending = await asyncio.wait(
                (woken, changed), timeout=poll_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            for task in pending:
                task.cancel()
            if changed in done:
                await _settle(inotify)


def _watch(inotify: Inotify, directory: Path, watched: tuple[int, int] | None) -> tuple[int, int] | None:
    """Watch the directory that has the name now; it may come late, or be replaced by another."""
    try:
        # One file is watched through its directory: editors replace it.
        directory = directory.parent if directory.is_file() else directory
        status = directory.stat()
        identity = (status.st_dev, status.st_ino)
        if identity != watched:
            inotify.add_watch(directory, _CHANGES)
        return identity
    except OSError:
        return None


async def _settle(inotify: Inotify) -> None:
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            while True:
                await inotify.get()
    except TimeoutError:
        return
