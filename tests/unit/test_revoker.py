"""What a group was only lent is taken back when its owner asks: one pod, once, with its own grace."""

from pathlib import Path

from nodeagent.admission.elastic_quota.quotas import QuotaSettings
from nodeagent.pods.revoker import Revoker
from tests.unit.elastic_quotas import quota
from tests.unit.test_preemptor import Node


async def test_the_least_important_borrower_ends_and_the_owner_comes(tmp_path: Path) -> None:
    node = Node(tmp_path, QuotaSettings(revokes=True, delay_evict_seconds=10))
    node.quotas.groups = (quota("red", (2, 4), (4, 8)), quota("blue", (2, 4), (4, 8)))
    revoker = Revoker(node.quotas, node.manager, node.events, node.decisions, node.clock, 1)
    await node.put("red-a", "2", "high", group="red")
    await node.put("red-b", "2", "low", group="red")
    revoker.look()
    assert node.asked_to_end() == set()
    await node.put("blue", "2", group="blue")
    assert node.phase("blue") == "Pending"
    for _ in range(12):
        revoker.look()
        node.clock.advance(1)
        await node.settle()
    assert node.asked_to_end() == {"red-b"}
    for _ in range(12):
        # It takes its time, and nobody else has to go for that.
        revoker.look()
        node.clock.advance(1)
    await node.settle()
    assert node.asked_to_end() == {"red-b"}
    await node.end("red-b")
    node.clock.advance(60)
    await node.settle()
    assert node.running() == {"red-a", "blue"}
    message = node.manager.workers["red-b"].pod.status.message or ""
    assert "The group red uses more than it may since others ask for what it was lent" in message
