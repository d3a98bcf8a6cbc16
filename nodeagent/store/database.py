"""The SQLite file itself: opened, moved aside when it is damaged, changed all or nothing."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    resource_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS resources (
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    expires REAL,
    body BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
);
CREATE INDEX IF NOT EXISTS resources_by_expiry ON resources (expires) WHERE expires IS NOT NULL;
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


class Transaction:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file and make what is missing in it; raises sqlite3.DatabaseError if it is not sound."""
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


def move_aside(path: Path) -> Path:
    """Rename a damaged file, so that a new one can begin; return its new name."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    target = path.with_name(f"{path.name}.damaged-{stamp}")
    path.rename(target)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return target


def current_version(database: sqlite3.Connection) -> int:
    """Return the number of the newest change."""
    (value,) = database.execute("SELECT value FROM counters WHERE name = 'resource_version'").fetchone()
    return int(value)


def set_version(database: sqlite3.Connection, version: int) -> None:
    """Remember the number of the newest change, within a transaction."""
    database.execute("UPDATE counters SET value = ? WHERE name = 'resource_version'", (version,))


def next_version(database: sqlite3.Connection) -> int:
    """Return a number that no earlier change has, within a transaction."""
    row = database.execute(
        "UPDATE counters SET value = value + 1 WHERE name = 'resource_version' RETURNING value"
    ).fetchone()
    return int(row[0])
