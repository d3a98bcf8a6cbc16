"""What the agent finds itself on: the kernel's roots, the machine's size, and what pods may have of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nodeagent.api.quantity import Quantity, ResourceList
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import Values, reserved_values
from nodeagent.config import Config
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.node import NodeInfo, read_node_info
from nodeagent.hardware.topology import Topology, read_topology
from nodeagent.resources.allocatable import NodeResources, node_allocatable, node_capacity
from nodeagent.resources.managers import LiveContainer, ManagerSettings
from nodeagent.runtime.spec import ContainerRecord

PID = "pid"


class UnsuitableMachine(Exception):
    """This configuration cannot be run on this machine; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the kernel shows itself."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    cgroup: Path = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, and the configuration's consequences on it."""

    roots: Roots
    tree: CgroupTree
    layout: CgroupLayout
    topology: Topology
    info: NodeInfo
    resources: NodeResources
    capacity: ResourceList
    allocatable: ResourceList
    cgroup_settings: CgroupSettings


def read_machine(config: Config, roots: Roots) -> Machine:
    """Look at the machine; raises UnsuitableMachine."""
    kubelet = config.kubelet
    tree = CgroupTree(roots.cgroup)
    topology = read_topology(roots.sys)
    storage = Path(config.agent.state_directory)
    storage.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = read_node_info(roots.proc, roots.sys, storage, len(topology.cpus))
    capacity = node_capacity(info, kubelet.max_pods, kubelet.pods_per_core)
    resources = NodeResources(
        capacity={**capacity, PID: Quantity.of(info.pids)},
        system_reserved=_quantities(kubelet.system_reserved),
        kube_reserved=_quantities(kubelet.kube_reserved),
        eviction_hard=kubelet.eviction_hard,
        enforce=frozenset(kubelet.enforce_node_allocatable),
    )
    errors = resources.errors()
    if errors:
        raise UnsuitableMachine("\n".join(errors))
    allocatable = node_allocatable(capacity, resources.reservation)
    return Machine(
        roots=roots,
        tree=tree,
        layout=CgroupLayout(
            kubelet.cgroup_root, "systemd" if kubelet.cgroup_driver == "systemd" else "cgroupfs"
        ),
        topology=topology,
        info=info,
        resources=resources,
        capacity=capacity,
        allocatable=allocatable,
        cgroup_settings=CgroupSettings.from_config(
            config,
            info,
            allocatable_memory_bytes=allocatable["memory"].value(),
            swap_controller=tree.read("", "memory.swap.max") is not None or _swap_in_children(tree),
        ),
    )


def manager_settings(config: Config, machine: Machine) -> ManagerSettings:
    """Return what the resource managers follow."""
    kubelet = config.kubelet
    return ManagerSettings(
        cpu_manager_policy=kubelet.cpu_manager_policy,
        cpu_manager_policy_options=kubelet.cpu_manager_policy_options,
        alpha_options=config.gate("CPUManagerPolicyAlphaOptions"),
        beta_options=config.gate("CPUManagerPolicyBetaOptions"),
        topology_manager_policy=kubelet.topology_manager_policy,
        topology_manager_scope=kubelet.topology_manager_scope,
        topology_manager_policy_options=kubelet.topology_manager_policy_options,
        memory_manager_policy=kubelet.memory_manager_policy,
        reserved_memory=tuple((each.numa_node, each.limits) for each in kubelet.reserved_memory),
        node_reservation=machine.resources.reservation,
        reserved_system_cpus=CpuSet.parse(kubelet.reserved_system_cpus),
    )


def live_containers(machine: Machine, records: Iterable[ContainerRecord]) -> tuple[LiveContainer, ...]:
    """Return what runs already, and on which CPUs and memory the kernel lets it run."""
    return tuple(
        LiveContainer(
            pod_uid=record.spec.pod_uid,
            name=record.spec.container_name,
            container_id=record.spec.container_id,
            cpus=CpuSet.parse(machine.tree.read(record.spec.cgroup, "cpuset.cpus") or ""),
            mems=CpuSet.parse(machine.tree.read(record.spec.cgroup, "cpuset.mems") or ""),
        )
        for record in records
        if record.state != "exited"
    )


def reserved_cgroups(config: Config, machine: Machine) -> dict[str, Values]:
    """Return what enforceNodeAllocatable says of the daemons' own cgroups, by path."""
    kubelet, settings = config.kubelet, machine.cgroup_settings
    groups = (
        ("system-reserved", kubelet.system_reserved_cgroup, machine.resources.system_reserved),
        ("kube-reserved", kubelet.kube_reserved_cgroup, machine.resources.kube_reserved),
    )
    wanted: dict[str, Values] = {}
    for name, cgroup, reserved in groups:
        for suffix, compressible_only in (("", False), ("-compressible", True)):
            if name + suffix in kubelet.enforce_node_allocatable:
                wanted[machine.layout.reserved(cgroup)] = reserved_values(
                    reserved, settings, compressible_only=compressible_only
                )
    return wanted


def _swap_in_children(tree: CgroupTree) -> bool:
    """The root cgroup shows no swap files; any child with the memory controller does, where there is swap."""
    return any(tree.read(child, "memory.swap.max") is not None for child in tree.children(""))


def _quantities(amounts: Mapping[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in amounts.items()}
