"""The machine a plan is made for: this one, one described by a file, or one made up."""

from dataclasses import replace
from pathlib import Path

from nodeagent.api.quantity import Quantity, QuantityError
from nodeagent.api.resources import MEMORY
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cli.common import CommandError
from nodeagent.cli.plan import LIVE
from nodeagent.cli.planning import PlannedNode
from nodeagent.config import Config
from nodeagent.hardware.node import NodeInfo, read_node_info
from nodeagent.hardware.topology import Topology, TopologyError, load_topology
from nodeagent.machine import UnsuitableMachine, manager_settings, node_amounts
from nodeagent.node import node_labels
from nodeagent.pods.team_quotas import quota_settings
from nodeagent.resources.errors import OptionError
from nodeagent.resources.managers import ResourceManagers
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
    try:
        amounts = node_amounts(config, info)
        settings = manager_settings(config, amounts.resources.reservation)
        managers = ResourceManagers(topology, settings, None)
    except UnsuitableMachine as error:
        raise CommandError(str(error)) from error
    except OptionError as error:
        raise CommandError(f"{config.source}: {error}") from error
    name = config.agent.node_name
    return PlannedNode(
        topology=topology,
        view=NodeView(name, amounts.allocatable, node_labels(name, config.agent.node_labels)),
        layout=CgroupLayout(config.kubelet.cgroup_root),
        settings=CgroupSettings.from_config(
            config, info, allocatable_memory_bytes=amounts.allocatable[MEMORY].value(), swap_controller=True
        ),
        capacity=amounts.capacity,
        kubepods=amounts.resources.kubepods,
        managers=managers,
        quotas=quota_settings(config.agent.elastic_quota),
    )
