"""Who is evicted first, as kubelet decides it."""

from typing import Any

import msgspec
import pytest

from nodeagent.api.decode import decode_hook
from nodeagent.api.pod import Pod
from nodeagent.eviction.ranking import Filesystems, rank
from nodeagent.eviction.signals import Signal
from nodeagent.stats.summary import PodStats


@pytest.mark.golden("eviction_rank.json", "rank")
def test_rank(case: dict[str, Any]) -> None:
    pods = msgspec.convert(case["pods"], list[Pod], dec_hook=decode_hook)
    stats = msgspec.convert(case["podStats"], list[PodStats])
    candidates = rank(
        Signal(case["signal"]),
        pods,
        {entry.pod_ref.uid: entry for entry in stats},
        Filesystems(case["dedicatedImageFs"], case["splitContainerFs"]),
    )
    names = [candidate.pod.metadata.name for candidate in candidates]
    if "order" in case:
        assert names == case["order"]
        return
    for group in case["orderGroups"]:
        assert sorted(names[: len(group)]) == sorted(group)
        names = names[len(group) :]
    assert names == []
