"""State files as kubelet writes them: one line of JSON with a checksum, replaced in one step."""

import os
import secrets
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


def checksum(text: str) -> int:
    """Return the 32-bit FNV-1a of Go's spelling of a checkpoint."""
    value = FNV_OFFSET
    for byte in text.encode():
        value = (value ^ byte) * FNV_PRIME & 0xFFFFFFFF
    return value


def read_file(path: Path) -> bytes | None:
    """Return the content, or None where there is no file."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE_BYTES)
    except FileNotFoundError:
        return None


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
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def go_map(entries: dict[str, str]) -> str:
    """Spell a map as Go prints it: sorted by key."""
    return "map[" + " ".join(f"{key}:{value}" for key, value in sorted(entries.items())) + "]"
