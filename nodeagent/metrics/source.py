"""What the metrics are made from: the door through which the agent shows itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nodeagent.admission.elastic_quota.group import Group
from nodeagent.api.node import Node
from nodeagent.cgroup.files import CgroupTree
from nodeagent.clock import Clock
from nodeagent.eviction.pace import Headroom
from nodeagent.hardware.topology import Topology
from nodeagent.metrics.instruments import Instruments


@dataclass(frozen=True, slots=True)
class MeteredCgroup:
    """A cgroup that has series, and whose it is; kubepods and the QoS slices are nobody's."""

    path: str
    namespace: str = ""
    pod: str = ""
    container: str = ""
    container_id: str = ""
    image: str = ""
    started_at_seconds: float | None = None
    """Since the epoch."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """Numbers of the moment. The keys of `desired_pods` and `active_pods` say whether the pods are static."""

    running_pods: int = 0
    containers: Mapping[str, int] = field(default_factory=dict)
    """By state: created, running, exited, unknown."""
    desired_pods: Mapping[bool, int] = field(default_factory=dict)
    active_pods: Mapping[bool, int] = field(default_factory=dict)
    working_pods: Mapping[tuple[str, str, bool], int] = field(default_factory=dict)
    """By lifecycle (sync, terminating, terminated), config (desired, orphan, runtime_only) and static."""
    shared_pool_cpus: int = 0
    exclusive_cpus_per_numa: Mapping[int, int] = field(default_factory=dict)
    headrooms: Sequence[Headroom] = ()
    """How far each eviction threshold is."""
    quota_groups: Sequence[Group] = ()
    """The elastic quotas as they stand, and no longer changed."""


class MetricsSource(Protocol):
    """Implemented by the agent. The methods are called on the event loop and only tell what memory holds."""

    @property
    def instruments(self) -> Instruments: ...

    @property
    def tree(self) -> CgroupTree:
        """The cgroups, read in a thread of its own."""
        ...

    @property
    def proc_root(self) -> Path: ...

    @property
    def topology(self) -> Topology: ...

    @property
    def clock(self) -> Clock: ...

    def node(self) -> Node:
        """The node object with its status."""
        ...

    def cgroups(self) -> Sequence[MeteredCgroup]:
        """kubepods, the QoS slices, the pods and their live containers; what is over is not listed."""
        ...

    def state(self) -> AgentState: ...
