"""How admission is configured (apiserver.config.k8s.io/v1): what needs a quota to be used at all."""

from typing import Any

from msgspec import field

from nodeagent.api.base import ApiObject
from nodeagent.api.policy import ScopedResourceSelectorRequirement


class LimitedResource(ApiObject, frozen=True, kw_only=True):
    """Objects of one resource that may only be made where a quota covers what they take."""

    api_group: str | None = None
    resource: str = ""
    match_contains: tuple[str, ...] = ()
    match_scopes: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaConfiguration(ApiObject, frozen=True, kw_only=True):
    limited_resources: tuple[LimitedResource, ...] = ()


class AdmissionPluginConfiguration(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    path: str | None = None
    configuration: dict[str, Any] = field(default_factory=dict)


class AdmissionConfiguration(ApiObject, frozen=True, kw_only=True):
    plugins: tuple[AdmissionPluginConfiguration, ...] = ()
