"""The policies that admission goes by, and how one more is taken in among them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from msgspec import structs

from nodeagent.admission.elastic_quota.names import parent_of
from nodeagent.admission.elastic_quota.webhook import QuotaWebhook, WebhookSettings
from nodeagent.admission.limit_range_validation import default_limit_range, validate_limit_range
from nodeagent.admission.priority_class import (
    SYSTEM_CLASSES,
    admit_priority_class,
    default_priority_class,
    validate_priority_class,
)
from nodeagent.admission.quota.limited import limited_resources
from nodeagent.admission.quota.validation import default_resource_quota, validate_resource_quota
from nodeagent.admission.refusal import Refusal, already_exists, denied, invalid
from nodeagent.admission.request import PRIORITY_CLASSES, GroupResource, HasMetadata, Request
from nodeagent.api.admission_configuration import AdmissionConfiguration, LimitedResource
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.errors import FieldError
from nodeagent.api.policy import LimitRange, PriorityClass, ResourceQuota

LIMIT_RANGES = GroupResource("limitranges")
RESOURCE_QUOTAS = GroupResource("resourcequotas")
DEFAULT_NAMESPACE = "default"

Policy = PriorityClass | LimitRange | ResourceQuota | ElasticQuota | AdmissionConfiguration
NamespacedT = TypeVar("NamespacedT", LimitRange, ResourceQuota, ElasticQuota)
SourceT = TypeVar("SourceT")


@dataclass(frozen=True, slots=True)
class Policies:
    """Valid policies with their defaults; where several speak of one thing, the first one taken in wins."""

    priority_classes: tuple[PriorityClass, ...] = SYSTEM_CLASSES
    limit_ranges: tuple[LimitRange, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    limited_resources: tuple[LimitedResource, ...] = ()
    elastic_quotas: tuple[ElasticQuota, ...] = ()

    def with_policy(self, policy: Policy) -> "tuple[Policies, Refusal | None]":
        """Return the policies with one more, or just themselves and why it is refused.

        LimitRanges and ResourceQuotas without a namespace are for the namespace `default`.
        """
        match policy:
            case PriorityClass():
                extended, refusal = self._with_priority_class(default_priority_class(policy))
            case LimitRange():
                extended, refusal = self._with_limit_range(default_limit_range(_namespaced(policy)))
            case ResourceQuota():
                extended, refusal = self._with_quota(default_resource_quota(_namespaced(policy)))
            case ElasticQuota():
                extended, refusal = self._with_elastic_quota(_namespaced(policy))
            case AdmissionConfiguration():
                extended, refusal = self._with_configuration(policy)
        return extended if refusal is None else self, refusal

    def with_policies(
        self, sourced: Iterable[tuple[SourceT, Policy]]
    ) -> "tuple[Policies, list[tuple[SourceT, Refusal]]]":
        """Return the policies with all that are valid, and the others' refusals.

        Groups of elastic quotas are taken parents first, in whatever order they come.
        """
        policies, refusals = self, list[tuple[SourceT, Refusal]]()
        for source, policy in _parents_first(list(sourced)):
            policies, refusal = policies.with_policy(policy)
            if refusal is not None:
                refusals.append((source, refusal))
        return policies, refusals

    def limit_ranges_of(self, namespace: str) -> tuple[LimitRange, ...]:
        return tuple(each for each in self.limit_ranges if each.metadata.namespace == namespace)

    def quotas_of(self, namespace: str) -> tuple[ResourceQuota, ...]:
        return tuple(each for each in self.quotas if each.metadata.namespace == namespace)

    def _with_priority_class(self, policy: PriorityClass) -> "tuple[Policies, Refusal | None]":
        known = self.priority_classes
        refusal = _refusal(policy, PRIORITY_CLASSES, "PriorityClass", validate_priority_class(policy), known)
        if refusal is None:
            refusal = admit_priority_class(Request(PRIORITY_CLASSES, policy), known)
        return replace(self, priority_classes=(*known, policy)), refusal

    def _with_limit_range(self, policy: LimitRange) -> "tuple[Policies, Refusal | None]":
        known = self.limit_ranges
        refusal = _refusal(policy, LIMIT_RANGES, "LimitRange", validate_limit_range(policy), known)
        return replace(self, limit_ranges=(*known, policy)), refusal

    def _with_quota(self, policy: ResourceQuota) -> "tuple[Policies, Refusal | None]":
        known = self.quotas
        refusal = _refusal(policy, RESOURCE_QUOTAS, "ResourceQuota", validate_resource_quota(policy), known)
        return replace(self, quotas=(*known, policy)), refusal

    def _with_elastic_quota(self, policy: ElasticQuota) -> "tuple[Policies, Refusal | None]":
        webhook = QuotaWebhook(WebhookSettings())
        webhook.groups = {each.metadata.name: each for each in self.elastic_quotas}
        answer = webhook.create(policy)
        if answer.quota is None:
            return self, denied(answer.message)
        return replace(self, elastic_quotas=(*self.elastic_quotas, answer.quota)), None

    def _with_configuration(self, policy: AdmissionConfiguration) -> "tuple[Policies, Refusal | None]":
        found, errors = limited_resources(policy)
        refusal = invalid("AdmissionConfiguration.apiserver.config.k8s.io", "", errors) if errors else None
        return replace(self, limited_resources=(*self.limited_resources, *found)), refusal


def _refusal(
    policy: HasMetadata,
    resource: GroupResource,
    kind: str,
    errors: Sequence[FieldError],
    known: Iterable[HasMetadata],
) -> Refusal | None:
    """Refuse an object that is wrong in itself, or whose name is taken."""
    metadata = policy.metadata
    if errors:
        return invalid(f"{kind}.{resource.group}" if resource.group else kind, metadata.name, errors)
    identity = (metadata.namespace, metadata.name)
    if any((each.metadata.namespace, each.metadata.name) == identity for each in known):
        return already_exists(resource, metadata.name)
    return None


def _namespaced(policy: NamespacedT) -> NamespacedT:
    if policy.metadata.namespace:
        return policy
    metadata = structs.replace(policy.metadata, namespace=DEFAULT_NAMESPACE)
    return structs.replace(policy, metadata=metadata)


def _parents_first(sourced: list[tuple[SourceT, Policy]]) -> Iterator[tuple[SourceT, Policy]]:
    yield from (each for each in sourced if not isinstance(each[1], ElasticQuota))
    left = [(source, policy) for source, policy in sourced if isinstance(policy, ElasticQuota)]
    while left:
        names = {quota.metadata.name for _, quota in left}
        ready = [each for each in left if parent_of(each[1].metadata) not in names]
        yield from ready or left
        left = [each for each in left if each not in ready] if ready else []
