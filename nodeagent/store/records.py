"""What the agent remembers: its own records, the objects of the API, events, decisions."""

import logging
import sqlite3
from datetime import datetime
from pathlib import Path

from nodeagent.store.database import StoreError, Transaction, move_aside, next_version, open_database
from nodeagent.store.resources import Key, MakeBody, Resources

logger = logging.getLogger(__name__)

EVENT_LIFETIME_SECONDS = 3600
MOST_DECISIONS = 1000

EVENTS = "events"


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
            self._database = open_database(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StoreError(f"{path}: cannot open the database: {error}") from error
            self.moved_aside = move_aside(path)
            logger.error("%s is damaged (%s): moved to %s, beginning anew", path, error, self.moved_aside)
            self._database = open_database(path)
        self.resources = Resources(self._database, path)

    def put(self, kind: str, namespace: str, name: str, body: bytes) -> int:
        """Create or replace an object; return its new resource version."""
        with self._transaction() as database:
            version = next_version(database)
            database.execute(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)",
                (kind, namespace, name, version, body),
            )
            return version

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object; one that is not there is no error."""
        with self._transaction() as database:
            next_version(database)
            database.execute(
                "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", (kind, namespace, name)
            )

    def objects(self, kind: str) -> list[bytes]:
        """Return all bodies of a kind, by namespace and name."""
        rows = self._database.execute(
            "SELECT body FROM objects WHERE kind = ? ORDER BY namespace, name", (kind,)
        )
        return [body for (body,) in rows]

    def put_event(self, namespace: str, name: str, make_body: MakeBody, now: datetime) -> None:
        """Create or replace an event, which is kept for an hour."""
        expires = now.timestamp() + EVENT_LIFETIME_SECONDS
        with self.resources.transaction() as batch:
            batch.put(Key(EVENTS, namespace, name), make_body, expires_seconds=expires)

    def forget_old_events(self, now: datetime) -> None:
        """Forget the events that were not seen for an hour."""
        self.resources.expire(now.timestamp())

    def event(self, namespace: str, name: str) -> bytes | None:
        """Return an event, None if there is none of that name."""
        return self.resources.get(Key(EVENTS, namespace, name))

    def events(self) -> list[bytes]:
        """Return all events, oldest first."""
        return self.resources.newest_last(EVENTS)

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

    def _transaction(self) -> Transaction:
        return Transaction(self._database, self.path)
