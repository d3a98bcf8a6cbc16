"""What services, volume claims and resource claims use of a quota."""

from collections.abc import Iterable
from datetime import datetime

from nodeagent.admission.quota.evaluator import (
    DEVICE_CLASS_REQUESTS_PREFIX,
    ONE,
    Evaluator,
    is_request_for_device,
)
from nodeagent.admission.quota.scopes import Requirement, Scope, chooses
from nodeagent.admission.request import PERSISTENT_VOLUME_CLAIMS, STATUS, GroupResource, Operation, Request
from nodeagent.api.persistent_volume_claim import PersistentVolumeClaim, storage_class
from nodeagent.api.quantity import Quantity
from nodeagent.api.resource_claim import ALL, EXACT_COUNT, ExactDeviceRequest, ResourceClaim
from nodeagent.api.resource_names import STORAGE
from nodeagent.api.resources import Resources, add_to, raise_to
from nodeagent.api.service import LOAD_BALANCER, NODE_PORT, Service

CLAIMS = "persistentvolumeclaims"
REQUESTS_STORAGE = "requests.storage"
STORAGE_CLASS_INFIX = ".storageclass.storage.k8s.io/"
DEVICES_SUFFIX = ".deviceclass.resource.k8s.io/devices"
# The most that one claim may be given; "all devices" is charged as that many.
MOST_DEVICES = 32


class ServiceEvaluator(Evaluator[Service]):
    """Charges load balancers and node ports as well; a service may change its type."""

    def __init__(self) -> None:
        super().__init__(GroupResource("services"), "services")

    def handles(self, request: Request[Service]) -> bool:
        return _makes_or_changes(request)

    def uses(self, name: str) -> bool:
        return name in self.names or name in ("services.loadbalancers", "services.nodeports")

    def usage(self, item: Service, now: datetime) -> Resources:
        balanced = item.spec.type == LOAD_BALANCER
        ports = item.spec.ports
        if balanced and item.spec.allocate_load_balancer_node_ports is False:
            ports = tuple(port for port in ports if port.node_port)
        exposed = len(ports) if balanced or item.spec.type == NODE_PORT else 0
        return {
            **super().usage(item, now),
            "services.loadbalancers": Quantity.of(int(balanced)),
            "services.nodeports": Quantity.of(exposed),
        }


class PersistentVolumeClaimEvaluator(Evaluator[PersistentVolumeClaim]):
    """Charges claims and their storage, in total and per StorageClass."""

    def __init__(self) -> None:
        super().__init__(PERSISTENT_VOLUME_CLAIMS, CLAIMS)

    def handles(self, request: Request[PersistentVolumeClaim]) -> bool:
        is_growth = request.operation is Operation.UPDATE and request.subresource == STATUS
        return _makes_or_changes(request) or is_growth

    def uses(self, name: str) -> bool:
        return name in self.names or name.rpartition(STORAGE_CLASS_INFIX)[2] in (CLAIMS, REQUESTS_STORAGE)

    def selected(self, item: PersistentVolumeClaim, requirement: Requirement) -> bool:
        if requirement.scope_name != Scope.VOLUME_ATTRIBUTES_CLASS:
            return False
        modification = item.status.modify_volume_status
        names = (
            item.spec.volume_attributes_class_name,
            item.status.current_volume_attributes_class_name,
            modification and modification.target_volume_attributes_class_name,
        )
        return chooses(requirement, {name for name in names if name})

    def usage(self, item: PersistentVolumeClaim, now: datetime) -> Resources:
        used = super().usage(item, now)
        per_class: Resources = {CLAIMS: ONE}
        asked = item.spec.resources.requests.get(STORAGE)
        if asked is not None:
            allocated = item.status.allocated_resources.get(STORAGE, asked)
            per_class[REQUESTS_STORAGE] = max(asked.round_up(), allocated.round_up())
        used.update(per_class)
        name = storage_class(item)
        if name:
            used.update({f"{name}{STORAGE_CLASS_INFIX}{of}": amount for of, amount in per_class.items()})
        return used


class ResourceClaimEvaluator(Evaluator[ResourceClaim]):
    """Charges devices per DeviceClass, under both names that it has in quotas."""

    def __init__(self) -> None:
        super().__init__(GroupResource("resourceclaims", "resource.k8s.io"))

    def handles(self, request: Request[ResourceClaim]) -> bool:
        return _makes_or_changes(request)

    def uses(self, name: str) -> bool:
        return name in self.names or name.endswith(DEVICES_SUFFIX) or is_request_for_device(name)

    def usage(self, item: ResourceClaim, now: datetime) -> Resources:
        used = super().usage(item, now)
        for request in item.spec.devices.requests:
            exactly = (request.exactly,) if request.exactly is not None else ()
            add_to(used, _most_devices(request.first_available or exactly))
        return used


def _most_devices(alternatives: Iterable[ExactDeviceRequest]) -> Resources:
    """Return the most that each class may have to give, as only one of the alternatives comes true."""
    most: Resources = {}
    for request in alternatives:
        counts = {EXACT_COUNT: request.count or 1, ALL: MOST_DEVICES}
        count = counts.get(request.allocation_mode or EXACT_COUNT)
        if count is not None:
            name = request.device_class_name
            names = (f"{name}{DEVICES_SUFFIX}", f"{DEVICE_CLASS_REQUESTS_PREFIX}{name}")
            raise_to(most, dict.fromkeys(names, Quantity.of(count)))
    return most


def _makes_or_changes(
    request: Request[Service] | Request[PersistentVolumeClaim] | Request[ResourceClaim],
) -> bool:
    return request.operation in (Operation.CREATE, Operation.UPDATE) and not request.subresource
