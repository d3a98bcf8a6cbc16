"""kubelet's /stats/summary (k8s.io/kubelet stats/v1alpha1), key for key."""

from datetime import datetime

from msgspec import Struct, field


class StatsObject(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every part; what is unknown is left out."""


class PSIData(StatsObject, frozen=True, kw_only=True):
    """One line of a pressure file. `total` is in microseconds, as kubelet really sends it."""

    total: int
    avg10: float
    avg60: float
    avg300: float


class PSIStats(StatsObject, frozen=True, kw_only=True):
    full: PSIData
    some: PSIData


class CPUStats(StatsObject, frozen=True, kw_only=True):
    time: datetime | None = None
    usage_nano_cores: int | None = None
    usage_core_nano_seconds: int | None = None
    psi: PSIStats | None = None


class MemoryStats(StatsObject, frozen=True, kw_only=True):
    time: datetime | None = None
    available_bytes: int | None = None
    usage_bytes: int | None = None
    working_set_bytes: int | None = None
    rss_bytes: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None
    psi: PSIStats | None = None


class IOStats(StatsObject, frozen=True, kw_only=True):
    time: datetime | None = None
    psi: PSIStats | None = None


class InterfaceStats(StatsObject, frozen=True, kw_only=True):
    name: str
    rx_bytes: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_errors: int | None = None


class NetworkStats(InterfaceStats, frozen=True, kw_only=True):
    """The default interface's figures, and all interfaces'."""

    time: datetime | None = None
    interfaces: tuple[InterfaceStats, ...] = ()


class FsStats(StatsObject, frozen=True, kw_only=True):
    time: datetime | None = None
    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class RuntimeStats(StatsObject, frozen=True, kw_only=True):
    image_fs: FsStats | None = None
    container_fs: FsStats | None = None


class RlimitStats(StatsObject, frozen=True, kw_only=True):
    time: datetime | None = None
    max_pid: int | None = field(default=None, name="maxpid")
    current_processes: int | None = field(default=None, name="curproc")


class SwapStats(StatsObject, frozen=True, kw_only=True):
    time: datetime | None = None
    swap_available_bytes: int | None = None
    swap_usage_bytes: int | None = None


class ProcessStats(StatsObject, frozen=True, kw_only=True):
    process_count: int | None = field(default=None, name="process_count")


class PVCReference(StatsObject, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""


class VolumeStats(FsStats, frozen=True, kw_only=True):
    name: str
    pvc_ref: PVCReference | None = None


class ContainerStats(StatsObject, frozen=True, kw_only=True):
    name: str
    start_time: datetime | None = None
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    rootfs: FsStats | None = None
    logs: FsStats | None = None
    swap: SwapStats | None = None


class PodReference(StatsObject, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str


class PodStats(StatsObject, frozen=True, kw_only=True):
    pod_ref: PodReference
    start_time: datetime | None = None
    containers: tuple[ContainerStats, ...] = ()
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    network: NetworkStats | None = None
    volumes: tuple[VolumeStats, ...] = field(default=(), name="volume")
    ephemeral_storage: FsStats | None = field(default=None, name="ephemeral-storage")
    process_stats: ProcessStats | None = field(default=None, name="process_stats")
    swap: SwapStats | None = None


class NodeStats(StatsObject, frozen=True, kw_only=True):
    node_name: str = ""
    system_containers: tuple[ContainerStats, ...] = ()
    start_time: datetime | None = None
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    io: IOStats | None = None
    network: NetworkStats | None = None
    fs: FsStats | None = None
    runtime: RuntimeStats | None = None
    rlimit: RlimitStats | None = None
    swap: SwapStats | None = None


class Summary(StatsObject, frozen=True, kw_only=True):
    """Everything that is known about usage, of the node and of each pod."""

    node: NodeStats
    pods: tuple[PodStats, ...]
