"""Kernel files that stay open, so that reading them again is one system call."""

import os
from collections.abc import Callable

READ_BYTES = 8192


class KeptFile:
    """Opened when first read, and again when that fails (its cgroup was made anew)."""

    def __init__(self, open_file: Callable[[], int]) -> None:
        self._open = open_file
        self._fd: int | None = None

    def read(self) -> bytes:
        """Return the file's text from its beginning, or nothing if it cannot be read now."""
        if self._fd is not None:
            try:
                return os.pread(self._fd, READ_BYTES, 0)
            except OSError:
                self.close()
        try:
            self._fd = self._open()
            return os.pread(self._fd, READ_BYTES, 0)
        except OSError:
            self.close()
            return b""

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def value_of(text: bytes, key: bytes) -> int | None:
    """Return the number after `key`, which begins with the newline before its line."""
    if text.startswith(key[1:]):
        start = len(key) - 1
    elif (found := text.find(key)) >= 0:
        start = found + len(key)
    else:
        return None
    return parse_number(text[start : text.find(b"\n", start)].removesuffix(b" kB"))


def parse_number(text: bytes) -> int | None:
    """Return the number that a text consists of, or None (`max`, nothing)."""
    text = text.strip()
    return int(text) if text.isdigit() else None
