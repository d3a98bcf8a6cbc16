"""What the agent would do with pods on a machine: the same decisions, and nothing written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nodeagent.admission.chain import Policies, admit
from nodeagent.admission.elastic_quota.quotas import QuotaSettings
from nodeagent.api.pod import Container, Pod
from nodeagent.api.qos import QOSClass, oom_score_adj, qos_class
from nodeagent.api.quantity import ResourceList
from nodeagent.api.resources import is_restartable_init
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import Values, container_values, node_values, pod_values, qos_values
from nodeagent.cli.plan_manifests import SourcedPod
from nodeagent.clock import Clock
from nodeagent.hardware.topology import Topology
from nodeagent.pods.launch import container_id
from nodeagent.pods.team_quotas import QuotaPod, TeamQuotas
from nodeagent.resources.managers import Admission, ResourceManagers
from nodeagent.scheduling.fit import FitResult, NodeView, fit

_TIERS = (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT)
FIRST_GENERATION = FIRST_ATTEMPT = 0


@dataclass(frozen=True, slots=True)
class PlannedCgroup:
    """One cgroup: where it would be, and what would be written."""

    path: str
    values: Values


@dataclass(frozen=True, slots=True)
class PlannedContainer:
    """One container: its CPUs and memory nodes, and its leaf."""

    name: str
    kind: str
    cpus: str
    exclusive: bool
    mems: str
    oom_score_adj: int
    cgroup: PlannedCgroup


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """One pod: the decision with everything compared, and its cgroups if it is admitted.

    `refused` is the reason and the message of a policy; then the node was not asked.
    """

    pod: Pod
    source: str
    policy: tuple[str, ...] = ()
    refused: tuple[str, str] | None = None
    fit: FitResult | None = None
    admission: Admission | None = None
    cgroup: PlannedCgroup | None = None
    containers: tuple[PlannedContainer, ...] = ()

    @property
    def admitted(self) -> bool:
        return self.admission is not None and self.admission.admitted

    @property
    def reason(self) -> str:
        """Why it is refused, in kubelet's word; empty when it is admitted."""
        return self._refusal[0]

    @property
    def message(self) -> str:
        return self._refusal[1]

    @property
    def _refusal(self) -> tuple[str, str]:
        if self.refused is not None:
            return self.refused
        asked = self.admission or self.fit
        return (asked.reason, asked.message) if asked is not None else ("", "")


@dataclass(frozen=True, slots=True)
class Plan:
    """The levels above the pods, and the pods in the order in which they were admitted."""

    upper: tuple[PlannedCgroup, ...]
    pods: tuple[PlannedPod, ...]


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """What the decisions are made with."""

    topology: Topology
    view: NodeView
    layout: CgroupLayout
    settings: CgroupSettings
    capacity: ResourceList
    kubepods: ResourceList
    managers: ResourceManagers
    quotas: QuotaSettings


def make_plan(pods: Iterable[SourcedPod], node: PlannedNode, policies: Policies, clock: Clock) -> Plan:
    """Admit the pods one after the other to an empty node, then compute every cgroup.

    The values come last, as in the agent: the shared pool and the QoS classes follow all that is admitted.
    """
    decided: list[PlannedPod] = []
    teams = TeamQuotas(
        node.quotas,
        lambda: node.view,
        lambda: [QuotaPod(each.pod, holds_resources=each.admitted) for each in decided],
        clock,
    )
    teams.groups = policies.elastic_quotas
    for item in pods:
        active = [planned.pod for planned in decided if planned.admitted]
        planned = _by_policy(item, policies, active, teams, clock)
        decided.append(planned if planned.refused else _on_the_node(planned, node, active))
    admitted = [planned.pod for planned in decided if planned.admitted]
    return Plan(_upper(admitted, node), tuple(_with_cgroups(planned, node) for planned in decided))


def _by_policy(
    item: SourcedPod, policies: Policies, active: Sequence[Pod], teams: TeamQuotas, clock: Clock
) -> PlannedPod:
    outcome = admit(item.pod, policies, active, clock.now())
    planned = PlannedPod(outcome.pod, item.source, tuple(outcome.record.sentences()))
    if outcome.refusal is not None:
        return replace(planned, refused=(outcome.refusal.reason, outcome.refusal.message))
    verdict = teams.judge(outcome.pod)
    if verdict is None:
        return planned
    refused = None if verdict.admits else (verdict.code, verdict.message)
    return replace(planned, policy=(*planned.policy, str(verdict)), refused=refused)


def _on_the_node(planned: PlannedPod, node: PlannedNode, active: Sequence[Pod]) -> PlannedPod:
    result = fit(planned.pod, node.view, active)
    admission = node.managers.admit(planned.pod, active) if result.fits else None
    return replace(planned, fit=result, admission=admission)


def _upper(pods: Sequence[Pod], node: PlannedNode) -> tuple[PlannedCgroup, ...]:
    kubepods = PlannedCgroup(node.layout.kubepods, node_values(node.kubepods, pods, node.settings))
    tiers = (PlannedCgroup(node.layout.qos(tier), qos_values(tier, pods, node.settings)) for tier in _TIERS)
    return (kubepods, *tiers)


def _with_cgroups(planned: PlannedPod, node: PlannedNode) -> PlannedPod:
    if not planned.admitted:
        return planned
    pod = planned.pod
    exclusive = node.managers.has_exclusive_cpus(pod)
    values = pod_values(pod, node.settings, exclusive_cpus=exclusive)
    path = node.layout.pod(pod.metadata.uid, qos_class(pod))
    containers = [
        _container(pod, c, "sidecar" if is_restartable_init(c) else "init", node)
        for c in pod.spec.init_containers
    ]
    containers += [_container(pod, c, "app", node) for c in pod.spec.containers]
    return replace(planned, cgroup=PlannedCgroup(path, values), containers=tuple(containers))


def _container(pod: Pod, container: Container, kind: str, node: PlannedNode) -> PlannedContainer:
    uid, name = pod.metadata.uid, container.name
    cpus, mems = node.managers.container_cpus(uid, name), node.managers.container_mems(uid, name)
    exclusive = node.managers.is_exclusive(uid, name)
    values = container_values(pod, container, node.settings, cpus=cpus, mems=mems, exclusive=exclusive)
    identifier = container_id(uid, FIRST_GENERATION, name, FIRST_ATTEMPT)
    leaf = node.layout.container(uid, qos_class(pod), identifier)
    score = oom_score_adj(pod, container, node.settings.memory_capacity_bytes)
    return PlannedContainer(
        name, kind, str(cpus or ""), exclusive, str(mems or ""), score, PlannedCgroup(leaf, values)
    )
