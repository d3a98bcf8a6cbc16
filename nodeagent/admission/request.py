"""What is asked of the API: which operation, on which object."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from nodeagent.api.meta import ObjectMeta


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class GroupResource:
    """A kind of object by its plural name; `str()` as in messages: "pods", "deployments.apps"."""

    resource: str
    group: str = ""

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


RESIZE = "resize"
STATUS = "status"

PODS = GroupResource("pods")
PERSISTENT_VOLUME_CLAIMS = GroupResource("persistentvolumeclaims")
PRIORITY_CLASSES = GroupResource("priorityclasses", "scheduling.k8s.io")


class HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One request; `old` is the object as stored, for all but CREATE."""

    resource: GroupResource
    object: T
    operation: Operation = Operation.CREATE
    old: T | None = None
    subresource: str = ""
    dry_run: bool = False

    @property
    def name(self) -> str:
        """What messages call the object; a generated name does not exist yet."""
        metadata = self.object.metadata
        return metadata.name or metadata.generate_name or "Unknown"
