"""The Node (core/v1, Kubernetes 1.36)."""

from msgspec import field

from nodeagent.api.base import ApiObject, Int32, Int64, Timestamp
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.quantity import Quantity


class Taint(ApiObject, frozen=True, kw_only=True):
    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: Timestamp | None = None


class ConfigMapNodeConfigSource(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str | None = None
    kubelet_config_key: str = ""
    resource_version: str | None = None


class NodeConfigSource(ApiObject, frozen=True, kw_only=True):
    config_map: ConfigMapNodeConfigSource | None = None


class NodeSpec(ApiObject, frozen=True, kw_only=True):
    config_source: NodeConfigSource | None = None
    external_id: str | None = None
    pod_cidr: str | None = None
    pod_cidrs: tuple[str, ...] = ()
    provider_id: str | None = None
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeAddress(ApiObject, frozen=True, kw_only=True):
    type: str
    address: str


class NodeCondition(ApiObject, frozen=True, kw_only=True):
    type: str
    status: str
    last_heartbeat_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None
    reason: str | None = None
    message: str | None = None


class NodeConfigStatus(ApiObject, frozen=True, kw_only=True):
    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str | None = None
    last_known_good: NodeConfigSource | None = None


class DaemonEndpoint(ApiObject, frozen=True, kw_only=True):
    # Kubernetes spells this one name with a capital.
    port: Int32 = field(name="Port")


class NodeDaemonEndpoints(ApiObject, frozen=True, kw_only=True):
    kubelet_endpoint: DaemonEndpoint | None = None


class NodeFeatures(ApiObject, frozen=True, kw_only=True):
    supplemental_groups_policy: bool | None = None


class ContainerImage(ApiObject, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size_bytes: Int64 | None = None


class NodeSwapStatus(ApiObject, frozen=True, kw_only=True):
    capacity: Int64 | None = None


class NodeSystemInfo(ApiObject, frozen=True, kw_only=True):
    architecture: str = ""
    boot_id: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    kube_proxy_version: str = ""
    kubelet_version: str = ""
    machine_id: str = ""
    operating_system: str = ""
    os_image: str = ""
    swap: NodeSwapStatus | None = None
    system_uuid: str = ""


class NodeRuntimeHandlerFeatures(ApiObject, frozen=True, kw_only=True):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    features: NodeRuntimeHandlerFeatures | None = None


class AttachedVolume(ApiObject, frozen=True, kw_only=True):
    name: str
    device_path: str


class NodeStatus(ApiObject, frozen=True, kw_only=True):
    addresses: tuple[NodeAddress, ...] = ()
    allocatable: dict[str, Quantity] = field(default_factory=dict)
    capacity: dict[str, Quantity] = field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()
    config: NodeConfigStatus | None = None
    daemon_endpoints: NodeDaemonEndpoints | None = None
    declared_features: tuple[str, ...] = ()
    features: NodeFeatures | None = None
    images: tuple[ContainerImage, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    phase: str | None = None
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


class Node(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
