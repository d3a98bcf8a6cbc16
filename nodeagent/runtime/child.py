"""What a container's process does between fork and exec: namespaces, mounts, limits, user, program.

Nothing here is charged to the container: its process enters its leaf only behind the exec (see `birth`).
"""

import contextlib
import os
import resource
import signal

from nodeagent.runtime import linux, mounts
from nodeagent.runtime.checks import CheckedSpec

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# soft and hard, as systemd has it: more than 1024 breaks programs that use select(2); others raise it
OPEN_FILES = (1024, 524_288)
START_ERROR_EXIT_CODE = 128

_GATE = 3
_COMPLAINT = 4
_MAX_MESSAGE_BYTES = 4096


class CannotStart(Exception):
    """Why a container's program could not be run, in the words runc uses."""


def run(spec: CheckedSpec, stdio: tuple[int, int, int], gate: int, complaint: int) -> None:
    """Become the container's program, once a byte comes through `gate`. Never returns.

    `stdio` become its descriptors 0 to 2; no other is left open. What goes wrong is written to `complaint`,
    which closes by itself when the program runs.
    """
    try:
        _arrange_descriptors(stdio, gate, complaint)
        _reset_signals()
        _prepare(spec)
        program, environment = _find_program(spec)
        if os.read(_GATE, 1):
            _exec(program, spec.argv, environment)
    except CannotStart as error:
        _complain(str(error))
    except (OSError, ValueError) as error:
        _complain(f"preparing the container: {error}")
    finally:
        os._exit(START_ERROR_EXIT_CODE)


def _complain(message: str) -> None:
    os.write(_COMPLAINT, message.encode(errors="replace")[:_MAX_MESSAGE_BYTES])


def _arrange_descriptors(stdio: tuple[int, int, int], gate: int, complaint: int) -> None:
    # out of the way first, so that no source is overwritten before it is copied
    sources = [_above(descriptor, _COMPLAINT) for descriptor in (*stdio, gate, complaint)]
    for target, source in enumerate(sources):
        os.dup2(source, target, inheritable=target < _GATE)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > _COMPLAINT:
            # the listing's own descriptor is gone by now
            with contextlib.suppress(OSError):
                os.close(int(name))


def _above(descriptor: int, floor: int) -> int:
    while descriptor <= floor:
        descriptor = os.dup(descriptor)
    return descriptor


def _reset_signals() -> None:
    # exec resets handlers by itself, but hands on what is ignored, and the mask
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _prepare(spec: CheckedSpec) -> None:
    os.setsid()
    _write("/proc/self/oom_score_adj", str(spec.oom_score_adj))
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUTS | (0 if spec.host_ipc else linux.CLONE_NEWIPC))
    linux.set_hostname(spec.hostname)
    try:
        mounts.arrange(spec.root_directory, spec.mounts, own_proc=not spec.host_pid)
    except mounts.NoMountPoint as error:
        raise CannotStart(str(error)) from None
    _limit(resource.RLIMIT_NOFILE, *OPEN_FILES)
    _limit(resource.RLIMIT_CORE, 0, resource.RLIM_INFINITY)
    os.umask(0o022)
    for descriptor in (1, 2):
        # a program that opens /dev/stdout opens the pipe anew, as its user
        os.fchown(descriptor, spec.user_id, spec.group_id)
    os.setgroups(spec.supplementary_group_ids)
    os.setresgid(spec.group_id, spec.group_id, spec.group_id)
    os.setresuid(spec.user_id, spec.user_id, spec.user_id)
    if spec.no_new_privileges:
        linux.set_no_new_privileges()
    try:
        os.chdir(spec.working_dir)
    except OSError as error:
        raise CannotStart(f'chdir to cwd ("{spec.working_dir}") failed: {_reason(error)}') from None


def _limit(kind: int, soft: int, hard: int) -> None:
    """Set a limit, as far as the keeper's own goes: to raise that takes CAP_SYS_RESOURCE."""
    own = resource.getrlimit(kind)[1]
    most = (
        hard if own == resource.RLIM_INFINITY else own if hard == resource.RLIM_INFINITY else min(own, hard)
    )
    resource.setrlimit(kind, (soft, most))


def _find_program(spec: CheckedSpec) -> tuple[str, dict[str, str]]:
    """Look the program up as the container's user, in the container's root."""
    environment = {"PATH": DEFAULT_PATH, "HOSTNAME": spec.hostname, **spec.env}
    name = spec.argv[0]
    if "/" in name:
        _check_program(name)
        return name, environment
    for directory in environment["PATH"].split(":"):
        path = f"{directory or '.'}/{name}"
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path, environment
    raise CannotStart(f'exec: "{name}": executable file not found in $PATH')


def _check_program(path: str) -> None:
    try:
        os.stat(path)
    except OSError as error:
        raise CannotStart(f'exec: "{path}": stat {path}: {_reason(error)}') from None
    if os.path.isdir(path):
        raise CannotStart(f'exec: "{path}": is a directory')
    if not os.access(path, os.X_OK):
        raise CannotStart(f'exec: "{path}": permission denied')


def _exec(program: str, argv: list[str], environment: dict[str, str]) -> None:
    try:
        os.execve(program, argv, environment)
    except OSError as error:
        raise CannotStart(f"exec {program}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    text = error.strerror or str(error)
    return text[0].lower() + text[1:]


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
