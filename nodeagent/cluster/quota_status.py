"""What is used of quotas, kept right while objects change, end and go; pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from nodeagent.admission.quota.evaluator import Evaluator
from nodeagent.admission.quota.registry import evaluator_of
from nodeagent.admission.quota.scopes import requirements_of
from nodeagent.admission.quota.usage import measured
from nodeagent.admission.request import GroupResource
from nodeagent.api.policy import ResourceQuota
from nodeagent.api.resources import Resources, add_to
from nodeagent.cluster.kinds import Kind

# A pod past its grace period counts until it is gone: what is charged does not change by waiting.
_ALWAYS = datetime.min.replace(tzinfo=UTC)


def settled(
    kind: Kind, old: Any | None, new: Any | None, quotas: Sequence[ResourceQuota]
) -> Iterator[ResourceQuota]:
    """Yield those quotas whose `status.used` changes when `old` becomes `new` (None: it does not exist)."""
    evaluator = evaluator_of(kind.group_resource)
    if evaluator is None:
        return
    for quota in quotas:
        before, after = _charged(evaluator, old, quota), _charged(evaluator, new, quota)
        if before == after:
            continue
        used = dict(quota.status.used)
        add_to(used, after)
        for name, amount in before.items():
            if name in used:
                used[name] = used[name] - amount
        yield structs.replace(quota, status=structs.replace(quota.status, used=used))


def recounted(
    quotas: Sequence[ResourceQuota], kinds: Iterable[Kind], objects: Callable[[Kind], Sequence[Any]]
) -> tuple[ResourceQuota, ...]:
    """Return the quotas of one namespace with a status counted anew; only kinds that they name are read."""
    names = {name for quota in quotas for name in quota.spec.hard}
    evaluators: dict[GroupResource, Evaluator[Any]] = {}
    found: dict[GroupResource, Sequence[Any]] = {}
    for kind in kinds:
        evaluator = evaluator_of(kind.group_resource)
        if evaluator is None or not kind.namespaced or not evaluator.matching(names):
            continue
        evaluators[kind.group_resource] = evaluator
        found[kind.group_resource] = objects(kind)
    return measured(quotas, found, _ALWAYS, evaluators)


def _charged(evaluator: Evaluator[Any], item: Any | None, quota: ResourceQuota) -> Resources:
    if item is None:
        return {}
    if not all(evaluator.selected(item, requirement) for requirement in requirements_of(quota)):
        return {}
    hard = quota.status.hard
    return {name: amount for name, amount in evaluator.usage(item, _ALWAYS).items() if name in hard}
