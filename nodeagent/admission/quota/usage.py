"""What of quotas is used: counted anew from the objects that there are."""

from collections.abc import Iterable, Mapping, Sequence
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
    quotas: Sequence[ResourceQuota],
    objects: Objects,
    now: datetime,
    evaluators: Mapping[GroupResource, Evaluator[Any]] = EVALUATORS,
) -> tuple[ResourceQuota, ...]:
    """Return the quotas of one namespace with the status that their specs and its `objects` make.

    Names that no evaluator knows are left out of `used`.
    """
    totals: list[Resources] = [{} for _ in quotas]
    for resource, evaluator in evaluators.items():
        for quota, total in zip(quotas, totals, strict=True):
            for name in evaluator.matching(quota.spec.hard):
                total.setdefault(name, ZERO)
        for item in objects.get(resource, ()):
            usage = evaluator.usage(item, now)
            for quota, total in zip(quotas, totals, strict=True):
                if all(evaluator.selected(item, requirement) for requirement in requirements_of(quota)):
                    counted = {name: amount for name, amount in usage.items() if name in quota.spec.hard}
                    add_to(total, counted)
    return tuple(
        replace(quota, status=ResourceQuotaStatus(hard=quota.spec.hard, used=total))
        for quota, total in zip(quotas, totals, strict=True)
    )
