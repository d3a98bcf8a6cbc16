"""The keeper: the one process that starts the node's containers, reads their output and knows how they ended.

It outlives the agent, which finds everything again over the socket. It never waits: not for a client, a
container or a full disk. It stays small: no module of this package that it uses imports anything heavy.
`python -m nodeagent.runtime.keeper OPTIONS`.

SIGTERM ends it and leaves the containers running: the next keeper knows them, but not the exit codes to come.
SIGHUP, for an upgrade, makes it execute itself anew, and loses nothing.
"""

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable

from nodeagent.runtime.clients import Listener
from nodeagent.runtime.containers import Containers
from nodeagent.runtime.logs import Timestamps
from nodeagent.runtime.loop import Loop
from nodeagent.runtime.records import RecordFile
from nodeagent.runtime.requests import Requests
from nodeagent.runtime.service import ServiceManager, inherited_pipes, stored_names

OPTIONS = ("--socket", "--state", "--log-directory", "--cgroup-root")
_USAGE_EXIT_CODE = 2
_BELL_BYTES = 4096


def main(arguments: list[str]) -> int:
    """Run until SIGTERM, begin anew at SIGHUP; return the exit code."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if len(arguments) % 2 or sorted(options) != sorted(OPTIONS):
        _report(f"expected each of {', '.join(OPTIONS)} with a value, got {arguments}")
        return _USAGE_EXIT_CODE
    try:
        keeper = Keeper(options, inherited_pipes())
    except OSError as error:
        _report(f"cannot begin: {error}")
        return 1
    keeper.run()
    return 0


class Keeper:
    """All parts, put together."""

    def __init__(self, options: dict[str, str], pipes: dict[int, int]) -> None:
        """Go on where an earlier keeper ended, whose `pipes` are still open; OSError if that cannot be."""
        os.umask(0o022)
        state, logs, socket_path = options["--state"], options["--log-directory"], options["--socket"]
        for directory in (state, logs, os.path.dirname(socket_path)):
            os.makedirs(directory, exist_ok=True)
        _lock(state)
        self._loop = Loop()
        self._bell = Bell(self._loop)
        self._manager = ServiceManager(os.environ, _report)
        self._containers = Containers(
            loop=self._loop,
            records=RecordFile(state, _report),
            manager=self._manager,
            timestamps=Timestamps(),
            monotonic=time.monotonic,
            log_directory=logs,
            cgroup_root=options["--cgroup-root"],
            report=_report,
        )
        self._containers.adopt(pipes, stored_names(os.environ, os.getpid()))
        self._bell.on_child = self._containers.reap
        requests = Requests(self._containers)
        Listener(socket_path, self._loop, requests.answer, requests.ended)

    def run(self) -> None:
        """Serve until a signal says otherwise."""
        self._manager.notify("READY=1", f"STATUS={len(self._containers.by_id)} containers found")
        while not self._bell.stopping:
            self._loop.turn()
            if self._bell.renewing:
                self._bell.renewing = False
                self._containers.leave()
                _become_new()
        self._manager.notify("STOPPING=1")
        self._containers.leave()


def _become_new() -> None:
    """Run the keeper's program as it is now on the disk, in this same process: the children stay its own."""
    # until the new program has its handlers, another SIGHUP would kill it
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    except OSError as error:
        _report(f"{sys.executable}: {error.strerror}: going on with the old program")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


class Bell:
    """Turns signals into events of the loop."""

    def __init__(self, loop: Loop) -> None:
        self.stopping = False
        self.renewing = False
        self.on_child: Callable[[], None] = lambda: None
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(writing, False)
        # a full pipe is no loss: it rings already
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._renew)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        loop.watch(self._reading, self._rung)

    def _stop(self, _number: int, _frame: object) -> None:
        self.stopping = True

    def _renew(self, _number: int, _frame: object) -> None:
        self.renewing = True

    def _rung(self, _events: int) -> None:
        os.read(self._reading, _BELL_BYTES)
        self.on_child()


def _lock(directory: str) -> None:
    """Take the state directory for the life of this process."""
    descriptor = os.open(f"{directory}/lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(f"another keeper is at work in {directory}") from None


def _report(sentence: str) -> None:
    # where stderr is a file on a full disk there is nobody left to tell
    with contextlib.suppress(OSError):
        os.write(2, f"{sentence}\n".encode(errors="replace"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
