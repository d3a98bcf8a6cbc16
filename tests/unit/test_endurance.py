"""The agent goes on where no thread can be started any more."""

import asyncio
import threading

import pytest

from nodeagent.endurance import started_threads


async def test_work_beside_the_loop_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.get_running_loop().set_default_executor(started_threads(2))

    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", no_more)
        powers = await asyncio.gather(*(asyncio.to_thread(pow, 2, number) for number in range(5)))
    assert powers == [1, 2, 4, 8, 16]
