"""A process's identity over time: a PID alone may belong to another one tomorrow."""

import os
import stat


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it is not there or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # fields 3 (state) and 22 (starttime) of proc_pid_stat(5)
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_child(pid: int) -> bool:
    """Return whether a process is the caller's own child, ended or not."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def boot_id() -> str:
    """Return what distinguishes this boot of the machine from all others."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def open_same(pid: int, started_ticks: int) -> int | None:
    """Return a pidfd of the process that started then; None if it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if start_ticks(pid) == started_ticks:
        return descriptor
    os.close(descriptor)
    return None


def reopen_pipe(pid: int, descriptor: int, inode: int) -> int | None:
    """Open the reading end of a pipe that a process writes to; None if it has another file there by now."""
    path = f"/proc/{pid}/fd/{descriptor}"
    try:
        found = os.stat(path)
        if not stat.S_ISFIFO(found.st_mode) or found.st_ino != inode:
            return None
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
