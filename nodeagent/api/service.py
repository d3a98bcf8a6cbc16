"""Service (core/v1)."""

from msgspec import field

from nodeagent.api.base import ApiObject, Int32, Int64, IntOrString, Timestamp
from nodeagent.api.meta import ObjectMeta

CLUSTER_IP = "ClusterIP"
NODE_PORT = "NodePort"
LOAD_BALANCER = "LoadBalancer"


class ServicePort(ApiObject, frozen=True, kw_only=True):
    app_protocol: str | None = None
    name: str | None = None
    node_port: Int32 | None = None
    port: Int32 = 0
    protocol: str | None = None
    target_port: IntOrString | None = None


class ClientIPConfig(ApiObject, frozen=True, kw_only=True):
    timeout_seconds: Int32 | None = None


class SessionAffinityConfig(ApiObject, frozen=True, kw_only=True):
    client_ip: ClientIPConfig | None = None


class ServiceSpec(ApiObject, frozen=True, kw_only=True):
    allocate_load_balancer_node_ports: bool | None = None
    cluster_ip: str | None = None
    cluster_ips: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = ()
    external_name: str | None = None
    external_traffic_policy: str | None = None
    health_check_node_port: Int32 | None = None
    internal_traffic_policy: str | None = None
    ip_families: tuple[str, ...] = ()
    ip_family_policy: str | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str | None = None
    load_balancer_source_ranges: tuple[str, ...] = ()
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False
    selector: dict[str, str] = field(default_factory=dict)
    session_affinity: str | None = None
    session_affinity_config: SessionAffinityConfig | None = None
    traffic_distribution: str | None = None
    type: str | None = None


class PortStatus(ApiObject, frozen=True, kw_only=True):
    error: str | None = None
    port: Int32
    protocol: str


class LoadBalancerIngress(ApiObject, frozen=True, kw_only=True):
    hostname: str | None = None
    ip: str | None = None
    ip_mode: str | None = None
    ports: tuple[PortStatus, ...] = ()


class LoadBalancerStatus(ApiObject, frozen=True, kw_only=True):
    ingress: tuple[LoadBalancerIngress, ...] = ()


class Condition(ApiObject, frozen=True, kw_only=True):
    type: str
    status: str
    observed_generation: Int64 | None = None
    last_transition_time: Timestamp
    reason: str
    message: str


class ServiceStatus(ApiObject, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


class Service(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()
