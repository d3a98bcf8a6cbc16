"""The keeper: the one process that starts the node's containers, reads their output and knows how they ended.

It outlives the agent, which finds everything again over the socket. It never waits: not for a client, a
container or a full disk. It stays small: no module of this package that it uses imports anything heavy.
`python -m nodeagent.runtime.keeper OPTIONS`.

SIGTERM ends it and leaves the containers running: the next keeper knows them, but not the exit codes to come.
SIGHUP, for an upgrade, makes it execute itself anew, and loses nothing.
"""

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
    pipes = inherited_pipes()
    os.umask(0o022)
    for directory in (options["--state"], options["--log-directory"], os.path.dirname(options["--socket"])):
        os.makedirs(directory, exist_ok=True)
    if not _lock(options["--state"]):
        _report(f"{options['--state']}: another keeper is at work here")
        return 1
    _run(options, pipes)
    return 0


def _run(options: dict[str, str], pipes: dict[int, int]) -> None:
    loop = Loop()
    bell = _Bell(loop)
    manager = ServiceManager(os.environ)
    containers = Containers(
        loop=loop,
        records=RecordFile(options["--state"], _report),
        manager=manager,
        timestamps=Timestamps(),
        monotonic=time.monotonic,
        log_directory=options["--log-directory"],
        cgroup_root=options["--cgroup-root"],
        report=_report,
    )
    containers.adopt(pipes, stored_names(os.environ, os.getpid()))
    bell.on_child = containers.reap
    requests = Requests(containers)
    Listener(options["--socket"], loop, requests.answer, requests.ended)
    manager.notify("READY=1", f"STATUS={len(containers.by_id)} containers found")
    while not bell.stopping:
        loop.turn()
        if bell.renewing:
            bell.renewing = False
            containers.leave()
            _become_new()
    manager.notify("STOPPING=1")
    containers.leave()


def _become_new() -> None:
    """Run the keeper's program as it is now on the disk, in this same process: the children stay its own."""
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    except OSError as error:
        _report(f"{sys.executable}: {error.strerror}: going on with the old program")


class _Bell:
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
        loop.watch(self._reading, self._rung)

    def _stop(self, _number: int, _frame: object) -> None:
        self.stopping = True

    def _renew(self, _number: int, _frame: object) -> None:
        self.renewing = True

    def _rung(self, _events: int) -> None:
        os.read(self._reading, _BELL_BYTES)
        self.on_child()


def _lock(directory: str) -> bool:
    """Take the state directory for the life of this process."""
    descriptor = os.open(f"{directory}/lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _report(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
