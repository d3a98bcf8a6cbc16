"""What the eviction loop needs from the rest of the agent."""

from collections.abc import Sequence
from typing import Protocol

from nodeagent.api.pod import Pod
from nodeagent.eviction.manager import Eviction, Reclaim
from nodeagent.eviction.record import EvictionRecord
from nodeagent.eviction.signals import Condition, Resource
from nodeagent.stats.hot import HotSample
from nodeagent.stats.summary import PodStats, Summary


class Node(Protocol):
    """The node as the loop sees it: figures to look at, pods to end."""

    def sample(self) -> HotSample:
        """Look at the root figures, quickly."""
        ...

    def is_calm(self) -> bool:
        """Tell, for less than a sample, whether memory is within two percent of where the last one saw it."""
        ...

    def summary(self, pods: Sequence[Pod]) -> Summary:
        """Measure the node and these pods, each container and its files included."""
        ...

    def pod_usage(self, pods: Sequence[Pod]) -> Sequence[PodStats]:
        """Measure memory and processes of these pods as wholes: an eviction waits for it."""
        ...

    def active_pods(self) -> Sequence[Pod]:
        """Return the pods that use the node."""
        ...

    def kill(self, pod: Pod) -> None:
        """Kill every process of a pod at once, and do nothing else. Raises CgroupError."""
        ...

    async def evict(self, eviction: Eviction) -> None:
        """End a pod; return when its processes are gone and what it held is free. Raises CgroupError."""
        ...

    async def reclaim(self, what: Reclaim) -> None:
        """Free what can be freed without ending a pod."""
        ...

    def conditions_changed(self, conditions: frozenset[Condition]) -> None:
        """Take note of the node's conditions."""
        ...

    def attempting_to_reclaim(self, resource: Resource) -> None:
        """Take note that something is being done about a resource."""
        ...

    def recorded(self, record: EvictionRecord) -> None:
        """Keep a record: once when a pod is chosen, and again when it is gone."""
        ...
