"""State files as kubelet writes them: one line of JSON with a checksum, replaced in one step."""

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FNV_OFFSET = 0x811C9DC5
FNV_PRIME = 0x01000193
LARGEST_FILE_BYTES = 64 * 1024 * 1024


class StateFileError(Exception):
    """A state file cannot be used. `cause` says why, `path` which, `manager` whose it is (CPU, memory)."""

    def __init__(self, cause: str, path: Path, manager: str) -> None:
        super().__init__(
            f"could not restore state from checkpoint: {cause}, please drain this node and delete the "
            f'{manager} manager checkpoint file "{path}" before restarting Kubelet'
        )
        self.cause = cause
        self.path = path


@dataclass(frozen=True, slots=True)
class StateProblem:
    """A state file that does not suit. It stays as it is until the operator runs `command`."""

    manager: str
    """cpu, memory or device."""
    path: Path
    cause: str
    """In kubelet's words."""
    differences: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return f"nodeagent state reset {self.manager}"

    def __str__(self) -> str:
        details = "".join(f"; {difference}" for difference in self.differences)
        return (
            f"{self.path}: {self.cause}{details}. Running pods keep what they have, and nothing is "
            f"written to this file until `{self.command}` puts it aside"
        )


class StateFile:
    """One manager's file. While it has a `problem` it is not written, unless it is gone."""

    def __init__(self, path: Path, manager: str) -> None:
        self.path = path
        self.manager = manager
        self.problem: StateProblem | None = None

    @property
    def is_missing(self) -> bool:
        return not self.path.exists()

    def read(self) -> bytes | None:
        """Return the content, None where there is no file. Raises StateFileError."""
        if self.problem:
            return None
        try:
            with self.path.open("rb") as file:
                return file.read(LARGEST_FILE_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.error(f"it cannot be read: {error.strerror}") from error

    def write(self, content: Callable[[], bytes]) -> bool:
        """Replace the content; say whether that was done. Raises OSError."""
        if self.problem and not self.is_missing:
            return False
        write_atomically(self.path, content())
        self.problem = None
        return True

    def error(self, cause: str) -> StateFileError:
        return StateFileError(cause, self.path, "CPU" if self.manager == "cpu" else self.manager)

    def reject(self, cause: str, differences: tuple[str, ...] = ()) -> None:
        """Leave the file alone from now on, until the operator puts it aside."""
        self.problem = StateProblem(self.manager, self.path, cause, differences)


class NoFile(StateFile):
    """For plans: nothing is remembered."""

    def __init__(self, manager: str) -> None:
        super().__init__(Path(manager), manager)

    @property
    def is_missing(self) -> bool:
        return False

    def read(self) -> bytes | None:
        return None

    def write(self, content: Callable[[], bytes]) -> bool:
        return True


def checksum(text: str) -> int:
    """Return the 32-bit FNV-1a of Go's spelling of a checkpoint."""
    value, prime, low = FNV_OFFSET, FNV_PRIME, 0xFFFFFFFF
    for byte in text.encode():
        value = (value ^ byte) * prime & low
    return value


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the file: after a crash at any moment it holds either the old content or the new."""
    temporary = path.with_name(f".{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def go_map(entries: dict[str, str]) -> str:
    """Spell a map as Go prints it: sorted by key."""
    return "map[" + " ".join(f"{key}:{value}" for key, value in sorted(entries.items())) + "]"
