"""The system calls that Python does not offer, through libc. They raise OSError, as those in os do."""

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 1 << 19
MS_STRICTATIME = 1 << 24
MNT_DETACH = 2

PTRACE_EVENT_EXEC = 4
PTRACE_EVENT_STOP = 128
# os has no name for it: wait for children of any kind, traced ones included
WAIT_ALL = 0x40000000

_PR_SET_NO_NEW_PRIVS = 38
# The same numbers on every architecture.
_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_PTRACE_CONT = 7
_PTRACE_DETACH = 17
_PTRACE_SEIZE = 0x4206
_PTRACE_O_TRACEEXEC = 1 << PTRACE_EVENT_EXEC
_PTRACE_O_EXITKILL = 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


def _check(result: int, path: str | None = None) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def unshare(flags: int) -> None:
    """Leave the namespaces in `flags` for new ones; a new PID namespace begins with the next child."""
    _check(_libc.unshare(flags))


def setns(descriptor: int, kind: int) -> None:
    """Enter the namespace behind `descriptor`; a PID namespace is entered by the children only."""
    _check(_libc.setns(descriptor, kind))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2)."""
    _check(
        _libc.mount(
            os.fsencode(source), os.fsencode(target), kind.encode(), flags, os.fsencode(options) or None
        ),
        target,
    )


def clone_mount(path: str) -> int:
    """open_tree(2): return a descriptor of a mount of what is at `path` now, attached nowhere yet."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    descriptor = int(_libc.syscall(_SYS_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags))
    _check(descriptor, path)
    return descriptor


def attach_mount(descriptor: int, target: str) -> None:
    """move_mount(2): let a mount from `clone_mount` be seen at `target`."""
    place = os.fsencode(target)
    result = _libc.syscall(
        _SYS_MOVE_MOUNT, descriptor, b"", _AT_FDCWD, place, ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH)
    )
    _check(result, target)


def unmount(target: str, flags: int) -> None:
    """umount2(2)."""
    _check(_libc.umount2(os.fsencode(target), flags), target)


def pivot_root(new_root: str, old_root: str) -> None:
    """pivot_root(2): the caller's mount namespace gets another root directory."""
    _check(_libc.pivot_root(os.fsencode(new_root), os.fsencode(old_root)), new_root)


def set_hostname(name: str) -> None:
    """sethostname(2), in the caller's UTS namespace."""
    encoded = name.encode()
    _check(_libc.sethostname(encoded, len(encoded)))


def set_no_new_privileges() -> None:
    """From here on no exec grants more than the caller has (set-uid bits, file capabilities)."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def trace_until_exec(pid: int) -> None:
    """Make a child stop behind its next exec, before its first instruction, and die if the caller dies."""
    _check(_libc.ptrace(_PTRACE_SEIZE, pid, None, _PTRACE_O_TRACEEXEC | _PTRACE_O_EXITKILL))


def trace_continue(pid: int, signum: int) -> None:
    """Let a traced child run on from a stop, with a signal (0: none)."""
    _check(_libc.ptrace(_PTRACE_CONT, pid, None, signum))


def trace_end(pid: int) -> None:
    """Let a stopped child run, untraced from now on."""
    _check(_libc.ptrace(_PTRACE_DETACH, pid, None, None))
