"""Object metadata, label selectors and time stamps (k8s.io/apimachinery meta/v1)."""

from datetime import UTC, datetime
from typing import Any

from msgspec import field

from nodeagent.api.base import ApiObject, Int64, Timestamp


def format_time(moment: datetime) -> str:
    """Return RFC 3339 text in UTC with whole seconds, as Kubernetes writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """Read RFC 3339 text; raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without a zone: {text!r}, expected for example 2025-01-31T12:00:00Z")
    return moment.astimezone(UTC)


class ManagedFieldsEntry(ApiObject, frozen=True, kw_only=True):
    api_version: str | None = None
    fields_type: str | None = None
    fields_v1: dict[str, Any] | None = None
    manager: str | None = None
    operation: str | None = None
    subresource: str | None = None
    time: Timestamp | None = None


class OwnerReference(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    uid: str = ""
    api_version: str = ""
    block_owner_deletion: bool | None = None
    controller: bool | None = None
    kind: str = ""


class ObjectMeta(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    creation_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: Int64 | None = None
    deletion_timestamp: Timestamp | None = None
    finalizers: tuple[str, ...] = ()
    generate_name: str | None = None
    generation: Int64 | None = None
    labels: dict[str, str] = field(default_factory=dict)
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
    resource_version: str | None = None
    self_link: str | None = None


class LabelSelectorRequirement(ApiObject, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(ApiObject, frozen=True, kw_only=True):
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_labels: dict[str, str] = field(default_factory=dict)
