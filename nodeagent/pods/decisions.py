"""What was decided about pods, with everything that was compared: kept for whoever asks later."""

import logging
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct, json
from msgspec.structs import replace

from nodeagent.eviction.record import EvictionRecord
from nodeagent.scheduling.fit import Comparison
from nodeagent.store import MOST_DECISIONS, Store, StoreError

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")
MOST_UNSAVED = 100


class Kind(StrEnum):
    """What kind of decision it was."""

    ADMISSION = "Admission"
    EVICTION = "Eviction"


class AdmissionRecord(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether a pod was let in. What was decided several times alike is one record."""

    namespace: str
    name: str
    uid: str
    admitted: bool
    decided_at: datetime
    """The last time."""
    reason: str = ""
    message: str = ""
    policy: tuple[str, ...] = ()
    """What priority, LimitRanges and quotas set and compared, in sentences."""
    comparisons: tuple[Comparison, ...] = ()
    failures: tuple[str, ...] = ()
    """Rules other than amounts that the node does not satisfy."""
    resources: tuple[str, ...] = ()
    """What the resource managers weighed and gave, in sentences."""
    preemption: tuple[str, ...] = ()
    """Who is to make room for it, or why nobody is."""
    nominated: bool = False
    """Others are ending to make room for it."""
    times: int = 1
    first_decided_at: datetime | None = None


class Decision(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One decision with its number; the record is that of its kind."""

    id: int
    kind: Kind
    admission: AdmissionRecord | None = None
    eviction: EvictionRecord | None = None

    @property
    def pod(self) -> tuple[str, str]:
        """Namespace and name."""
        record = self.admission or self.eviction
        return (record.namespace, record.name) if record else ("", "")

    @property
    def decided_at(self) -> datetime:
        record = self.admission or self.eviction
        assert record is not None
        return record.decided_at


class DecisionLog:
    """Decisions in the store. Keeping one never fails: what the disk does not take now is written later."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = store.last_decision()
        self._unsaved: dict[int, Decision] = {}
        # By pod UID: the evictions under way, and the refusals that may be repeated.
        self._leaving: dict[tuple[str, datetime], int] = {}
        self._refused: dict[str, Decision] = {}

    def keep_admission(self, record: AdmissionRecord) -> None:
        """Keep an admission; a refusal like the last one of the pod is counted, not added."""
        before = self._refused.pop(record.uid, None)
        number = None
        if before is not None and before.admission is not None and _is_same(before.admission, record):
            first = before.admission.first_decided_at or before.admission.decided_at
            record = replace(record, times=before.admission.times + 1, first_decided_at=first)
            number = before.id
        decision = Decision(id=number or self._next(), kind=Kind.ADMISSION, admission=record)
        if not record.admitted:
            self._refused[record.uid] = decision
            _bound(self._refused, MOST_DECISIONS)
        self._unsaved[decision.id] = decision
        self.save()

    def keep_eviction(self, record: EvictionRecord) -> None:
        """Keep an eviction until the next `save`: once when it is decided, and again when the pod is dead."""
        key = (record.uid, record.decided_at)
        number = self._leaving.pop(key, None) or self._next()
        if record.dead_at is None:
            self._leaving[key] = number
            _bound(self._leaving, MOST_DECISIONS)
        self._unsaved[number] = Decision(id=number, kind=Kind.EVICTION, eviction=record)

    def save(self) -> None:
        """Write what is not written yet, oldest first; a disk that is full is no error here."""
        for number, decision in list(self._unsaved.items()):
            body = json.encode(decision)
            try:
                self._store.put_decision(number, decision.kind, decision.pod, decision.decided_at, body)
            except StoreError as error:
                logger.error("decision %d is not stored yet: %s", number, error)
                _bound(self._unsaved, MOST_UNSAVED)
                return
            del self._unsaved[number]

    def page(
        self, before: int, limit: int, *, kind: Kind | None = None, pod: tuple[str, str] | None = None
    ) -> Sequence[tuple[int, bytes]]:
        """Return the newest decisions with numbers below `before`, newest first, as JSON."""
        found = dict(self._store.decisions(before, limit, kind=kind, pod=pod))
        for number, decision in self._unsaved.items():
            if number < before and kind in (None, decision.kind) and pod in (None, decision.pod):
                found[number] = json.encode(decision)
        return sorted(found.items(), reverse=True)[:limit]

    def _next(self) -> int:
        self._last += 1
        return self._last


def _is_same(before: AdmissionRecord, now: AdmissionRecord) -> bool:
    return (before.admitted, before.reason, before.message) == (now.admitted, now.reason, now.message)


def _bound(entries: dict[K, V], most: int) -> None:
    """Let the oldest go."""
    while len(entries) > most:
        del entries[next(iter(entries))]
