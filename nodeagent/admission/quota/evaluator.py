"""What the objects of one kind use of a quota, and which quotas they belong to."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Generic, TypeVar

from nodeagent.admission.quota.scopes import Requirement
from nodeagent.admission.request import GroupResource, HasMetadata, Operation, Request
from nodeagent.api.quantity import Quantity
from nodeagent.api.resource_names import is_native
from nodeagent.api.resources import Resources

T = TypeVar("T", bound=HasMetadata)

ONE = Quantity.of(1)
REQUESTS_PREFIX = "requests."
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
DEVICE_CLASS_REQUESTS_PREFIX = f"{REQUESTS_PREFIX}{DEVICE_CLASS_PREFIX}"


class Evaluator(Generic[T]):
    """Counts objects; kinds that use more than a place in the store have evaluators of their own."""

    def __init__(self, resource: GroupResource, *aliases: str) -> None:
        """Make the evaluator of a kind; `aliases` are names by which quotas count it beside `count/...`."""
        self.resource = resource
        self.names = (f"count/{resource}", *aliases)

    def handles(self, request: Request[T]) -> bool:
        """Whether the request may change what is used."""
        return request.operation is Operation.CREATE and not request.subresource

    def matching(self, names: Iterable[str]) -> list[str]:
        """Return those names of quota resources that objects of this kind may use, sorted."""
        return sorted(name for name in names if self.uses(name))

    def uses(self, name: str) -> bool:
        return name in self.names

    def selected(self, item: T, requirement: Requirement) -> bool:
        """Whether a scope selects the object; kinds without scopes are never selected."""
        return False

    def missing(self, item: T, names: Collection[str]) -> str:
        """Return what the object has to state because a quota has `names`; nothing if all is there."""
        return ""

    def usage(self, item: T, now: datetime) -> Resources:
        """Return what the object uses, by names of quota resources."""
        return dict.fromkeys(self.names, ONE)


def is_request_for_device(name: str) -> bool:
    """Whether a quota's resource counts requests for what a device plugin or a DeviceClass offers."""
    return name.startswith(DEVICE_CLASS_REQUESTS_PREFIX) or (
        name.startswith(REQUESTS_PREFIX) and not is_native(name)
    )
