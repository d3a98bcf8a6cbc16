"""The life of the node's containers: prepared, released, ended, forgotten, and adopted after a restart."""

import contextlib
import errno
import os
import select
import signal
from collections.abc import Callable

from nodeagent.runtime import linux, processes, protocol
from nodeagent.runtime.birth import Nursery
from nodeagent.runtime.checks import CheckedSpec
from nodeagent.runtime.container import STREAMS, Container, Output
from nodeagent.runtime.logs import LogFile, LogPathError, Timestamps
from nodeagent.runtime.loop import Loop
from nodeagent.runtime.oom import OomCounter, PodCounters
from nodeagent.runtime.protocol import CREATED, EXITED, PREPARING, RUNNING
from nodeagent.runtime.records import RecordFile
from nodeagent.runtime.service import ServiceManager

MAX_CONTAINERS = 4096
_MAX_COMPLAINT_BYTES = 4096

Waiting = Callable[[Container], None]


class Refused(Exception):
    """A request that cannot be granted: `kind` is one of the protocol's, the text is for people."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Containers:
    """Starts containers and follows them to their end; `on_change` hears of each start and end."""

    def __init__(
        self,
        *,
        loop: Loop,
        records: RecordFile,
        manager: ServiceManager,
        timestamps: Timestamps,
        monotonic: Callable[[], float],
        log_directory: str,
        cgroup_root: str,
        report: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._records = records
        self._manager = manager
        self._timestamps = timestamps
        self._monotonic = monotonic
        self._log_directory = log_directory
        self._cgroup_root = cgroup_root
        self._report = report
        self._nursery = Nursery()
        self._pod_counters = PodCounters()
        self._boot_id = processes.boot_id()
        self._by_pid: dict[int, Container] = {}
        self.by_id: dict[str, Container] = {}
        self.on_change: Callable[[Container], None] = lambda container: None

    def prepare(self, spec: CheckedSpec, spec_json: str, owner: object, waiting: Waiting) -> None:
        """Begin a container; `waiting` hears when it is CREATED, or EXITED with a message if that failed."""
        if len(self.by_id) >= MAX_CONTAINERS:
            raise Refused(protocol.BUSY, f"{MAX_CONTAINERS} containers are kept already; forget ended ones")
        container = Container(spec, spec_json, self._log_of(spec))
        try:
            _open_log(container.log)
            birth = self._nursery.fork(spec)
        except (OSError, LogPathError) as error:
            container.log.close()
            raise Refused(protocol.START_ERROR, str(error)) from None
        container.born(birth, self._timestamps)
        container.start_ticks = processes.start_ticks(birth.pid)
        container.boot_id = self._boot_id
        container.owner, container.waiting = owner, waiting
        self.by_id[container.id] = self._by_pid[birth.pid] = container
        for output in container.outputs.values():
            self._watch_output(container, output)
        self._loop.watch(container.complaint, lambda _events: self._listen_to_complaint(container))

    def release(self, container_id: str, owner: object) -> Container:
        """Let a created container run: its process stands in its leaf."""
        container = self._owned(container_id, owner)
        if container.state != CREATED:
            raise Refused(protocol.BUSY, f"container {container_id} is not ready to be released")
        self._watch_memory(container)
        container.started_at = self._timestamps.now()
        container.state = RUNNING
        if not self._put(container):
            container.state, container.started_at = CREATED, None
            self._kill(container)
            self._records.forget(container.id)
            raise Refused(protocol.START_ERROR, "its record cannot be written (see the keeper's journal)")
        container.owner = None
        for name, output in container.outputs.items():
            self._manager.store(f"{container.id}.{name}", output.descriptor)
        # killed in the meantime: it will be reaped as one that ran
        with contextlib.suppress(ProcessLookupError):
            linux.trace_end(container.pid)
        self.on_change(container)
        return container

    def abort(self, container_id: str, owner: object, waiting: Waiting) -> None:
        """End a container that was not released; `waiting` hears when it is gone."""
        container = self._owned(container_id, owner)
        container.waiting = waiting
        self._kill(container)

    def disown(self, owner: object) -> None:
        """End what an owner has not released."""
        for container in self.by_id.values():
            if container.owner is owner:
                container.waiting = None
                self._kill(container)

    def signal(self, container_id: str, signum: int) -> None:
        """Send a signal to a running container's main process."""
        container = self.by_id.get(container_id)
        if container is None:
            raise Refused(protocol.NOT_FOUND, f"there is no container {container_id}")
        if container.state != RUNNING:
            raise Refused(
                protocol.NOT_RUNNING, f"container {container_id} is not running but {container.state}"
            )
        with contextlib.suppress(ProcessLookupError):
            if container.pidfd >= 0:
                signal.pidfd_send_signal(container.pidfd, signum)
            else:
                os.kill(container.pid, signum)

    def forget(self, container_id: str) -> None:
        """Drop an ended container from memory and file; one that is not there is no error."""
        container = self.by_id.get(container_id)
        if container is None:
            return
        if container.state != EXITED:
            raise Refused(
                protocol.BUSY, f"container {container_id} is {container.state}, only ended ones are forgotten"
            )
        del self.by_id[container_id]
        self._records.forget(container_id)
        self._tidy_records()

    def reap(self) -> None:
        """Collect what became of children: stops behind an exec, and ends."""
        ended: list[tuple[Container, int | None]] = []
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | linux.WAIT_ALL)
                if pid == 0:
                    break
                container = self._by_pid.get(pid)
                if os.WIFSTOPPED(status):
                    self._stopped(container, pid, status)
                elif container is not None:
                    del self._by_pid[pid]
                    if container.state == RUNNING:
                        ended.append((container, status))
                    else:
                        self._never_ran(container, status)
        self._end(ended)

    def adopt(self, pipes: dict[int, int], stored_names: list[str]) -> None:
        """Take over what an earlier keeper left: its records, its pipes by inode, and whom it started."""
        ended: list[tuple[Container, int | None]] = []
        for stored in self._records.load():
            container = Container(stored.spec, stored.spec_json, self._log_of(stored.spec))
            container.restore(stored.record)
            self.by_id[container.id] = container
            if container.state == RUNNING:
                alive = self._adopt_process(container)
                self._adopt_outputs(container, stored.record.pipes, pipes, alive)
                if not alive:
                    ended.append((container, None))
        for descriptor in pipes.values():
            os.close(descriptor)
        kept = {f"{key}.{stream}" for key, container in self.by_id.items() for stream in container.outputs}
        for name in stored_names:
            if name not in kept:
                self._manager.unstore(name)
        self._end(ended)
        self.reap()

    def leave(self) -> None:
        """End what is not released yet, and leave the rest so that the next keeper can go on."""
        for container in self.by_id.values():
            if container.state in (PREPARING, CREATED):
                self._kill(container)
            for output in container.outputs.values():
                output.pause()
                os.set_inheritable(output.descriptor, True)

    def _adopt_process(self, container: Container) -> bool:
        """Watch the process that an earlier keeper started; False if it is gone."""
        if container.boot_id != self._boot_id or container.start_ticks is None:
            return False
        if processes.is_child(container.pid):
            self._by_pid[container.pid] = container
        else:
            pidfd = processes.open_same(container.pid, container.start_ticks)
            if pidfd is None:
                return False
            container.pidfd = pidfd
            self._loop.watch(pidfd, lambda _events: self._end([(container, None)]))
        self._watch_memory(container)
        return True

    def _adopt_outputs(
        self, container: Container, inodes: dict[str, int], pipes: dict[int, int], alive: bool
    ) -> None:
        for number, name in enumerate(STREAMS, 1):
            if name not in inodes:
                continue
            descriptor = pipes.pop(inodes[name], None)
            if descriptor is None and alive:
                # nobody kept the pipe; the container still has its other end
                descriptor = processes.reopen_pipe(container.pid, number, inodes[name])
            if descriptor is not None:
                os.set_blocking(descriptor, False)
                output = Output(name, descriptor, container.log, self._timestamps)
                container.outputs[name] = output
                self._watch_output(container, output)

    def _log_of(self, spec: CheckedSpec) -> LogFile:
        return LogFile(
            self._log_directory,
            spec.log_path,
            spec.log_max_bytes,
            spec.log_max_files,
            self._timestamps,
            self._report,
        )

    def _owned(self, container_id: str, owner: object) -> Container:
        container = self.by_id.get(container_id)
        if container is None:
            raise Refused(
                protocol.NOT_FOUND, f"container {container_id} is gone: it ended before it was released"
            )
        if container.owner is not owner:
            raise Refused(protocol.BUSY, f"container {container_id} is not this client's to start")
        return container

    def _watch_output(self, container: Container, output: Output) -> None:
        def ready(_events: int) -> None:
            if not output.transfer():
                self._close_output(container, output)

        self._loop.watch(output.descriptor, ready)

    def _close_output(self, container: Container, output: Output) -> None:
        del container.outputs[output.name]
        self._loop.unwatch(output.descriptor)
        os.close(output.descriptor)
        self._manager.unstore(f"{container.id}.{output.name}")

    def _listen_to_complaint(self, container: Container) -> None:
        """Read what the child says is wrong; its end without a word is the exec."""
        data = os.read(container.complaint, _MAX_COMPLAINT_BYTES)
        container.message += data.decode(errors="replace")
        if not data:
            self._close_complaint(container)

    def _close_complaint(self, container: Container) -> None:
        if container.complaint >= 0:
            self._loop.unwatch(container.complaint)
            os.close(container.complaint)
            container.complaint = -1

    def _watch_memory(self, container: Container) -> None:
        container.pod_oom = self._pod_counters.acquire(self._memory_events(container.pod_cgroup))
        try:
            counter = OomCounter(self._memory_events(container.cgroup))
        except OSError:
            # without the leaf (it may be gone already) its pod tells
            return
        container.oom = counter

        def changed(_events: int) -> None:
            if not container.look_for_oom(self._monotonic()):
                # a removed cgroup's file is ready for ever
                self._loop.unwatch(counter.descriptor)

        # only the kernel's own files tell of changes
        with contextlib.suppress(PermissionError):
            self._loop.watch(counter.descriptor, changed, select.EPOLLPRI)

    def _memory_events(self, cgroup: str) -> str:
        return f"{self._cgroup_root}/{cgroup}/memory.events"

    def _stopped(self, container: Container | None, pid: int, status: int) -> None:
        event = status >> 16
        if event == linux.PTRACE_EVENT_EXEC and container is not None:
            self._close_complaint(container)
            container.state = CREATED
            self._answer(container)
            return
        # any other stop is a signal on its way, or a stop that tracing alone must not cause
        with contextlib.suppress(ProcessLookupError):
            linux.trace_continue(pid, 0 if event else os.WSTOPSIG(status))

    def _never_ran(self, container: Container, status: int) -> None:
        if container.complaint >= 0:
            self._listen_to_complaint(container)
        if not container.message:
            code = os.waitstatus_to_exitcode(status)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            container.message = f"its process {how} before it ran the program"
        del self.by_id[container.id]
        container.state = EXITED
        self._close(container)
        self._answer(container)

    def _end(self, ended: list[tuple[Container, int | None]]) -> None:
        """Write down how containers ended, in one go; only then tell of it."""
        if not ended:
            return
        for container, status in ended:
            container.ended(status, self._timestamps.now(), self._monotonic())
            self._close(container)
        self._put(*(container for container, _ in ended))
        self._records.sync()
        for container, _ in ended:
            self.on_change(container)

    def _close(self, container: Container) -> None:
        """Give up every descriptor of an ended container."""
        self._close_complaint(container)
        for output in list(container.outputs.values()):
            self._close_output(container, output)
        container.log.close()
        if container.pidfd >= 0:
            self._loop.unwatch(container.pidfd)
            os.close(container.pidfd)
            container.pidfd = -1
        if container.oom is not None:
            self._loop.unwatch(container.oom.descriptor)
            container.oom.close()
            container.oom = None
        if container.pod_oom is not None:
            self._pod_counters.release(self._memory_events(container.pod_cgroup))
            container.pod_oom = None

    def _answer(self, container: Container) -> None:
        waiting, container.waiting = container.waiting, None
        if waiting is not None:
            waiting(container)

    def _kill(self, container: Container) -> None:
        # it is the keeper's own child and not reaped yet, so the PID is still its own
        os.kill(container.pid, signal.SIGKILL)

    def _put(self, *containers: Container) -> bool:
        """Write down how things stand; False if the disk refuses."""
        self._records.put(*(container.record() for container in containers))
        self._tidy_records()
        return not self._records.behind

    def _tidy_records(self) -> None:
        if self._records.wants_rewrite(len(self.by_id)):
            kept = (container for container in self.by_id.values() if container.state in (RUNNING, EXITED))
            self._records.rewrite(container.record() for container in kept)


def _open_log(log: LogFile) -> None:
    """Open the log for the first time; a full disk is no reason not to start."""
    try:
        log.open()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
