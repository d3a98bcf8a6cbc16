"""Decisions are kept: with numbers, over restarts, over a full disk, and without piling up."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from nodeagent.eviction.record import EvictionRecord
from nodeagent.pods.decisions import MOST_UNSAVED, AdmissionRecord, Decision, DecisionLog, Kind
from nodeagent.scheduling.fit import Comparison
from nodeagent.store import Store, StoreError

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class SmallDisk(Store):
    """A store whose disk can be full."""

    is_full = False

    def put_decision(self, number: int, kind: str, pod: tuple[str, str], now: datetime, body: bytes) -> None:
        if self.is_full:
            raise StoreError("nodeagent.db: database or disk is full")
        super().put_decision(number, kind, pod, now, body)


@pytest.fixture
def store(tmp_path: Path) -> SmallDisk:
    return SmallDisk(tmp_path / "nodeagent.db")


def refused(name: str = "web", message: str = "too little") -> AdmissionRecord:
    return AdmissionRecord(
        namespace="shop",
        name=name,
        uid=f"u-{name}",
        admitted=False,
        decided_at=NOW,
        reason="OutOfcpu",
        message=message,
        comparisons=(Comparison("cpu", 2000, 500, 1850),),
    )


def eviction(name: str = "hog") -> EvictionRecord:
    return EvictionRecord(
        namespace="shop",
        name=name,
        uid=f"u-{name}",
        cause="memory.available",
        message="The node was low on resource: memory. ",
        grace_seconds=1,
        decided_at=NOW,
    )


def kept(log: DecisionLog, **wanted: object) -> list[Decision]:
    return [json.decode(body, type=Decision) for _, body in log.page(1 << 60, 1000, **wanted)]  # type: ignore[arg-type]


def test_what_was_compared_comes_back_after_a_restart(store: SmallDisk) -> None:
    DecisionLog(store).keep_admission(refused())
    again = DecisionLog(store)
    (decision,) = kept(again, pod=("shop", "web"))
    assert (decision.id, decision.kind, decision.pod) == (1, Kind.ADMISSION, ("shop", "web"))
    assert decision.admission == refused()
    assert decision.admission is not None and not decision.admission.comparisons[0].fits
    again.keep_admission(refused("other"))
    assert [each.id for each in kept(again)] == [2, 1]
    assert kept(again, kind=Kind.EVICTION) == []


def test_the_same_refusal_again_is_counted(store: SmallDisk) -> None:
    log = DecisionLog(store)
    for minutes in range(3):
        log.keep_admission(replace(refused(), decided_at=NOW + timedelta(minutes=minutes)))
    (decision,) = kept(log)
    record = decision.admission
    assert record is not None
    assert (record.times, record.first_decided_at) == (3, NOW)
    assert record.decided_at == NOW + timedelta(minutes=2)
    log.keep_admission(refused(message="even less"))
    log.keep_admission(replace(refused(), admitted=True, reason="", message="", comparisons=()))
    log.keep_admission(refused(message="even less"))
    assert [each.id for each in kept(log)] == [4, 3, 2, 1]


def test_an_eviction_is_one_record_from_the_decision_to_the_end(store: SmallDisk) -> None:
    log = DecisionLog(store)
    log.keep_eviction(eviction())
    # Nothing is written before the pod is killed.
    assert store.decisions(100, 100) == []
    assert [each.id for each in kept(log, kind=Kind.EVICTION)] == [1]
    log.save()
    log.keep_eviction(replace(eviction(), dead_at=NOW + timedelta(milliseconds=40)))
    log.save()
    (decision,) = kept(DecisionLog(store))
    assert decision.eviction is not None
    assert decision.eviction.seconds_to_dead == pytest.approx(0.04)
    log.keep_eviction(replace(eviction(), decided_at=NOW + timedelta(hours=1)))
    assert [each.id for each in kept(log)] == [2, 1]


def test_a_full_disk_costs_no_record(store: SmallDisk) -> None:
    log = DecisionLog(store)
    store.is_full = True
    log.keep_admission(refused())
    log.keep_eviction(eviction())
    log.save()
    assert store.last_decision() == 0
    assert [each.id for each in kept(log)] == [2, 1]
    assert [number for number, _ in log.page(2, 10)] == [1]
    store.is_full = False
    log.save()
    assert [each.id for each in kept(DecisionLog(store))] == [2, 1]


def test_sqlites_own_refusal_is_no_error_either(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path / "nodeagent.db")
    log = DecisionLog(store)
    store._database.execute("PRAGMA max_page_count = 1")
    log.keep_admission(refused(message="x" * 1_000_000))
    assert "decision 1 is not stored yet" in caplog.text and "full" in caplog.text
    assert [each.id for each in kept(log)] == [1]
    store._database.execute("PRAGMA max_page_count = 100000")
    log.save()
    assert [each.id for each in kept(DecisionLog(store))] == [1]


def test_a_disk_that_stays_full_does_not_fill_the_memory(store: SmallDisk) -> None:
    log = DecisionLog(store)
    store.is_full = True
    for number in range(MOST_UNSAVED + 50):
        log.keep_admission(refused(f"p{number}"))
    assert [each.id for each in kept(log)] == list(range(MOST_UNSAVED + 50, 50, -1))
