"""ElasticQuota (scheduling.sigs.k8s.io/v1alpha1) and ElasticQuotaProfile (quota.koordinator.sh/v1alpha1)."""

from msgspec import field

from nodeagent.api.base import ApiObject
from nodeagent.api.meta import LabelSelector, ObjectMeta
from nodeagent.api.quantity import Quantity

PREFIX = "quota.scheduling.koordinator.sh/"


class ElasticQuotaSpec(ApiObject, frozen=True, kw_only=True):
    min: dict[str, Quantity] = field(default_factory=dict)
    max: dict[str, Quantity] = field(default_factory=dict)


class ElasticQuotaStatus(ApiObject, frozen=True, kw_only=True):
    used: dict[str, Quantity] = field(default_factory=dict)


class ElasticQuota(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()


class ElasticQuotaProfileSpec(ApiObject, frozen=True, kw_only=True):
    quota_name: str = ""
    quota_labels: dict[str, str] = field(default_factory=dict)
    resource_ratio: str | None = None
    node_selector: LabelSelector | None = None


class ElasticQuotaProfileStatus(ApiObject, frozen=True, kw_only=True):
    pass


class ElasticQuotaProfile(ApiObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ElasticQuotaProfileSpec = ElasticQuotaProfileSpec()
    status: ElasticQuotaProfileStatus = ElasticQuotaProfileStatus()
