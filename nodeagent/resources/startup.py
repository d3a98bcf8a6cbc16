"""Make the managers from the settings and their state files; what does not suit is noted at the file."""

from collections.abc import Iterable

from nodeagent.api.resources import CPU
from nodeagent.hardware.topology import Topology
from nodeagent.resources import memory_books
from nodeagent.resources.checkpoint import StateFile, StateFileError
from nodeagent.resources.cpu_manager import CpuManager
from nodeagent.resources.cpu_policy import StaticCpuPolicy
from nodeagent.resources.cpu_salvage import cpu_differences, salvaged
from nodeagent.resources.cpu_setup import make_cpu_policy
from nodeagent.resources.device_manager import DeviceManager
from nodeagent.resources.memory_manager import MemoryManager
from nodeagent.resources.memory_setup import make_memory_policy
from nodeagent.resources.settings import LiveContainer, ManagerSettings
from nodeagent.resources.topology_options import Policy


def cpu_policy(settings: ManagerSettings, topology: Topology) -> StaticCpuPolicy | None:
    """Raises OptionError. Listed CPUs that are offline for now stay reserved for when they return."""
    listed = settings.reserved_system_cpus - topology.offline
    reserved = settings.node_reservation.get(CPU)
    milli = 1000 * len(listed) if listed else reserved.milli_value() if reserved is not None else None
    return make_cpu_policy(
        settings.cpu_manager_policy,
        settings.cpu_manager_policy_options,
        topology,
        reserved_milli=milli,
        reserved_cpus=listed,
        topology_policy=settings.topology_manager_policy,
        alpha_options=settings.alpha_options,
        beta_options=settings.beta_options,
        keep_shared_pool=True,
    )


def cpu_manager(
    settings: ManagerSettings, topology: Topology, file: StateFile, live: Iterable[LiveContainer]
) -> CpuManager:
    """Raises OptionError."""
    policy = cpu_policy(settings, topology)
    container_ids = {container.container_id: (container.pod_uid, container.name) for container in live}
    try:
        manager = CpuManager(policy, file, container_ids)
    except StateFileError as error:
        file.reject(error.cause)
        manager = CpuManager(policy, file, container_ids)
    if manager.problem and policy and not settings.reserved_system_cpus:
        manager.try_policy(policy.beside(manager.state))
    if manager.problem and policy:
        file.reject(manager.problem, cpu_differences(policy, manager.visible))
        manager.state = salvaged(policy, manager.state)
    return manager


def memory_manager(settings: ManagerSettings, topology: Topology, file: StateFile) -> MemoryManager:
    """Raises OptionError. Totals that differ by a few MB from the last boot's are taken over."""
    policy = make_memory_policy(
        settings.memory_manager_policy,
        topology.numa_nodes,
        reserved_memory=settings.reserved_memory,
        node_reservation=settings.node_reservation,
        topology_policy=settings.topology_manager_policy,
    )
    try:
        manager = MemoryManager(policy, file)
    except StateFileError as error:
        file.reject(error.cause)
        manager = MemoryManager(policy, file)
    if manager.problem and policy and not manager.adapt_to_drift():
        file.reject(manager.problem, memory_books.differences(policy.unused, manager.state))
        manager.state = memory_books.salvaged(policy.unused, manager.state)
    return manager


def device_manager(settings: ManagerSettings, topology: Topology, file: StateFile) -> DeviceManager:
    nodes = [node.node for node in topology.numa_nodes]
    single = settings.topology_manager_policy == Policy.SINGLE_NUMA_NODE
    try:
        return DeviceManager(settings.devices, nodes, file, single_node=single)
    except StateFileError as error:
        file.reject(error.cause)
        return DeviceManager(settings.devices, nodes, file, single_node=single)
