"""Objects of the API: by resource, namespace and name, with what a watch needs to follow their changes."""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from nodeagent.store.database import Transaction, current_version, set_version

MOST_CHANGES = 1000
MOST_CHANGES_BYTES = 2 << 20

MakeBody = Callable[[int], bytes]
"""Writes an object out, given the resource version that it gets."""


class Key(NamedTuple):
    """Which object: resource with group ("pods", "deployments.apps"), namespace ("" for none), name."""

    resource: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One object as a change left it; `previous` is how it stood before."""

    version: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    key: Key
    body: bytes
    previous: bytes | None


class Compacted(Exception):
    """The changes since that version are not remembered any more: list again."""


class Resources:
    """All objects of the API, and the newest changes of them.

    The changes are kept in memory only: whoever resumes a watch after a restart has to list again.
    """

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path
        self._changes: deque[Change] = deque()
        self._changes_bytes = 0
        self._oldest = self.version
        self.listeners: list[Callable[[list[Change]], None]] = []
        """Called after every transaction that changed something."""

    @property
    def version(self) -> int:
        """The resource version of the newest change."""
        return current_version(self._database)

    def get(self, key: Key) -> bytes | None:
        """Return an object, None if there is none."""
        row = self._database.execute(
            "SELECT body FROM resources WHERE resource = ? AND namespace = ? AND name = ?", key
        ).fetchone()
        return row[0] if row else None

    def page(
        self,
        resource: str,
        namespace: str | None = None,
        after: tuple[str, str] = ("", ""),
        limit: int = -1,
    ) -> list[tuple[Key, bytes]]:
        """Return objects by namespace and name, beginning behind `after`; -1 is no limit."""
        rows = self._database.execute(
            "SELECT namespace, name, body FROM resources WHERE resource = :resource "
            "AND namespace = coalesce(:namespace, namespace) AND (namespace, name) > (:after, :after_name) "
            "ORDER BY namespace, name LIMIT :limit",
            {
                "resource": resource,
                "namespace": namespace,
                "after": after[0],
                "after_name": after[1],
                "limit": limit,
            },
        )
        return [(Key(resource, place, name), body) for place, name, body in rows]

    def newest_last(self, resource: str) -> list[bytes]:
        """Return the objects of a resource that expires, the one seen last at the end."""
        rows = self._database.execute(
            "SELECT body FROM resources WHERE resource = ? ORDER BY expires", (resource,)
        )
        return [body for (body,) in rows]

    def count(self, resource: str, namespace: str | None = None) -> int:
        """Return how many objects of a resource there are."""
        (number,) = self._database.execute(
            "SELECT count(*) FROM resources WHERE resource = :resource "
            "AND namespace = coalesce(:namespace, namespace)",
            {"resource": resource, "namespace": namespace},
        ).fetchone()
        return int(number)

    def expire(self, now_seconds: float) -> None:
        """Delete what has outlived its time."""
        rows = self._database.execute(
            "SELECT resource, namespace, name, body FROM resources WHERE expires < ?", (now_seconds,)
        ).fetchall()
        if rows:
            with self.transaction() as batch:
                for *key, body in rows:
                    batch.expire(Key(*key), body)

    @contextmanager
    def transaction(self) -> "Iterator[Batch]":
        """Make several changes, all or none; raises StoreError."""
        with Transaction(self._database, self._path):
            batch = Batch(self._database, current_version(self._database))
            yield batch
            if batch.changes:
                set_version(self._database, batch.version)
        for change in batch.changes:
            self._remember(change)
        if batch.changes:
            for listener in self.listeners:
                listener(batch.changes)

    def changes_since(self, version: int) -> list[Change]:
        """Return every change after a version, oldest first; raises Compacted."""
        if version < self._oldest:
            raise Compacted(f"too old resource version: {version} ({self._oldest})")
        newer: list[Change] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            newer.append(change)
        return newer[::-1]

    def _remember(self, change: Change) -> None:
        self._changes.append(change)
        self._changes_bytes += len(change.body)
        while len(self._changes) > MOST_CHANGES or self._changes_bytes > MOST_CHANGES_BYTES:
            forgotten = self._changes.popleft()
            self._changes_bytes -= len(forgotten.body)
            self._oldest = forgotten.version


class Batch:
    """The changes of one transaction."""

    def __init__(self, database: sqlite3.Connection, version: int) -> None:
        self.version = version
        self.changes: list[Change] = []
        self._database = database

    def put(self, key: Key, make_body: MakeBody, *, expires_seconds: float | None = None) -> bytes:
        """Create or replace an object; return it as it was stored."""
        row = self._database.execute(
            "SELECT body FROM resources WHERE resource = ? AND namespace = ? AND name = ?", key
        ).fetchone()
        previous = row[0] if row else None
        version = self._next_version()
        body = make_body(version)
        self._database.execute(
            "INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?, ?)", (*key, expires_seconds, body)
        )
        kind: Literal["ADDED", "MODIFIED"] = "ADDED" if previous is None else "MODIFIED"
        self.changes.append(Change(version, kind, key, body, previous))
        return body

    def delete(self, key: Key, make_body: MakeBody) -> None:
        """Delete an object; what is written out is its last state."""
        version = self._next_version()
        self._delete(key, make_body(version), version)

    def expire(self, key: Key, body: bytes) -> None:
        """Delete an object whose time is over."""
        self._delete(key, body, self._next_version())

    def _next_version(self) -> int:
        self.version += 1
        return self.version

    def _delete(self, key: Key, body: bytes, version: int) -> None:
        self._database.execute("DELETE FROM resources WHERE resource = ? AND namespace = ? AND name = ?", key)
        self.changes.append(Change(version, "DELETED", key, body, body))
