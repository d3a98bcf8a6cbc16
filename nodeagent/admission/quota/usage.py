"""What of a quota is used: counted anew from the objects that there are."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from nodeagent.admission.quota.evaluator import Evaluator
from nodeagent.admission.quota.registry import EVALUATORS
from nodeagent.admission.quota.scopes import requirements_of
from nodeagent.admission.request import GroupResource, HasMetadata
from nodeagent.api.policy import ResourceQuota, ResourceQuotaStatus
from nodeagent.api.quantity import ZERO
from nodeagent.api.resources import Resources, add_to

Objects = Mapping[GroupResource, Iterable[HasMetadata]]


def measured(
    quota: ResourceQuota,
    objects: Objects,
    now: datetime,
    evaluators: Mapping[GroupResource, Evaluator[Any]] = EVALUATORS,
) -> ResourceQuota:
    """Return the quota with its status as its spec and the `objects` of its namespace make it.

    Names that no evaluator knows are left out of `used`.
    """
    requirements = requirements_of(quota)
    used: Resources = {}
    for resource, evaluator in evaluators.items():
        for name in evaluator.matching(quota.spec.hard):
            used.setdefault(name, ZERO)
        for item in objects.get(resource, ()):
            if all(evaluator.selected(item, requirement) for requirement in requirements):
                add_to(used, evaluator.usage(item, now))
    used = {name: amount for name, amount in used.items() if name in quota.spec.hard}
    return replace(quota, status=ResourceQuotaStatus(hard=quota.spec.hard, used=used))
