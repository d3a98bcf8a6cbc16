"""The machine a plan is made for: this one, one described by a file, or one made up."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nodeagent.api.quantity import Quantity, QuantityError
from nodeagent.api.resources import MEMORY
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.limits import PIDS
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cli.common import CommandError
from nodeagent.cli.plan import LIVE
from nodeagent.cli.planning import PlannedNode
from nodeagent.config import Config
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.node import NodeInfo, read_node_info
from nodeagent.hardware.topology import Topology, TopologyError, load_topology
from nodeagent.node import node_labels
from nodeagent.resources.allocatable import NodeResources, node_allocatable, node_capacity
from nodeagent.resources.errors import OptionError
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from nodeagent.scheduling.fit import NodeView

DEFAULT_MEMORY_BYTES = 16 << 30
# The kernel's own default for pid_max: 32768, and 1024 a CPU on big machines.
LEAST_PIDS, PIDS_PER_CPU = 32768, 1024


def load_machine(source: str, memory: str | None) -> tuple[Topology, NodeInfo]:
    """Return the CPUs and the amounts of a machine. Raises CommandError."""
    memory_bytes = _memory_bytes(memory)
    try:
        topology = load_topology(source)
        if not any(node.memory_bytes for node in topology.numa_nodes):
            total = memory_bytes or DEFAULT_MEMORY_BYTES
            topology = load_topology(source, total // max(len(topology.numa_nodes), 1))
    except TopologyError as error:
        raise CommandError(f"--topology {source}: {error}") from error
    except OSError as error:
        raise CommandError(f"--topology {source}: {error.strerror}") from error
    info = _live_info(len(topology.cpus)) if source == LIVE else _described_info(topology)
    return topology, replace(info, memory_bytes=memory_bytes) if memory_bytes else info


def _live_info(cpus: int) -> NodeInfo:
    return read_node_info(Path("/proc"), Path("/sys"), Path("/"), cpus)


def _described_info(topology: Topology) -> NodeInfo:
    cpus = len(topology.cpus)
    hugepages: dict[int, int] = {}
    for node in topology.numa_nodes:
        for pool in node.huge_pages:
            size = 1024 * pool.page_size_kib
            hugepages[size] = hugepages.get(size, 0) + size * pool.pages
    return NodeInfo(
        cpu_milli=1000 * cpus,
        memory_bytes=sum(node.memory_bytes for node in topology.numa_nodes) or DEFAULT_MEMORY_BYTES,
        pids=max(LEAST_PIDS, PIDS_PER_CPU * cpus),
        hugepages_bytes=hugepages,
    )


def _memory_bytes(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        amount = Quantity.parse(text)
    except QuantityError as error:
        raise CommandError(f"--memory {text}: {error}") from error
    if amount.sign <= 0:
        raise CommandError(f"--memory {text}: expected an amount above 0, such as 16Gi")
    return amount.value()


def planned_node(config: Config, topology: Topology, info: NodeInfo) -> PlannedNode:
    """The node that the configuration makes of a machine. Raises CommandError where the two do not fit."""
    kubelet = config.kubelet
    capacity = node_capacity(info, kubelet.max_pods, kubelet.pods_per_core)
    resources = NodeResources(
        capacity={**capacity, PIDS: Quantity.of(info.pids)},
        system_reserved=_quantities(kubelet.system_reserved),
        kube_reserved=_quantities(kubelet.kube_reserved),
        eviction_hard=kubelet.eviction_hard,
        enforce=frozenset(kubelet.enforce_node_allocatable),
    )
    faults = resources.errors()
    if faults:
        raise CommandError("\n".join(faults))
    allocatable = node_allocatable(capacity, resources.reservation)
    try:
        managers = ResourceManagers(topology, _manager_settings(config, resources), None)
    except OptionError as error:
        raise CommandError(f"{config.source}: {error}") from error
    name = config.agent.node_name
    return PlannedNode(
        topology=topology,
        view=NodeView(name, allocatable, node_labels(name, config.agent.node_labels)),
        layout=CgroupLayout(kubelet.cgroup_root),
        settings=CgroupSettings.from_config(
            config, info, allocatable_memory_bytes=allocatable[MEMORY].value(), swap_controller=True
        ),
        capacity=capacity,
        kubepods=resources.kubepods,
        managers=managers,
    )


def _manager_settings(config: Config, resources: NodeResources) -> ManagerSettings:
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
        node_reservation=resources.reservation,
        reserved_system_cpus=CpuSet.parse(kubelet.reserved_system_cpus),
    )


def _quantities(amounts: Mapping[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in amounts.items()}
