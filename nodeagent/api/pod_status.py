"""What is observed of a pod (core/v1 PodStatus). Fields without a default are always written out."""

from msgspec import field

from nodeagent.api.base import ApiObject, Int32, Int64, Timestamp
from nodeagent.api.container import ResourceRequirements
from nodeagent.api.quantity import Quantity


class PodCondition(ApiObject, frozen=True, kw_only=True):
    type: str
    last_probe_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None
    message: str | None = None
    observed_generation: Int64 | None = None
    reason: str | None = None
    status: str


class ResourceHealth(ApiObject, frozen=True, kw_only=True):
    health: str | None = None
    message: str | None = None
    resource_id: str


class ResourceStatus(ApiObject, frozen=True, kw_only=True):
    name: str
    resources: tuple[ResourceHealth, ...] = ()


class ContainerStateWaiting(ApiObject, frozen=True, kw_only=True):
    message: str | None = None
    reason: str | None = None


class ContainerStateRunning(ApiObject, frozen=True, kw_only=True):
    started_at: Timestamp | None = None


class ContainerStateTerminated(ApiObject, frozen=True, kw_only=True):
    container_id: str | None = None
    exit_code: Int32
    finished_at: Timestamp | None = None
    message: str | None = None
    reason: str | None = None
    signal: Int32 | None = None
    started_at: Timestamp | None = None


class ContainerState(ApiObject, frozen=True, kw_only=True):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class LinuxContainerUser(ApiObject, frozen=True, kw_only=True):
    uid: Int64
    gid: Int64
    supplemental_groups: tuple[Int64, ...] = ()


class ContainerUser(ApiObject, frozen=True, kw_only=True):
    linux: LinuxContainerUser | None = None


class ImageVolumeStatus(ApiObject, frozen=True, kw_only=True):
    image_ref: str


class VolumeStatus(ApiObject, frozen=True, kw_only=True):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(ApiObject, frozen=True, kw_only=True):
    name: str
    mount_path: str
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class ContainerStatus(ApiObject, frozen=True, kw_only=True):
    name: str
    allocated_resources: dict[str, Quantity] = field(default_factory=dict)
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    container_id: str | None = None
    image: str
    image_id: str
    last_state: ContainerState = ContainerState()
    ready: bool
    resources: ResourceRequirements | None = None
    restart_count: Int32
    started: bool | None = None
    state: ContainerState = ContainerState()
    stop_signal: str | None = None
    user: ContainerUser | None = None
    volume_mounts: tuple[VolumeMountStatus, ...] = ()


class ContainerExtendedResourceRequest(ApiObject, frozen=True, kw_only=True):
    container_name: str
    request_name: str
    resource_name: str


class PodExtendedResourceClaimStatus(ApiObject, frozen=True, kw_only=True):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str


class NodeAllocatableResourceClaimStatus(ApiObject, frozen=True, kw_only=True):
    containers: tuple[str, ...] = ()
    resource_claim_name: str
    resources: dict[str, Quantity] = field(default_factory=dict)


class HostIP(ApiObject, frozen=True, kw_only=True):
    ip: str


class PodIP(ApiObject, frozen=True, kw_only=True):
    ip: str


class PodResourceClaimStatus(ApiObject, frozen=True, kw_only=True):
    name: str
    resource_claim_name: str | None = None


class PodStatus(ApiObject, frozen=True, kw_only=True):
    allocated_resources: dict[str, Quantity] = field(default_factory=dict)
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    host_ip: str | None = None
    host_ips: tuple[HostIP, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    message: str | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    nominated_node_name: str | None = None
    observed_generation: Int64 | None = None
    phase: str | None = None
    pod_ip: str | None = None
    pod_ips: tuple[PodIP, ...] = ()
    qos_class: str | None = None
    reason: str | None = None
    resize: str | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    resources: ResourceRequirements | None = None
    start_time: Timestamp | None = None
