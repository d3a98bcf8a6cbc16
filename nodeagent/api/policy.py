"""What admission goes by: LimitRange and ResourceQuota (core/v1), PriorityClass (scheduling.k8s.io/v1).

Fields without a default are always written out.
"""

from msgspec import field

from nodeagent.api.base import ApiObject, Int32
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.quantity import Quantity


class LimitRangeItem(ApiObject, frozen=True, kw_only=True):
    type: str
    default: dict[str, Quantity] = field(default_factory=dict)
    default_request: dict[str, Quantity] = field(default_factory=dict)
    max: dict[str, Quantity] = field(default_factory=dict)
    max_limit_request_ratio: dict[str, Quantity] = field(default_factory=dict)
    min: dict[str, Quantity] = field(default_factory=dict)


class LimitRangeSpec(ApiObject, frozen=True, kw_only=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class ScopedResourceSelectorRequirement(ApiObject, frozen=True, kw_only=True):
    scope_name: str
    operator: str
    values: tuple[str, ...] = ()


class ScopeSelector(ApiObject, frozen=True, kw_only=True):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(ApiObject, frozen=True, kw_only=True):
    hard: dict[str, Quantity] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(ApiObject, frozen=True, kw_only=True):
    hard: dict[str, Quantity] = field(default_factory=dict)
    used: dict[str, Quantity] = field(default_factory=dict)


class ResourceQuota(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PriorityClass(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    value: Int32
    global_default: bool = False
    preemption_policy: str | None = None
    description: str | None = None
