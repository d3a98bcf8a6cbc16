"""Containers of a pod and what they are made of (core/v1)."""

from msgspec import field

from nodeagent.api.base import ApiObject, Int32, Int64, IntOrString
from nodeagent.api.quantity import Quantity
from nodeagent.api.volumes import ObjectFieldSelector, ResourceFieldSelector


class ConfigMapKeySelector(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    key: str = ""
    optional: bool | None = None


class SecretKeySelector(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    key: str = ""
    optional: bool | None = None


class FileKeySelector(ApiObject, frozen=True, kw_only=True):
    key: str = ""
    optional: bool | None = None
    path: str = ""
    volume_name: str = ""


class EnvVarSource(ApiObject, frozen=True, kw_only=True):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    value: str | None = None
    value_from: EnvVarSource | None = None


class ConfigMapEnvSource(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    optional: bool | None = None


class SecretEnvSource(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    optional: bool | None = None


class EnvFromSource(ApiObject, frozen=True, kw_only=True):
    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str | None = None
    secret_ref: SecretEnvSource | None = None


class ExecAction(ApiObject, frozen=True, kw_only=True):
    command: tuple[str, ...] = ()


class HTTPHeader(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class HTTPGetAction(ApiObject, frozen=True, kw_only=True):
    host: str | None = None
    http_headers: tuple[HTTPHeader, ...] = ()
    path: str | None = None
    port: IntOrString = 0
    scheme: str | None = None


class TCPSocketAction(ApiObject, frozen=True, kw_only=True):
    host: str | None = None
    port: IntOrString = 0


class SleepAction(ApiObject, frozen=True, kw_only=True):
    seconds: Int64 = 0


class GRPCAction(ApiObject, frozen=True, kw_only=True):
    port: Int32 = 0
    service: str | None = None


class LifecycleHandler(ApiObject, frozen=True, kw_only=True):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(ApiObject, frozen=True, kw_only=True):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class Probe(ApiObject, frozen=True, kw_only=True):
    exec: ExecAction | None = None
    failure_threshold: Int32 | None = None
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: Int32 | None = None
    period_seconds: Int32 | None = None
    success_threshold: Int32 | None = None
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: Int64 | None = None
    timeout_seconds: Int32 | None = None


class ContainerPort(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    container_port: Int32 = 0
    host_ip: str | None = None
    host_port: Int32 | None = None
    protocol: str | None = None


class ContainerResizePolicy(ApiObject, frozen=True, kw_only=True):
    resource_name: str = ""
    restart_policy: str = ""


class ResourceClaim(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    request: str | None = None


class ResourceRequirements(ApiObject, frozen=True, kw_only=True):
    claims: tuple[ResourceClaim, ...] = ()
    limits: dict[str, Quantity] = field(default_factory=dict)
    requests: dict[str, Quantity] = field(default_factory=dict)


class ContainerRestartRuleOnExitCodes(ApiObject, frozen=True, kw_only=True):
    operator: str = ""
    values: tuple[Int32, ...] = ()


class ContainerRestartRule(ApiObject, frozen=True, kw_only=True):
    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class AppArmorProfile(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    localhost_profile: str | None = None


class Capabilities(ApiObject, frozen=True, kw_only=True):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SELinuxOptions(ApiObject, frozen=True, kw_only=True):
    type: str | None = None
    level: str | None = None
    role: str | None = None
    user: str | None = None


class SeccompProfile(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    localhost_profile: str | None = None


class WindowsSecurityContextOptions(ApiObject, frozen=True, kw_only=True):
    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: bool | None = None
    run_as_user_name: str | None = None


class SecurityContext(ApiObject, frozen=True, kw_only=True):
    allow_privilege_escalation: bool | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class VolumeDevice(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    device_path: str = ""


class VolumeMount(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    mount_path: str = ""
    mount_propagation: str | None = None
    read_only: bool = False
    recursive_read_only: str | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


class Container(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    ports: tuple[ContainerPort, ...] = ()
    readiness_probe: Probe | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool = False
    stdin_once: bool = False
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool = False
    volume_devices: tuple[VolumeDevice, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    working_dir: str | None = None


class EphemeralContainer(Container, frozen=True, kw_only=True):
    target_container_name: str | None = None
