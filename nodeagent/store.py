"""The node's memory: objects, events and decisions in one SQLite file, durable across kill -9."""

import logging
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

logger = logging.getLogger(__name__)

EVENT_LIFETIME_SECONDS = 3600
MOST_DECISIONS = 1000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    resource_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    key TEXT PRIMARY KEY,
    last_seen REAL NOT NULL,
    body BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    time REAL NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS decisions_by_pod ON decisions (namespace, name, id);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO counters VALUES ('resource_version', 0);
"""


class StoreError(Exception):
    """The store could not be read or written; the text says which file and why."""


class Store:
    """Objects by kind, namespace and name, each with a resource version that only grows.

    A file that is not a sound database is moved aside (`moved_aside` names it) and a new one begun: the
    running pods are found again through the runtime and the manifests.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.moved_aside: Path | None = None
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._database = _open(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StoreError(f"{path}: cannot open the database: {error}") from error
            self.moved_aside = _move_aside(path)
            logger.error("%s is damaged (%s): moved to %s, beginning anew", path, error, self.moved_aside)
            self._database = _open(path)

    def put(self, kind: str, namespace: str, name: str, body: bytes) -> int:
        """Create or replace an object; return its new resource version."""
        with self._transaction() as database:
            version = self._next_version()
            database.execute(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)",
                (kind, namespace, name, version, body),
            )
            return version

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object; one that is not there is no error."""
        with self._transaction() as database:
            self._next_version()
            database.execute(
                "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", (kind, namespace, name)
            )

    def objects(self, kind: str) -> list[bytes]:
        """Return all bodies of a kind, by namespace and name."""
        rows = self._database.execute(
            "SELECT body FROM objects WHERE kind = ? ORDER BY namespace, name", (kind,)
        )
        return [body for (body,) in rows]

    def put_event(self, key: str, body: bytes, now: datetime) -> None:
        """Create or replace an event."""
        with self._transaction() as database:
            database.execute("INSERT OR REPLACE INTO events VALUES (?, ?, ?)", (key, now.timestamp(), body))

    def forget_old_events(self, now: datetime) -> None:
        """Forget the events that were not seen for an hour."""
        with self._transaction() as database:
            oldest = now.timestamp() - EVENT_LIFETIME_SECONDS
            database.execute("DELETE FROM events WHERE last_seen < ?", (oldest,))

    def event(self, key: str) -> bytes | None:
        """Return the event stored under a key."""
        row = self._database.execute("SELECT body FROM events WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def events(self) -> list[bytes]:
        """Return all events, oldest first."""
        return [body for (body,) in self._database.execute("SELECT body FROM events ORDER BY last_seen")]

    def put_decision(self, number: int, kind: str, pod: tuple[str, str], now: datetime, body: bytes) -> None:
        """Create or replace a decision about a pod (namespace, name); the newest 1,000 are kept."""
        with self._transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO decisions VALUES (?, ?, ?, ?, ?, ?)",
                (number, kind, *pod, now.timestamp(), body),
            )
            database.execute(
                "DELETE FROM decisions WHERE id <= (SELECT max(id) FROM decisions) - ?", (MOST_DECISIONS,)
            )

    def decisions(
        self, before: int, limit: int, *, kind: str | None = None, pod: tuple[str, str] | None = None
    ) -> list[tuple[int, bytes]]:
        """Return decisions with numbers below `before`, newest first: all, or those of a kind or a pod."""
        namespace, name = pod or (None, None)
        rows = self._database.execute(
            "SELECT id, body FROM decisions WHERE id < :before AND kind = coalesce(:kind, kind) "
            "AND namespace = coalesce(:namespace, namespace) AND name = coalesce(:name, name) "
            "ORDER BY id DESC LIMIT :limit",
            {"before": before, "kind": kind, "namespace": namespace, "name": name, "limit": limit},
        )
        return list(rows)

    def last_decision(self) -> int:
        """Return the number of the newest decision, 0 for none."""
        (number,) = self._database.execute("SELECT coalesce(max(id), 0) FROM decisions").fetchone()
        return int(number)

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it."""
        self._database.close()

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._database, self.path)

    def _next_version(self) -> int:
        row = self._database.execute(
            "UPDATE counters SET value = value + 1 WHERE name = 'resource_version' RETURNING value"
        ).fetchone()
        return int(row[0])


class _Transaction:
    """All or nothing; SQLite's errors leave as StoreError."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._database.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise StoreError(f"{self._path}: {error}") from error
        return self._database

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            if error is None:
                self._database.execute("COMMIT")
        except sqlite3.Error as failure:
            error = failure
        if error is None:
            return
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise StoreError(f"{self._path}: {error}") from error


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    path.chmod(0o600)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        database.executescript(_SCHEMA)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _move_aside(path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    target = path.with_name(f"{path.name}.damaged-{stamp}")
    path.rename(target)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return target
