"""The Pod (core/v1, Kubernetes 1.36), and every part of it under one name."""

from msgspec import field

from nodeagent.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from nodeagent.api.base import ApiObject, Int32, Int64
from nodeagent.api.container import (
    AppArmorProfile,
    Capabilities,
    ConfigMapEnvSource,
    ConfigMapKeySelector,
    Container,
    ContainerPort,
    ContainerResizePolicy,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    EphemeralContainer,
    ExecAction,
    FileKeySelector,
    GRPCAction,
    HTTPGetAction,
    HTTPHeader,
    Lifecycle,
    LifecycleHandler,
    Probe,
    ResourceClaim,
    ResourceRequirements,
    SeccompProfile,
    SecretEnvSource,
    SecretKeySelector,
    SecurityContext,
    SELinuxOptions,
    SleepAction,
    TCPSocketAction,
    VolumeDevice,
    VolumeMount,
    WindowsSecurityContextOptions,
)
from nodeagent.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from nodeagent.api.pod_status import (
    ContainerExtendedResourceRequest,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    ContainerUser,
    HostIP,
    ImageVolumeStatus,
    LinuxContainerUser,
    NodeAllocatableResourceClaimStatus,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodIP,
    PodResourceClaimStatus,
    PodStatus,
    ResourceHealth,
    ResourceStatus,
    VolumeMountStatus,
    VolumeStatus,
)
from nodeagent.api.quantity import Quantity
from nodeagent.api.references import LocalObjectReference
from nodeagent.api.volumes import (
    ClusterTrustBundleProjection,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    CSIVolumeSource,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    KeyToPath,
    NFSVolumeSource,
    ObjectFieldSelector,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource,
    PodCertificateProjection,
    ProjectedVolumeSource,
    ResourceFieldSelector,
    SecretProjection,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    TypedLocalObjectReference,
    TypedObjectReference,
    Volume,
    VolumeProjection,
    VolumeResourceRequirements,
)

__all__ = [
    "Affinity",
    "AppArmorProfile",
    "CSIVolumeSource",
    "Capabilities",
    "ClusterTrustBundleProjection",
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerExtendedResourceRequest",
    "ContainerPort",
    "ContainerResizePolicy",
    "ContainerRestartRule",
    "ContainerRestartRuleOnExitCodes",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "ContainerUser",
    "DownwardAPIProjection",
    "DownwardAPIVolumeFile",
    "DownwardAPIVolumeSource",
    "EmptyDirVolumeSource",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "EphemeralVolumeSource",
    "ExecAction",
    "FileKeySelector",
    "GRPCAction",
    "HTTPGetAction",
    "HTTPHeader",
    "HostAlias",
    "HostIP",
    "HostPathVolumeSource",
    "ImageVolumeSource",
    "ImageVolumeStatus",
    "KeyToPath",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Lifecycle",
    "LifecycleHandler",
    "LinuxContainerUser",
    "LocalObjectReference",
    "NFSVolumeSource",
    "NodeAffinity",
    "NodeAllocatableResourceClaimStatus",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ObjectMeta",
    "OwnerReference",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodCertificateProjection",
    "PodCondition",
    "PodDNSConfig",
    "PodDNSConfigOption",
    "PodExtendedResourceClaimStatus",
    "PodIP",
    "PodOS",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSecurityContext",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "Probe",
    "ProjectedVolumeSource",
    "ResourceClaim",
    "ResourceFieldSelector",
    "ResourceHealth",
    "ResourceRequirements",
    "ResourceStatus",
    "SELinuxOptions",
    "SeccompProfile",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
    "SecretVolumeSource",
    "SecurityContext",
    "ServiceAccountTokenProjection",
    "SleepAction",
    "Sysctl",
    "TCPSocketAction",
    "Toleration",
    "TopologySpreadConstraint",
    "TypedLocalObjectReference",
    "TypedObjectReference",
    "Volume",
    "VolumeDevice",
    "VolumeMount",
    "VolumeMountStatus",
    "VolumeProjection",
    "VolumeResourceRequirements",
    "VolumeStatus",
    "WeightedPodAffinityTerm",
    "WindowsSecurityContextOptions",
]


class PodDNSConfigOption(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    value: str | None = None


class PodDNSConfig(ApiObject, frozen=True, kw_only=True):
    nameservers: tuple[str, ...] = ()
    options: tuple[PodDNSConfigOption, ...] = ()
    searches: tuple[str, ...] = ()


class HostAlias(ApiObject, frozen=True, kw_only=True):
    hostnames: tuple[str, ...] = ()
    ip: str = ""


class PodOS(ApiObject, frozen=True, kw_only=True):
    name: str = ""


class PodReadinessGate(ApiObject, frozen=True, kw_only=True):
    condition_type: str = ""


class PodResourceClaim(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(ApiObject, frozen=True, kw_only=True):
    name: str = ""


class PodSchedulingGroup(ApiObject, frozen=True, kw_only=True):
    pod_group_name: str | None = None


class Sysctl(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class PodSecurityContext(ApiObject, frozen=True, kw_only=True):
    app_armor_profile: AppArmorProfile | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: tuple[Int64, ...] = ()
    supplemental_groups_policy: str | None = None
    sysctls: tuple[Sysctl, ...] = ()
    windows_options: WindowsSecurityContextOptions | None = None


class PodSpec(ApiObject, frozen=True, kw_only=True):
    active_deadline_seconds: Int64 | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    containers: tuple[Container, ...] = ()
    dns_config: PodDNSConfig | None = None
    dns_policy: str | None = None
    enable_service_links: bool | None = None
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    host_aliases: tuple[HostAlias, ...] = ()
    host_ipc: bool = False
    host_network: bool = False
    host_pid: bool = False
    host_users: bool | None = None
    hostname: str | None = None
    hostname_override: str | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    os: PodOS | None = None
    overhead: dict[str, Quantity] = field(default_factory=dict)
    preemption_policy: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    runtime_class_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    set_hostname_as_fqdn: bool | None = None
    share_process_namespace: bool | None = None
    subdomain: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()


class Pod(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
