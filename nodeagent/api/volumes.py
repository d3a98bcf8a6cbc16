"""Volumes of a pod (core/v1). Kinds of storage that no node has any longer are in volumes_legacy."""

from msgspec import field

from nodeagent.api.base import ApiObject, Int32, Int64
from nodeagent.api.meta import LabelSelector, ObjectMeta
from nodeagent.api.quantity import Quantity
from nodeagent.api.references import LocalObjectReference
from nodeagent.api.volumes_legacy import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CephFSVolumeSource,
    CinderVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    GitRepoVolumeSource,
    GlusterfsVolumeSource,
    ISCSIVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    RBDVolumeSource,
    ScaleIOVolumeSource,
    StorageOSVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class KeyToPath(ApiObject, frozen=True, kw_only=True):
    key: str = ""
    mode: Int32 | None = None
    path: str = ""


class ConfigMapVolumeSource(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    default_mode: Int32 | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class SecretVolumeSource(ApiObject, frozen=True, kw_only=True):
    default_mode: Int32 | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None
    secret_name: str | None = None


class ObjectFieldSelector(ApiObject, frozen=True, kw_only=True):
    api_version: str | None = None
    field_path: str = ""


class ResourceFieldSelector(ApiObject, frozen=True, kw_only=True):
    container_name: str | None = None
    divisor: Quantity | None = None
    resource: str = ""


class DownwardAPIVolumeFile(ApiObject, frozen=True, kw_only=True):
    field_ref: ObjectFieldSelector | None = None
    mode: Int32 | None = None
    path: str = ""
    resource_field_ref: ResourceFieldSelector | None = None


class DownwardAPIVolumeSource(ApiObject, frozen=True, kw_only=True):
    default_mode: Int32 | None = None
    items: tuple[DownwardAPIVolumeFile, ...] = ()


class EmptyDirVolumeSource(ApiObject, frozen=True, kw_only=True):
    medium: str | None = None
    size_limit: Quantity | None = None


class HostPathVolumeSource(ApiObject, frozen=True, kw_only=True):
    type: str | None = None
    path: str = ""


class ImageVolumeSource(ApiObject, frozen=True, kw_only=True):
    pull_policy: str | None = None
    reference: str | None = None


class NFSVolumeSource(ApiObject, frozen=True, kw_only=True):
    path: str = ""
    read_only: bool = False
    server: str = ""


class PersistentVolumeClaimVolumeSource(ApiObject, frozen=True, kw_only=True):
    claim_name: str = ""
    read_only: bool = False


class CSIVolumeSource(ApiObject, frozen=True, kw_only=True):
    driver: str = ""
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    volume_attributes: dict[str, str] = field(default_factory=dict)


class TypedLocalObjectReference(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    api_group: str | None = None
    kind: str = ""


class TypedObjectReference(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    namespace: str | None = None
    api_group: str | None = None
    kind: str = ""


class VolumeResourceRequirements(ApiObject, frozen=True, kw_only=True):
    limits: dict[str, Quantity] = field(default_factory=dict)
    requests: dict[str, Quantity] = field(default_factory=dict)


class PersistentVolumeClaimSpec(ApiObject, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] = ()
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class PersistentVolumeClaimTemplate(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(ApiObject, frozen=True, kw_only=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ConfigMapProjection(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class SecretProjection(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardAPIProjection(ApiObject, frozen=True, kw_only=True):
    items: tuple[DownwardAPIVolumeFile, ...] = ()


class ServiceAccountTokenProjection(ApiObject, frozen=True, kw_only=True):
    audience: str | None = None
    expiration_seconds: Int64 | None = None
    path: str = ""


class ClusterTrustBundleProjection(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: str = ""
    signer_name: str | None = None


class PodCertificateProjection(ApiObject, frozen=True, kw_only=True):
    certificate_chain_path: str | None = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    key_type: str = ""
    max_expiration_seconds: Int32 | None = None
    signer_name: str = ""
    user_annotations: dict[str, str] = field(default_factory=dict)


class VolumeProjection(ApiObject, frozen=True, kw_only=True):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = None
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(ApiObject, frozen=True, kw_only=True):
    default_mode: Int32 | None = None
    sources: tuple[VolumeProjection, ...] = ()


class Volume(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
