"""What lets the agent act where the machine has nothing left: no page to read in, no thread to start."""

import asyncio
import ctypes
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

logger = logging.getLogger(__name__)

THREADS = 4
# <sys/mman.h>
_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4


def prepare_for_scarcity() -> None:
    """Keep what this process has touched in memory, and start every thread that its loop will use."""
    error = lock_memory()
    if error:
        logger.warning(
            "the agent's memory is not locked (%s): it may wait for a disk when memory is short", error
        )
    asyncio.get_running_loop().set_default_executor(started_threads(THREADS))


def lock_memory() -> str:
    """Lock each page once it is used (mlockall(2), MCL_ONFAULT); return what prevents it, or nothing.

    It costs no memory: what was never needed is not read in.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT) != 0:
        return os.strerror(ctypes.get_errno())
    return ""


def started_threads(count: int) -> ThreadPoolExecutor:
    """Return a pool whose threads all run already: it starts none when there are no process numbers left."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="nodeagent")
    together = Barrier(count)
    for waiting in [pool.submit(together.wait) for _ in range(count)]:
        waiting.result()
    return pool
