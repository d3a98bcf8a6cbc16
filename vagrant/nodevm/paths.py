"""Where things are, the one error of this package, and how commands are run."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PROVISION = CHECKOUT / "vagrant" / "provision"


class VmError(Exception):
    """What went wrong with the virtual machine, and what to do about it, as a sentence."""


def cache_directory() -> Path:
    """NODEAGENT_CACHE, or nodeagent below the user's cache directory; created on first use."""
    own = os.environ.get("NODEAGENT_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(own).resolve() if own else Path(home) / "nodeagent"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextlib.contextmanager
def cache_lock() -> Iterator[None]:
    """Held while an image is built or a machine started from one: nothing is pruned meanwhile."""
    with (cache_directory() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build or start to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """Progress, on stderr: stdout belongs to what a command was asked for."""
    print(f"vm: {text}", file=sys.stderr, flush=True)


def require(*tools: str) -> None:
    """Every program in `tools` exists here; VmError names the Debian packages of those that do not."""
    packages = {
        "qemu-system-x86_64": "qemu-system-x86",
        "qemu-img": "qemu-utils",
        "mke2fs": "e2fsprogs",
        "ssh": "openssh-client",
        "ssh-keygen": "openssh-client",
    }
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        install = " ".join(dict.fromkeys(packages.get(tool, tool) for tool in missing))
        raise VmError(f"{', '.join(missing)} not found on this machine: apt-get install {install}")


def require_space(directory: Path, needed_bytes: int) -> None:
    """VmError when the file system of `directory` has less than `needed_bytes` free."""
    free = shutil.disk_usage(directory).free
    if free < needed_bytes:
        raise VmError(
            f"{free >> 20} MiB free at {directory}, {needed_bytes >> 20} MiB needed: "
            f"make room, or point NODEAGENT_CACHE at another disk"
        )


def run(command: Sequence[str | Path], **options: object) -> None:
    """Run a build step quietly; VmError with the end of its output when it fails."""
    result = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        **options,  # type: ignore[call-overload]
    )
    if result.returncode != 0:
        tail = "\n  ".join(result.stdout.strip().splitlines()[-15:])
        raise VmError(f"{Path(command[0]).name} failed with exit code {result.returncode}:\n  {tail}")
