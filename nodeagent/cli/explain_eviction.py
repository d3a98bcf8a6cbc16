"""Evictions explained: one in full, the others by number."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nodeagent.api.ages import age
from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError
from nodeagent.cli.decisions import FetchedDecision, fetch_decision, fetch_decisions
from nodeagent.cli.table import columns
from nodeagent.eviction.record import EvictionRecord, explain

SHOWN = 20


def read_evictions(client: AgentClient, number: int | None) -> list[FetchedDecision]:
    """The eviction of that number, or the latest ones, newest first. Raises CommandError."""
    if number is None:
        return fetch_decisions(client, SHOWN, kind="eviction")
    found = fetch_decision(client, number)
    if found.value.eviction is None:
        raise CommandError(f"decision {number} is no eviction; 'nodeagent explain eviction' lists them")
    return [found]


def evictions_text(evictions: Sequence[FetchedDecision], now: datetime) -> str:
    """The first in full, and a table of the others."""
    if not evictions:
        return "No pod was evicted, as far as is remembered."
    latest, *others = evictions
    parts = [f"Eviction {latest.value.id}: {eviction_text(latest)}"]
    if others:
        parts.append("Before it:\n" + eviction_table(others, now))
    return "\n\n".join(parts)


def eviction_text(decision: FetchedDecision) -> str:
    """Everything about one eviction."""
    return explain(_record(decision))


def eviction_table(evictions: Sequence[FetchedDecision], now: datetime) -> str:
    """One line an eviction."""
    rows = []
    for decision in evictions:
        record = _record(decision)
        seconds = record.seconds_to_dead
        rows.append(
            [
                str(decision.value.id),
                f"{age(record.decided_at, now)} ago",
                f"{record.namespace}/{record.name}",
                record.cause,
                "not seen" if seconds is None else f"{1000 * seconds:.0f} ms",
            ]
        )
    return columns(["ID", "DECIDED", "POD", "CAUSE", "CROSSING TO DEAD"], rows, indent="  ")


def evictions_data(evictions: Sequence[FetchedDecision]) -> dict[str, Any]:
    """The decisions as the agent keeps them."""
    return {"evictions": [decision.raw for decision in evictions]}


def _record(decision: FetchedDecision) -> EvictionRecord:
    record = decision.value.eviction
    if record is None:
        raise CommandError(f"the server gave decision {decision.value.id} as an eviction, which it is not")
    return record
