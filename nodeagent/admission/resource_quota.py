"""ResourceQuota: may this object be made, given what its namespace may use and uses?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from nodeagent.admission.quota.evaluator import Evaluator
from nodeagent.admission.quota.limited import of_resource, uncovered_resources, uncovered_scopes
from nodeagent.admission.quota.registry import evaluator_of
from nodeagent.admission.quota.scopes import Requirement, requirements_of, spelled
from nodeagent.admission.refusal import Refusal, forbidden
from nodeagent.admission.request import STATUS, HasMetadata, Operation, Request
from nodeagent.api.admission_configuration import LimitedResource
from nodeagent.api.policy import ResourceQuota
from nodeagent.api.quantity import ResourceList
from nodeagent.api.resources import Resources, add_to


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A quota that is not for the object: it is outside of a scope, or uses nothing that the quota names."""

    quota: str
    outside: Requirement | None

    def __str__(self) -> str:
        if self.outside is None:
            return f"ResourceQuota {self.quota}: names nothing that the object uses"
        return f"ResourceQuota {self.quota}: {spelled([self.outside])} does not select the object"


@dataclass(frozen=True, slots=True)
class Charge:
    """What the object would take of one quota, held to what is left there."""

    quota: str
    requested: Resources
    used: Resources
    hard: Resources
    exceeded: tuple[str, ...]

    def __str__(self) -> str:
        parts = (
            f"{name} {amount} requested, {self.used[name]} of {self.hard[name]} used"
            f"{': too much' if name in self.exceeded else ''}"
            for name, amount in sorted(self.requested.items())
        )
        return f"ResourceQuota {self.quota}: {'; '.join(parts) or 'nothing to charge'}"

    def refusal(self) -> str:
        """Return the sentence about what is exceeded; nothing if all fits."""
        if not self.exceeded:
            return ""
        lists = {"requested": self.requested, "used": self.used, "limited": self.hard}
        parts = (
            f"{title}: {','.join(f'{name}={amounts[name]}' for name in self.exceeded)}"
            for title, amounts in lists.items()
        )
        return f"exceeded quota: {self.quota}, {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class QuotaDecision:
    """The answer, the quotas whose `status.used` grows if the object is made, and what was compared."""

    refusal: Refusal | None = None
    changed: tuple[ResourceQuota, ...] = ()
    charges: tuple[Charge, ...] = ()
    unmatched: tuple[Unmatched, ...] = ()


def check(
    request: Request[Any],
    quotas: Sequence[ResourceQuota],
    now: datetime,
    limited: Sequence[LimitedResource] = (),
) -> QuotaDecision:
    """Charge the object to the quotas of its namespace, all or none, going by their status.

    Whoever stores the object has to store the changed quotas with it, in one transaction.
    """
    evaluator = evaluator_of(request.resource)
    nothing_to_ask = not quotas and not limited
    if nothing_to_ask or evaluator is None or not evaluator.handles(request):
        return QuotaDecision()
    matching: list[ResourceQuota] = []
    unmatched: list[Unmatched] = []
    for quota in quotas:
        mismatch = _mismatch(quota, evaluator, request.object)
        if mismatch is None:
            matching.append(quota)
        else:
            unmatched.append(mismatch)
    demand = _Demand(request, evaluator, evaluator.usage(request.object, now), matching)
    why = next(demand.faults(), "")
    deltas = [] if why else demand.deltas(now)
    if any(map(_is_positive, deltas)):
        why = next(demand.uncovered(quotas, of_resource(limited, request.resource)), "")
    may_exceed = request.subresource == STATUS
    charges = [_charge(quota, delta, may_exceed) for quota, delta in zip(matching, deltas, strict=False)]
    why = why or next(filter(None, (charge.refusal() for charge in charges)), "")
    refusal = forbidden(request.resource, request.name, why) if why else None
    changed = () if why or request.dry_run else tuple(_grown(matching, charges))
    return QuotaDecision(refusal, changed, tuple(charges), tuple(unmatched))


def _mismatch(quota: ResourceQuota, evaluator: Evaluator[Any], item: HasMetadata) -> Unmatched | None:
    """Return why the quota is not for the object, None if it is."""
    if not any(map(evaluator.uses, quota.status.hard)):
        return Unmatched(quota.metadata.name, None)
    for requirement in requirements_of(quota):
        if not evaluator.selected(item, requirement):
            return Unmatched(quota.metadata.name, requirement)
    return None


@dataclass(frozen=True, slots=True)
class _Demand:
    """What one request asks of the quotas that are for its object."""

    request: Request[Any]
    evaluator: Evaluator[Any]
    usage: Resources
    matching: Sequence[ResourceQuota]

    def faults(self) -> Iterator[str]:
        """Find what forbids to charge at all: amounts that are not stated, not known, or negative."""
        for quota in self.matching:
            names = self.evaluator.matching(quota.status.hard)
            missing = self.evaluator.missing(self.request.object, names)
            if missing:
                yield f"failed quota: {quota.metadata.name}: {missing}"
            if not quota.status.used.keys() >= set(names):
                yield f"status unknown for quota: {quota.metadata.name}, resources: {','.join(names)}"
        negative = sorted(name for name, amount in self.usage.items() if amount.sign < 0)
        if negative:
            yield f"quota usage is negative for resource(s): {','.join(negative)}"
        if self.request.operation is Operation.UPDATE and self.request.old is None:
            yield "unable to get previous usage since prior version of object was not found"

    def uncovered(self, quotas: Sequence[ResourceQuota], limited: Sequence[LimitedResource]) -> Iterator[str]:
        """Find what may only be used under a quota, where there is none."""
        covered = {name for quota in self.matching for name in self.evaluator.matching(quota.status.hard)}
        names = uncovered_resources(limited, self.usage, covered)
        if names:
            yield f"insufficient quota to consume: {','.join(names)}"
        scopes = uncovered_scopes(limited, self.evaluator, self.request.object, quotas)
        if scopes:
            yield f"insufficient quota to match these scopes: {spelled(scopes)}"

    def deltas(self, now: datetime) -> list[Resources]:
        """Return what to charge to each matching quota; where there is none, what there would be to charge.

        An object that a quota counted before costs its growth, and one that is new to it all of it.
        """
        old, usage = self.request.old, self.usage
        if self.request.operation is not Operation.UPDATE or old is None or not old.metadata.resource_version:
            return [usage for _ in self.matching] or [usage]
        growth = _growth(self.evaluator.usage(old, now), usage)
        counted = (_mismatch(quota, self.evaluator, old) is None for quota in self.matching)
        return [growth if was_counted else usage for was_counted in counted] or [growth]


def _growth(before: ResourceList, after: ResourceList) -> Resources:
    return {
        name: amount - before[name] if name in before else amount
        for name, amount in after.items()
        if name not in before or amount > before[name]
    }


def _is_positive(delta: ResourceList) -> bool:
    return any(amount.sign > 0 for amount in delta.values())


def _charge(quota: ResourceQuota, delta: ResourceList, may_exceed: bool) -> Charge:
    """Hold a charge to the quota; what a status reports has happened already and is not refused."""
    hard, used = quota.status.hard, quota.status.used
    requested = {name: amount for name, amount in delta.items() if name in hard and amount}
    exceeded = sorted(name for name, amount in requested.items() if hard[name] < used[name] + amount)
    return Charge(quota.metadata.name, requested, used, hard, () if may_exceed else tuple(exceeded))


def _grown(matching: Sequence[ResourceQuota], charges: Sequence[Charge]) -> Iterator[ResourceQuota]:
    for quota, charge in zip(matching, charges, strict=True):
        if charge.requested:
            used = dict(quota.status.used)
            add_to(used, charge.requested)
            yield replace(quota, status=replace(quota.status, used=used))
