"""Small checks that the others are made of."""

from collections.abc import Iterable, Iterator

from nodeagent.api.errors import FieldError, invalid, not_supported

Errors = Iterator[FieldError]

# More would overflow clocks; it is what the API allows for activeDeadlineSeconds.
LONGEST_SECONDS = 2**31 - 1


def each(faults: Iterable[str], path: str, value: object) -> Errors:
    """Make one error of each sentence about `value`."""
    return (invalid(path, value, fault) for fault in faults)


def one_of(value: str | None, supported: Iterable[str], path: str) -> Errors:
    """Check a closed list; what is absent or empty has been filled in by defaulting where it matters."""
    if value and value not in supported:
        yield not_supported(path, value, supported)


def no_nul(value: str, path: str) -> Errors:
    """Check a text that the kernel takes as a C string."""
    if "\0" in value:
        yield invalid(path, value, "must not contain a NUL character")


def no_backsteps(value: str, path: str) -> Errors:
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def descending_path_errors(value: str, path: str) -> Errors:
    """Check a path that must stay below where it starts."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from no_nul(value, path)
    yield from no_backsteps(value, path)
