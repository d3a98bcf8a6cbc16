"""Decisions as the agent's server gives them, with the JSON they came in."""

from dataclasses import dataclass
from typing import Any

import msgspec

from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError
from nodeagent.pods.decisions import Decision
from nodeagent.server.paths import DECISIONS

MOST = 1000


@dataclass(frozen=True, slots=True)
class FetchedDecision:
    """One decision, and the JSON it was made of."""

    value: Decision
    raw: dict[str, Any]


def fetch_decisions(client: AgentClient, limit: int = MOST, **query: str) -> list[FetchedDecision]:
    """The newest decisions, newest first; `query` may name a kind and a pod (NAMESPACE/NAME)."""
    items = client.get(*_pieces(), limit=str(limit), **query).get("items")
    if not isinstance(items, list):
        raise CommandError("the server did not answer with a list of decisions; is it a nodeagent?")
    return [_decision(item) for item in items]


def fetch_decision(client: AgentClient, number: int) -> FetchedDecision:
    """One decision. Raises CommandError when there is none."""
    return _decision(client.get(*_pieces(), str(number)))


def _pieces() -> list[str]:
    return DECISIONS.strip("/").split("/")


def _decision(raw: Any) -> FetchedDecision:
    try:
        value = msgspec.convert(raw, Decision)
        if value.admission is None and value.eviction is None:
            raise msgspec.ValidationError("it holds no record")
    except msgspec.ValidationError as error:
        raise CommandError(
            f"the server's answer is not a decision as this version knows it: {error}"
        ) from error
    return FetchedDecision(value, raw)
