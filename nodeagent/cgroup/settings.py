"""The part of the configuration and of the node that cgroup values depend on."""

from dataclasses import dataclass

from nodeagent.api.duration import parse_nanoseconds
from nodeagent.cgroup.conversions import DEFAULT_PERIOD_USEC
from nodeagent.config import Config
from nodeagent.hardware.node import NodeInfo

LIMITED_SWAP = "LimitedSwap"
TIERED_RESERVATION = "TieredReservation"


@dataclass(frozen=True, slots=True)
class CgroupSettings:
    """kubelet's settings by what they do. `hugepage_sizes` are the node's, in bytes."""

    cpu_quota: bool = True
    cpu_period_usec: int = DEFAULT_PERIOD_USEC
    pod_pids_limit: int = -1
    single_process_oom_kill: bool = False
    memory_qos: bool = False
    memory_reservation: bool = False
    memory_throttling_factor: float = 0.9
    qos_reserved_memory_percent: int | None = None
    limited_swap: bool = False
    swap_controller: bool = True
    memory_capacity_bytes: int = 0
    allocatable_memory_bytes: int = 0
    swap_capacity_bytes: int = 0
    hugepage_sizes: tuple[int, ...] = ()
    page_size_bytes: int = 4096

    @classmethod
    def from_config(
        cls, config: Config, node: NodeInfo, *, allocatable_memory_bytes: int, swap_controller: bool
    ) -> "CgroupSettings":
        """Take the settings from a checked configuration."""
        kubelet = config.kubelet
        reserved = kubelet.qos_reserved.get("memory") if config.gate("QOSReserved") else None
        return cls(
            cpu_quota=kubelet.cpu_cfs_quota,
            cpu_period_usec=parse_nanoseconds(kubelet.cpu_cfs_quota_period) // 1000,
            pod_pids_limit=kubelet.pod_pids_limit,
            single_process_oom_kill=kubelet.single_process_oom_kill,
            memory_qos=config.gate("MemoryQoS"),
            memory_reservation=kubelet.memory_reservation_policy == TIERED_RESERVATION,
            memory_throttling_factor=kubelet.memory_throttling_factor,
            qos_reserved_memory_percent=int(reserved.removesuffix("%")) if reserved else None,
            limited_swap=kubelet.memory_swap.swap_behavior == LIMITED_SWAP,
            swap_controller=swap_controller,
            memory_capacity_bytes=node.memory_bytes,
            allocatable_memory_bytes=allocatable_memory_bytes,
            swap_capacity_bytes=node.swap_bytes,
            hugepage_sizes=tuple(sorted(node.hugepages_bytes)),
            page_size_bytes=node.page_size_bytes,
        )
