"""What the server shows: the door through which the agent lets itself be looked at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nodeagent.admission.elastic_quota.quotas import Quotas
from nodeagent.api.event import Event
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.config import Config
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.metrics.source import MetricsSource
from nodeagent.stats.summary import Summary

HealthCheck = Callable[[], str | None]
"""Return None when all is well, else what is wrong as a sentence."""


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """Which decisions: of a kind (None: any), about a pod by namespace and name (None: any)."""

    kind: str | None = None
    pod: tuple[str, str] | None = None
    limit: int = 1


class ServerView(Protocol):
    """Implemented by the agent; all methods run on the event loop."""

    @property
    def config(self) -> Config: ...

    @property
    def metrics(self) -> MetricsSource: ...

    @property
    def health_checks(self) -> Mapping[str, HealthCheck]:
        """By kubelet's names (log, syncloop), without ping."""
        ...

    def pods(self) -> Sequence[Pod]:
        """The pods that this node should run, with their status."""
        ...

    def running_pods(self) -> Sequence[Pod]:
        """The pods that the runtime has, whoever wanted them."""
        ...

    def node(self) -> Node: ...

    def events(self) -> Sequence[Event]:
        """Oldest first."""
        ...

    def decisions(self, query: DecisionQuery, before: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """Decisions with numbers below `before`, newest first: number and JSON."""
        ...

    def elastic_quotas(self) -> Quotas:
        """The quota groups with what each may use now; only the special ones where there are no others."""
        ...

    def cpu_owners(self) -> Mapping[str, CpuSet]:
        """The CPUs that are not shared, by whose they are: `reserved`, or namespace/pod/container."""
        ...

    async def summary(self, only_cpu_and_memory: bool) -> Summary:
        """Measure; reading a thousand pods belongs in a thread."""
        ...
