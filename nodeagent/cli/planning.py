"""What the agent would do with pods on a machine: the same decisions, and nothing written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodeagent.api.pod import Container, Pod
from nodeagent.api.qos import QOSClass, oom_score_adj, qos_class
from nodeagent.api.quantity import ResourceList
from nodeagent.api.resources import is_restartable_init
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import Values, container_values, node_values, pod_values, qos_values
from nodeagent.cli.plan_manifests import SourcedPod
from nodeagent.hardware.topology import Topology
from nodeagent.pods.launch import container_id
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
    """One pod: the decision with everything compared, and its cgroups if it is admitted."""

    pod: Pod
    source: str
    fit: FitResult
    admission: Admission | None = None
    cgroup: PlannedCgroup | None = None
    containers: tuple[PlannedContainer, ...] = ()

    @property
    def admitted(self) -> bool:
        return self.fit.fits and self.admission is not None and self.admission.admitted

    @property
    def reason(self) -> str:
        """Why it is refused, in kubelet's word; empty when it is admitted."""
        return self.fit.reason or (self.admission.reason if self.admission else "")

    @property
    def message(self) -> str:
        return self.fit.message or (self.admission.message if self.admission else "")


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


def make_plan(pods: Iterable[SourcedPod], node: PlannedNode) -> Plan:
    """Admit the pods one after the other to an empty node, then compute every cgroup.

    The values come last, as in the agent: the shared pool and the QoS classes follow all that is admitted.
    """
    decided: list[PlannedPod] = []
    for item in pods:
        active = [planned.pod for planned in decided if planned.admitted]
        result = fit(item.pod, node.view, active)
        admission = node.managers.admit(item.pod, active) if result.fits else None
        decided.append(PlannedPod(item.pod, item.source, result, admission))
    admitted = [planned.pod for planned in decided if planned.admitted]
    return Plan(_upper(admitted, node), tuple(_with_cgroups(planned, node) for planned in decided))


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
    return PlannedPod(
        pod, planned.source, planned.fit, planned.admission, PlannedCgroup(path, values), tuple(containers)
    )


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
