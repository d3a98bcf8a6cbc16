"""What the resource managers are set to, as plain values, and what runs already when they start."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.api.quantity import ResourceList
from nodeagent.hardware.cpuset import NO_CPUS, CpuSet
from nodeagent.resources.device_manager import DeviceResource


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """The fields of KubeletConfiguration that the managers follow."""

    cpu_manager_policy: str = "none"
    cpu_manager_policy_options: Mapping[str, str] = field(default_factory=dict)
    alpha_options: bool = False
    """The feature gate CPUManagerPolicyAlphaOptions."""
    beta_options: bool = True
    topology_manager_policy: str = "none"
    topology_manager_scope: str = "container"
    topology_manager_policy_options: Mapping[str, str] = field(default_factory=dict)
    memory_manager_policy: str = "None"
    reserved_memory: tuple[tuple[int, ResourceList], ...] = ()
    """NUMA node and its amounts."""
    node_reservation: ResourceList = field(default_factory=dict)
    """systemReserved + kubeReserved + hard eviction thresholds."""
    reserved_system_cpus: CpuSet = NO_CPUS
    """Replaces the number of CPUs in `node_reservation`."""
    devices: tuple[DeviceResource, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveContainer:
    """A container that runs while the managers start, and what the kernel says it runs on."""

    pod_uid: str
    name: str
    container_id: str
    cpus: CpuSet = NO_CPUS
    mems: CpuSet = NO_CPUS
