"""References to other objects (core/v1)."""

from nodeagent.api.base import ApiObject


class LocalObjectReference(ApiObject, frozen=True, kw_only=True):
    name: str | None = None
