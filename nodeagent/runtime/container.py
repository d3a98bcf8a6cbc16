"""One container in the keeper: its record, its output, its kills for memory."""

import json
import os
from collections.abc import Callable

from nodeagent.runtime.birth import Birth
from nodeagent.runtime.checks import CheckedRecord, CheckedSpec
from nodeagent.runtime.logs import LineFramer, LogFile, Timestamps
from nodeagent.runtime.oom import OomCounter
from nodeagent.runtime.protocol import EXITED, PREPARING

STREAMS = ("stdout", "stderr")
# what one stream may take of the keeper's attention in one turn
TURN_BYTES = 64 * 1024
# the most that a pipe may hold (/proc/sys/fs/pipe-max-size), and so the most that an ended process has left
_DRAIN_BYTES = 1024 * 1024

_SIGKILL = 9
# a kill longer ago than this is not what ended the container
_OOM_WINDOW_SECONDS = 10.0
_ENDED_UNWATCHED = "ended while no keeper watched; its exit code is not known"


class Output:
    """One stream, from the pipe to the log."""

    __slots__ = ("_framer", "_log", "_timestamps", "descriptor", "inode", "name")

    def __init__(self, name: str, descriptor: int, log: LogFile, timestamps: Timestamps) -> None:
        self.name = name
        self.descriptor = descriptor
        self.inode = os.fstat(descriptor).st_ino
        self._framer = LineFramer(name)
        self._log = log
        self._timestamps = timestamps

    def transfer(self) -> bool:
        """Move what is there, up to a bound; False at the end of the stream."""
        try:
            data = os.read(self.descriptor, TURN_BYTES)
        except BlockingIOError:
            return True
        now = self._timestamps.now()
        self._log.write(self._framer.feed(data, now) if data else self._framer.finish(now))
        return bool(data)

    def drain(self) -> None:
        """Move everything that an ended process left."""
        for _ in range(_DRAIN_BYTES // TURN_BYTES):
            if not self.transfer():
                return
        self._log.write(self._framer.finish(self._timestamps.now()))

    def pause(self) -> None:
        """Write the unfinished line too: a later keeper goes on with it."""
        self._log.write(self._framer.finish(self._timestamps.now(), "P"))


class Container:
    """The keeper's record of one container, in memory only as large as it must be."""

    __slots__ = (
        "boot_id",
        "cgroup",
        "complaint",
        "exit_code",
        "finished_at",
        "id",
        "log",
        "message",
        "oom",
        "oom_killed",
        "oom_seen_at",
        "outputs",
        "owner",
        "pid",
        "pidfd",
        "pod_cgroup",
        "pod_oom",
        "signal",
        "spec_json",
        "start_ticks",
        "started_at",
        "state",
        "waiting",
    )

    def __init__(self, spec: CheckedSpec, spec_json: str, log: LogFile) -> None:
        self.id = spec.container_id
        # argv and environment may be long: they are kept as the text they came in
        self.spec_json = spec_json
        self.cgroup = spec.cgroup
        self.pod_cgroup = spec.pod_cgroup
        self.log = log
        self.outputs: dict[str, Output] = {}
        self.state = PREPARING
        # until it is released: who asked for it, and who waits for its next step
        self.owner: object | None = None
        self.waiting: Callable[[Container], None] | None = None
        self.complaint = -1
        self.pid = 0
        # of a process that an earlier keeper started
        self.pidfd = -1
        self.start_ticks: int | None = None
        self.boot_id = ""
        self.started_at: str | None = None
        self.finished_at: str | None = None
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.message = ""
        self.oom: OomCounter | None = None
        self.pod_oom: OomCounter | None = None
        self.oom_seen_at: float | None = None
        self.oom_killed = False

    def born(self, birth: Birth, timestamps: Timestamps) -> None:
        """Take over a forked child."""
        self.pid = birth.pid
        self.complaint = birth.complaint
        for name, descriptor in zip(STREAMS, (birth.stdout, birth.stderr), strict=True):
            self.outputs[name] = Output(name, descriptor, self.log, timestamps)

    def restore(self, record: CheckedRecord) -> None:
        """Take over what an earlier keeper knew."""
        self.pid = record.pid
        self.state = record.state
        self.started_at = record.started_at
        self.finished_at = record.finished_at
        self.exit_code = record.exit_code
        self.signal = record.signal
        self.oom_killed = record.oom_killed
        self.message = record.message
        self.log.lost_lines = record.lost_lines
        self.start_ticks = record.start_ticks
        self.boot_id = record.boot_id

    def look_for_oom(self, monotonic_seconds: float) -> bool:
        """Note whether the kernel killed something in it since the last look; False if its leaf is gone."""
        grown = self.oom.growth() if self.oom is not None else None
        leaf_is_there = grown is not None
        if grown != 0 and self.pod_oom is not None:
            pod_grown = self.pod_oom.growth()
            # a leaf that is gone speaks through its pod
            grown = grown or pod_grown
        if grown:
            self.oom_seen_at = monotonic_seconds
        return leaf_is_there

    def ended(self, wait_status: int | None, now: str, monotonic_seconds: float) -> None:
        """Take note of the end: `wait_status` as waitpid gives it, None if nobody could wait."""
        self.look_for_oom(monotonic_seconds)
        for output in self.outputs.values():
            output.drain()
        self.state = EXITED
        self.finished_at = now
        code = None if wait_status is None else os.waitstatus_to_exitcode(wait_status)
        if code is None:
            self.message = _ENDED_UNWATCHED
        elif code < 0:
            self.signal, self.exit_code = -code, 128 - code
        else:
            self.exit_code = code
        recently = self.oom_seen_at is not None and monotonic_seconds - self.oom_seen_at < _OOM_WINDOW_SECONDS
        # a shell reports its killed child in the same way
        self.oom_killed = recently and self.exit_code in (128 + _SIGKILL, None)

    def record(self) -> str:
        """Return the record as JSON: what clients are told and what a restarted keeper needs."""
        rest = {
            "pid": self.pid,
            "state": self.state,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "oom_killed": self.oom_killed,
            "message": self.message,
            "lost_lines": self.log.lost_lines,
            "start_ticks": self.start_ticks,
            "boot_id": self.boot_id,
            "pipes": {name: output.inode for name, output in self.outputs.items()},
        }
        return f'{{"spec":{self.spec_json},{json.dumps(rest)[1:]}'
