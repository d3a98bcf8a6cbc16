"""Volume sources of the in-tree storage drivers (core/v1): decoded strictly, mounted by nobody here."""

from msgspec import field

from nodeagent.api.base import ApiObject, Int32
from nodeagent.api.references import LocalObjectReference


class AWSElasticBlockStoreVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    partition: Int32 | None = None
    read_only: bool = False
    volume_id: str = ""


class AzureDiskVolumeSource(ApiObject, frozen=True, kw_only=True):
    caching_mode: str | None = None
    disk_name: str = ""
    disk_uri: str = ""
    fs_type: str | None = None
    kind: str | None = None
    read_only: bool = False


class AzureFileVolumeSource(ApiObject, frozen=True, kw_only=True):
    read_only: bool = False
    secret_name: str = ""
    share_name: str = ""


class CephFSVolumeSource(ApiObject, frozen=True, kw_only=True):
    monitors: tuple[str, ...] = ()
    path: str | None = None
    read_only: bool = False
    secret_file: str | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class CinderVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_id: str = ""


class FCVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    lun: Int32 | None = None
    read_only: bool = False
    target_wwns: tuple[str, ...] = ()
    wwids: tuple[str, ...] = ()


class FlexVolumeSource(ApiObject, frozen=True, kw_only=True):
    driver: str = ""
    fs_type: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class FlockerVolumeSource(ApiObject, frozen=True, kw_only=True):
    dataset_name: str | None = None
    dataset_uuid: str | None = None


class GCEPersistentDiskVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    partition: Int32 | None = None
    pd_name: str = ""
    read_only: bool = False


class GitRepoVolumeSource(ApiObject, frozen=True, kw_only=True):
    directory: str | None = None
    repository: str = ""
    revision: str | None = None


class GlusterfsVolumeSource(ApiObject, frozen=True, kw_only=True):
    endpoints: str = ""
    path: str = ""
    read_only: bool = False


class ISCSIVolumeSource(ApiObject, frozen=True, kw_only=True):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str | None = None
    initiator_name: str | None = None
    iqn: str = ""
    iscsi_interface: str | None = None
    lun: Int32 = 0
    portals: tuple[str, ...] = ()
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    target_portal: str = ""


class PhotonPersistentDiskVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    pd_id: str = ""


class PortworxVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    read_only: bool = False
    volume_id: str = ""


class QuobyteVolumeSource(ApiObject, frozen=True, kw_only=True):
    group: str | None = None
    read_only: bool = False
    registry: str = ""
    tenant: str | None = None
    user: str | None = None
    volume: str = ""


class RBDVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    image: str = ""
    keyring: str | None = None
    monitors: tuple[str, ...] = ()
    pool: str | None = None
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class ScaleIOVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    gateway: str = ""
    protection_domain: str | None = None
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    ssl_enabled: bool = False
    storage_mode: str | None = None
    storage_pool: str | None = None
    system: str = ""
    volume_name: str | None = None


class StorageOSVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


class VsphereVirtualDiskVolumeSource(ApiObject, frozen=True, kw_only=True):
    fs_type: str | None = None
    storage_policy_id: str | None = None
    storage_policy_name: str | None = None
    volume_path: str = ""
