"""What the servers and the metrics see of the agent."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodeagent.admission.elastic_quota.quotas import Quotas
from nodeagent.api.decode import from_json
from nodeagent.api.event import Event
from nodeagent.api.meta import parse_time
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.api.qos import QOSClass, is_static
from nodeagent.cgroup.files import CgroupTree
from nodeagent.clock import Clock
from nodeagent.config import Config
from nodeagent.eviction.pace import Headroom
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Topology
from nodeagent.metrics.instruments import Instruments
from nodeagent.metrics.source import AgentState, MeteredCgroup
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.decisions import DecisionLog, Kind
from nodeagent.pods.lifecycle import has_ended
from nodeagent.pods.manager import PodManager
from nodeagent.pods.team_quotas import TeamQuotas
from nodeagent.resources.managers import ResourceManagers
from nodeagent.runtime.spec import ContainerRecord
from nodeagent.server.snapshot import RESERVED
from nodeagent.server.view import DecisionQuery, HealthCheck
from nodeagent.stats.summary import Summary
from nodeagent.store import Store

# Dashboards filter on a non-empty image.
PROCESS_IMAGE = "nodeagent/process"


@dataclass(frozen=True, slots=True)
class AgentView:
    """Implements `server.view.ServerView` and `metrics.source.MetricsSource`; it only tells."""

    config: Config
    instruments: Instruments
    tree: CgroupTree
    proc_root: Path
    current_topology: Callable[[], Topology]
    clock: Clock
    manager: PodManager
    records: ContainerRecords
    pod_cgroups: PodCgroups
    managers: ResourceManagers
    store: Store
    decision_log: DecisionLog
    health_checks: Mapping[str, HealthCheck]
    current_node: Callable[[], Node]
    summarise: Callable[[], Awaitable[Summary]]
    headrooms: Callable[[], Sequence[Headroom]]
    team_quotas: TeamQuotas

    @property
    def metrics(self) -> "AgentView":
        return self

    @property
    def topology(self) -> Topology:
        return self.current_topology()

    def node(self) -> Node:
        return self.current_node()

    def pods(self) -> Sequence[Pod]:
        return self.manager.pods()

    def running_pods(self) -> Sequence[Pod]:
        return [pod for pod in self.manager.pods() if self._live(pod)]

    def events(self) -> Sequence[Event]:
        return [from_json(body, Event) for body in self.store.events()]

    def decisions(self, query: DecisionQuery, before: int, limit: int) -> Sequence[tuple[int, bytes]]:
        kind = Kind(query.kind) if query.kind else None
        return self.decision_log.page(before, limit, kind=kind, pod=query.pod)

    def elastic_quotas(self) -> Quotas:
        return self.team_quotas.current()

    def cpu_owners(self) -> Mapping[str, CpuSet]:
        owners = {RESERVED: self.managers.reserved_cpus}
        for pod in self.manager.active_pods():
            meta = pod.metadata
            for container, cpus in self.managers.exclusive_cpus(meta.uid).items():
                owners[f"{meta.namespace}/{meta.name}/{container}"] = cpus
        return owners

    async def summary(self, only_cpu_and_memory: bool) -> Summary:
        return await self.summarise()

    def cgroups(self) -> Sequence[MeteredCgroup]:
        layout = self.pod_cgroups.layout
        tiers = (layout.kubepods, layout.qos(QOSClass.BURSTABLE), layout.qos(QOSClass.BEST_EFFORT))
        metered = [MeteredCgroup(path) for path in tiers]
        for pod in self.manager.active_pods():
            meta = pod.metadata
            metered.append(
                MeteredCgroup(self.pod_cgroups.slice(pod), namespace=meta.namespace, pod=meta.name)
            )
            images = {c.name: c.image for c in (*pod.spec.init_containers, *pod.spec.containers)}
            metered += [_container(pod, record, images) for record in self._live(pod)]
        return metered

    def state(self) -> AgentState:
        everything = self.records.everything()
        desired = self.manager.pods()
        active = self.manager.active_pods()
        return AgentState(
            running_pods=sum(1 for pod in active if self._live(pod)),
            containers=Counter(record.state for record in everything),
            desired_pods=Counter(is_static(pod) for pod in desired),
            active_pods=Counter(is_static(pod) for pod in active),
            working_pods=Counter(
                ("terminating" if worker.is_stopping else "sync", "desired", is_static(worker.pod))
                for worker in self.manager.workers.values()
            ),
            shared_pool_cpus=len(self.managers.shared_pool),
            exclusive_cpus_per_numa=self.managers.exclusive_cpus_per_numa(),
            headrooms=self.headrooms(),
            quota_groups=self.team_quotas.current().groups() if self.team_quotas.groups else (),
        )

    def _live(self, pod: Pod) -> list[ContainerRecord]:
        return [record for record in self.records.of(pod.metadata.uid) if not has_ended(record)]


def _container(pod: Pod, record: ContainerRecord, images: Mapping[str, str | None]) -> MeteredCgroup:
    spec = record.spec
    return MeteredCgroup(
        spec.cgroup,
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        container=spec.container_name,
        container_id=spec.container_id,
        image=images.get(spec.container_name) or PROCESS_IMAGE,
        started_at_seconds=parse_time(record.started_at).timestamp() if record.started_at else None,
    )
