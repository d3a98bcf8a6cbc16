"""What the agent finds itself on: the kernel's roots, the machine's size, and what pods may have of it."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nodeagent.api.quantity import Quantity, ResourceList
from nodeagent.api.resources import MEMORY
from nodeagent.cgroup.check import host_lacks
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.limits import PIDS
from nodeagent.cgroup.reserved import reserved_cgroups
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import Values
from nodeagent.config import Config
from nodeagent.config.schema import DeviceItem
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.node import NodeInfo, read_node_info
from nodeagent.hardware.topology import Topology, read_topology
from nodeagent.resources.allocatable import NodeResources, node_allocatable, node_capacity
from nodeagent.resources.device_manager import Device, DeviceMount, DeviceResource
from nodeagent.resources.managers import LiveContainer, ManagerSettings
from nodeagent.runtime.spec import ContainerRecord

logger = logging.getLogger(__name__)


class UnsuitableMachine(Exception):
    """This configuration cannot be run on this machine; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the kernel shows itself."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    cgroup: Path = Path("/sys/fs/cgroup")
    kernel_log: Path = Path("/dev/kmsg")


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a node has, what is kept from pods, and what they may request."""

    resources: NodeResources
    capacity: ResourceList
    allocatable: ResourceList


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, and the configuration's consequences on it."""

    roots: Roots
    tree: CgroupTree
    layout: CgroupLayout
    topology: Topology
    info: NodeInfo
    amounts: Amounts
    cgroup_settings: CgroupSettings
    reserved_cgroups: Mapping[str, Values]
    """The daemons' own cgroups on which reservations are enforced, by path."""


def require_fit_host(config: Config, roots: Roots, user_id: int) -> None:
    """Raise UnsuitableMachine where the agent could not work, whatever it is told to run."""
    fail_swap_on = config.kubelet.fail_swap_on
    for lack in host_lacks(roots.proc, roots.cgroup, user_id, fail_swap_on=fail_swap_on):
        raise UnsuitableMachine(f"this host cannot be a node: {lack}. 'nodeagent doctor' checks everything")


def set_own_oom_score_adj(proc_root: Path, score: int) -> None:
    """Have the kernel's OOM killer take others first; without the right to, go on as it is."""
    try:
        (proc_root / "self/oom_score_adj").write_text(str(score))
    except PermissionError as error:
        logger.warning("oomScoreAdj %d cannot be set: %s", score, error.strerror)


def read_machine(config: Config, roots: Roots) -> Machine:
    """Look at the machine; raises UnsuitableMachine, CgroupError."""
    kubelet = config.kubelet
    tree = CgroupTree(roots.cgroup)
    topology = read_topology(roots.sys)
    storage = Path(config.agent.state_directory)
    storage.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = read_node_info(roots.proc, roots.sys, storage, len(topology.cpus))
    amounts = node_amounts(config, info)
    layout = CgroupLayout(
        kubelet.cgroup_root, "systemd" if kubelet.cgroup_driver == "systemd" else "cgroupfs"
    )
    settings = CgroupSettings.from_config(
        config,
        info,
        allocatable_memory_bytes=amounts.allocatable[MEMORY].value(),
        swap_controller=tree.read("", "memory.swap.max") is not None or _swap_in_children(tree),
    )
    return Machine(
        roots=roots,
        tree=tree,
        layout=layout,
        topology=topology,
        info=info,
        amounts=amounts,
        cgroup_settings=settings,
        reserved_cgroups=reserved_cgroups(
            tree,
            layout,
            config,
            settings,
            system_reserved=amounts.resources.system_reserved,
            kube_reserved=amounts.resources.kube_reserved,
        ),
    )


def with_cpus(machine: Machine, topology: Topology, config: Config) -> Machine:
    """Return the machine after CPUs came or went; raises UnsuitableMachine if too few are left to reserve."""
    info = replace(machine.info, cpu_milli=1000 * len(topology.online))
    return replace(machine, topology=topology, info=info, amounts=node_amounts(config, info))


def node_amounts(config: Config, info: NodeInfo) -> Amounts:
    """Return what the configuration makes of a machine's totals; raises UnsuitableMachine."""
    kubelet = config.kubelet
    capacity = node_capacity(info, kubelet.max_pods, kubelet.pods_per_core)
    resources = NodeResources(
        capacity={**capacity, PIDS: Quantity.of(info.pids)},
        system_reserved=_quantities(kubelet.system_reserved),
        kube_reserved=_quantities(kubelet.kube_reserved),
        eviction_hard=kubelet.eviction_hard,
        enforce=frozenset(kubelet.enforce_node_allocatable),
    )
    errors = resources.errors()
    if errors:
        raise UnsuitableMachine("\n".join(errors))
    allocatable = node_allocatable(capacity, resources.reservation)
    # Devices are counted apart: nothing of them is reserved, and no cgroup bounds them.
    devices = {kind.name: Quantity.of(len(kind.devices)) for kind in config.agent.devices}
    return Amounts(resources, {**capacity, **devices}, {**allocatable, **devices})


def manager_settings(config: Config, reservation: ResourceList) -> ManagerSettings:
    """Return what the resource managers follow on a node that keeps `reservation` from all pods."""
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
        node_reservation=reservation,
        reserved_system_cpus=CpuSet.parse(kubelet.reserved_system_cpus),
        devices=tuple(
            DeviceResource(kind.name, tuple(_device(each) for each in kind.devices))
            for kind in config.agent.devices
        ),
    )


def _device(item: DeviceItem) -> Device:
    return Device(
        item.id,
        item.numa_nodes,
        item.device_nodes,
        item.env,
        tuple(DeviceMount(each.host_path, each.container_path, each.read_only) for each in item.mounts),
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


def own_cgroup(proc_root: Path) -> str | None:
    """Return the agent's own cgroup, relative to the mount."""
    for line in (proc_root / "self/cgroup").read_text().splitlines():
        if line.startswith("0::/"):
            return line.removeprefix("0::/") or None
    return None


def _swap_in_children(tree: CgroupTree) -> bool:
    """The root cgroup shows no swap files; any child with the memory controller does, where there is swap."""
    return any(tree.read(child, "memory.swap.max") is not None for child in tree.children(""))


def _quantities(amounts: Mapping[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in amounts.items()}
