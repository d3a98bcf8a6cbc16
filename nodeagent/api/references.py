"""References to other objects (core/v1)."""

from nodeagent.api.base import ApiObject


class LocalObjectReference(ApiObject, frozen=True, kw_only=True):
    name: str | None = None


class ObjectReference(ApiObject, frozen=True, kw_only=True):
    """Which object, or which part of it by `field_path`, something is about."""

    api_version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    field_path: str | None = None
