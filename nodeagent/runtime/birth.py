"""How a container's main process comes to be: forked into a new PID namespace, stopped behind its exec.

The keeper stays the direct parent, so the exit code is its own to collect. The child is traced from the start
and stops when exec is done and the program's first instruction is still to come. There it is moved into its
leaf, which then pays for nothing but the program; and if the keeper dies first, the kernel kills the child.
"""

import contextlib
import os
import signal

from nodeagent.runtime import child, linux
from nodeagent.runtime.checks import CheckedSpec


class Birth:
    """A forked child and the keeper's ends of its pipes."""

    __slots__ = ("complaint", "pid", "stderr", "stdout")

    def __init__(self, pid: int, stdout: int, stderr: int, complaint: int) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        # carries what went wrong, and ends without a word at a good exec
        self.complaint = complaint


class Nursery:
    """Forks containers out of a single-threaded process."""

    def __init__(self) -> None:
        self._null = os.open("/dev/null", os.O_RDWR)
        self._own_pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)

    def fork(self, spec: CheckedSpec) -> Birth:
        """Begin a container; OSError if the kernel refuses."""
        with contextlib.ExitStack() as opened:
            stdout, child_stdout = _pipe(opened)
            stderr, child_stderr = _pipe(opened)
            complaint, child_complaint = _pipe(opened)
            child_gate, gate = _pipe(opened)
            pid = self._fork(spec, (self._null, child_stdout, child_stderr), child_gate, child_complaint)
            try:
                linux.trace_until_exec(pid)
            except PermissionError:
                # The kernel says the same of a child that has already complained and gone.
                if not _has_ended(pid):
                    raise PermissionError(
                        "the kernel forbids to trace a child (kernel.yama.ptrace_scope is 3?)"
                    ) from None
            # a child that has already complained and gone is found when it is reaped
            with contextlib.suppress(BrokenPipeError):
                os.write(gate, b"\n")
            kept = (stdout, stderr, complaint)
            for descriptor in kept:
                os.set_blocking(descriptor, False)
            opened.pop_all()
        for descriptor in (child_stdout, child_stderr, child_complaint, child_gate, gate):
            os.close(descriptor)
        return Birth(pid, *kept)

    def _fork(self, spec: CheckedSpec, stdio: tuple[int, int, int], gate: int, complaint: int) -> int:
        # a signal that hit the child before it has its own handlers would ring the parent's bell
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            if not spec.host_pid:
                linux.unshare(linux.CLONE_NEWPID)
            pid = os.fork()
            if pid == 0:
                child.run(spec, stdio, gate, complaint)
            return pid
        finally:
            linux.setns(self._own_pid_namespace, linux.CLONE_NEWPID)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _pipe(opened: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        opened.callback(os.close, end)
    return ends
