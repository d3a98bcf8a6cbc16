"""Policies as people write them."""

from typing import Any

from nodeagent.admission.policies import Policies
from nodeagent.admission.refusal import Refusal
from nodeagent.api.decode import decode_documents
from nodeagent.api.errors import ObjectError


def taken_in(text: str) -> tuple[Policies, list[Refusal]]:
    """Take in every document of `text`; return what came of it and what was refused."""
    policies, refusals = Policies(), []
    for item in documents(text):
        policies, refusal = policies.with_policy(item)
        if refusal is not None:
            refusals.append(refusal)
    return policies, refusals


def policies(text: str) -> Policies:
    taken, refusals = taken_in(text)
    assert refusals == []
    return taken


def documents(text: str) -> list[Any]:
    decoded = decode_documents(text.encode(), "policies.yaml")
    assert not [item for item in decoded if isinstance(item, ObjectError)]
    return decoded
