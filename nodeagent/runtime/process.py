"""The agent's side of the keeper: start, list, signal, forget and follow containers."""

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from nodeagent.runtime import protocol
from nodeagent.runtime.connection import (
    Connection,
    KeeperUnavailable,
    Reply,
    RuntimeBusy,
    RuntimeFault,
    StartError,
)
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec

__all__ = [
    "KeeperUnavailable",
    "ProcessRuntime",
    "RuntimeBusy",
    "RuntimeFault",
    "StartError",
    "ensure_keeper",
]

# how long a keeper may be away; a restart takes much less
PATIENCE_SECONDS = 15.0

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 1.0

T = TypeVar("T")


class ProcessRuntime:
    """The containers of the keeper behind `socket_path`.

    Every call makes a connection of its own and waits for a keeper that is just restarting; one that stays
    away is KeeperUnavailable.
    """

    def __init__(self, socket_path: Path, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._socket_path = socket_path
        self._patience_seconds = patience_seconds

    async def start(self, spec: ContainerSpec, attach: Callable[[int], Awaitable[None]]) -> ContainerRecord:
        """Start a container and return its record; one the keeper knows already is only looked up.

        `attach` is given the PID of a process that stands before its program's first instruction, and puts it
        into its leaf. If `attach` raises, the process is ended and the exception goes on. StartError if the
        program cannot be run; KeeperUnavailable if the keeper went away after `attach` began: start it again.
        """
        begun = False

        async def attach_once(pid: int) -> None:
            nonlocal begun
            begun = True
            await attach(pid)

        return await self._patiently(lambda one: _start(one, spec, attach_once), unless=lambda: begun)

    async def list(self) -> list[ContainerRecord]:
        """Return every container that was started and not forgotten."""
        return await self._patiently(Connection.list)

    async def signal(self, container_id: str, signum: int) -> bool:
        """Send a signal to a container's main process; False if it does not run (any more)."""
        reply = await self._ask(protocol.SIGNAL, container_id=container_id, signum=signum)
        if reply.error not in (protocol.NOT_FOUND, protocol.NOT_RUNNING):
            reply.check()
        return reply.done

    async def forget(self, container_id: str) -> None:
        """Drop an ended container; one that is not known is no error, RuntimeBusy if it still runs."""
        (await self._ask(protocol.FORGET, container_id=container_id)).check()

    async def changes(self) -> AsyncIterator[ContainerRecord]:
        """Yield every container's record, then each again as it starts or ends, without end.

        After a break of the connection all records come again, so that no change is missed.
        """
        patience = _Patience(math.inf)
        while True:
            with suppress(KeeperUnavailable):
                async with await Connection.open(self._socket_path) as connection:
                    (await connection.ask(protocol.WATCH)).check()
                    for record in await connection.list():
                        yield record
                    patience = _Patience(math.inf)
                    while True:
                        yield await connection.next_change()
            await patience.pause()

    async def _ask(self, verb: str, **fields: object) -> Reply:
        """Make a request that may just as well be made twice."""
        return await self._patiently(lambda connection: connection.ask(verb, **fields))

    async def _patiently(
        self, act: Callable[[Connection], Awaitable[T]], unless: Callable[[], bool] = lambda: False
    ) -> T:
        """Act on a connection, and while patience lasts again on another one, `unless` it is too late."""
        patience = _Patience(self._patience_seconds)
        while True:
            try:
                async with await Connection.open(self._socket_path) as connection:
                    return await act(connection)
            except (KeeperUnavailable, RuntimeBusy):
                if unless() or not await patience.pause():
                    raise


async def _start(
    connection: Connection, spec: ContainerSpec, attach: Callable[[int], Awaitable[None]]
) -> ContainerRecord:
    record = (await connection.ask(protocol.PREPARE, spec=spec)).the_record()
    if record.state != protocol.CREATED:
        return record
    attached = False
    try:
        await attach(record.pid)
        attached = True
    finally:
        if not attached:
            with suppress(RuntimeFault):
                await connection.ask(protocol.ABORT, container_id=spec.container_id)
    return (await connection.ask(protocol.RELEASE, container_id=spec.container_id)).the_record()


class _Patience:
    """Growing pauses until a time is over."""

    def __init__(self, seconds: float) -> None:
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._pause_seconds = _FIRST_PAUSE_SECONDS

    async def pause(self) -> bool:
        """Wait a little; False at once if the time is over."""
        if asyncio.get_running_loop().time() >= self._deadline:
            return False
        await asyncio.sleep(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
        return True


async def ensure_keeper(
    socket_path: Path, state_directory: Path, log_directory: Path, cgroup_root: Path
) -> None:
    """Return when a keeper answers; start one, detached from the caller, if none does.

    For hosts without systemd, and for trials: under systemd nodeagent-keeper.service is the keeper.
    """
    try:
        await ProcessRuntime(socket_path, patience_seconds=0).list()
        return
    except KeeperUnavailable:
        await asyncio.to_thread(state_directory.mkdir, parents=True, exist_ok=True, mode=0o700)
    options = {
        "--socket": socket_path,
        "--state": state_directory,
        "--log-directory": log_directory,
        "--cgroup-root": cgroup_root,
    }
    arguments = [str(word) for option in options.items() for word in option]
    with (state_directory / "keeper.log").open("ab") as log:
        # setsid forks: the keeper is nobody's child, and no signal to the caller's session reaches it
        launcher = await asyncio.create_subprocess_exec(
            *("setsid", "--fork", sys.executable, "-m", "nodeagent.runtime.keeper", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    await launcher.wait()
    await ProcessRuntime(socket_path).list()
