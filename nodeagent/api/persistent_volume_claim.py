"""PersistentVolumeClaim (core/v1)."""

from msgspec import field

from nodeagent.api.base import ApiObject, Timestamp
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.quantity import Quantity
from nodeagent.api.volumes import PersistentVolumeClaimSpec

STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class PersistentVolumeClaimCondition(ApiObject, frozen=True, kw_only=True):
    type: str
    last_probe_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None
    message: str | None = None
    reason: str | None = None
    status: str


class ModifyVolumeStatus(ApiObject, frozen=True, kw_only=True):
    status: str
    target_volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(ApiObject, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] = ()
    allocated_resource_statuses: dict[str, str] = field(default_factory=dict)
    allocated_resources: dict[str, Quantity] = field(default_factory=dict)
    capacity: dict[str, Quantity] = field(default_factory=dict)
    conditions: tuple[PersistentVolumeClaimCondition, ...] = ()
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    phase: str | None = None


class PersistentVolumeClaim(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


def storage_class(claim: PersistentVolumeClaim) -> str:
    """Return the name of the claim's StorageClass, the old annotation first, as Kubernetes does."""
    by_annotation = claim.metadata.annotations.get(STORAGE_CLASS_ANNOTATION)
    return by_annotation if by_annotation is not None else claim.spec.storage_class_name or ""
