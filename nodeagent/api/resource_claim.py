"""ResourceClaim (resource.k8s.io/v1), only what a quota counts: other fields are read and dropped."""

from nodeagent.api.base import ApiObject, Int64
from nodeagent.api.meta import ObjectMeta

EXACT_COUNT = "ExactCount"
ALL = "All"


class ExactDeviceRequest(ApiObject, frozen=True, kw_only=True, forbid_unknown_fields=False):
    device_class_name: str = ""
    allocation_mode: str | None = None
    count: Int64 | None = None


class DeviceSubRequest(ExactDeviceRequest, frozen=True, kw_only=True, forbid_unknown_fields=False):
    name: str = ""


class DeviceRequest(ApiObject, frozen=True, kw_only=True, forbid_unknown_fields=False):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceClaim(ApiObject, frozen=True, kw_only=True, forbid_unknown_fields=False):
    requests: tuple[DeviceRequest, ...] = ()


class ResourceClaimSpec(ApiObject, frozen=True, kw_only=True, forbid_unknown_fields=False):
    devices: DeviceClaim = DeviceClaim()


class ResourceClaim(ApiObject, frozen=True, kw_only=True, forbid_unknown_fields=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
