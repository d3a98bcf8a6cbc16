"""Faults of a quota group that its own object shows, in Koordinator's words."""

from collections.abc import Iterator, Mapping

import msgspec

from nodeagent.admission.elastic_quota import names
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.quantity import Quantity


def faults(quota: ElasticQuota) -> Iterator[str]:
    """Yield what is wrong, the first first."""
    name, spec = quota.metadata.name, quota.spec
    for field, amounts in (("Max", spec.max), ("Min", spec.min)):
        if negative := _negative(amounts):
            yield f"{name} quota.Spec.{field}'s value < 0, in dimensions :[{negative}]"
    try:
        if negative := _negative(names.read_amounts(quota.metadata.annotations.get(names.SHARED_WEIGHT, ""))):
            yield f"{name} quota.Annotation[{names.SHARED_WEIGHT}]'s value < 0, in dimension :[{negative}]"
    except ValueError as error:
        yield str(error)
    for key in sorted(spec.min):
        if key not in spec.max:
            yield f"resourceKey {key} of quota {name} is included in min, which is not included in max"
        elif spec.min[key] > spec.max[key]:
            yield f"resourceKey {key} of quota {name} min {spec.min[key]} > max {spec.max[key]}"
    yield from _strict(quota)


def _strict(quota: ElasticQuota) -> Iterator[str]:
    """The keys whose max must not fall below what is used."""
    name, most, used = quota.metadata.name, quota.spec.max, quota.status.used
    try:
        keys = msgspec.json.decode(
            quota.metadata.annotations.get(names.STRICT_KEYS) or "[]", type=tuple[str, ...] | None
        )
    except msgspec.DecodeError as error:
        yield f"{name} quota.Annotation[{names.STRICT_KEYS}]'s value is invalid: {error}"
        return
    for key in keys or ():
        if key not in used:
            continue
        if key not in most:
            yield (
                f"resourceKey {key} of quota {name} is included in used, which is not included in max "
                "but should check max >= used"
            )
        elif most[key] < used[key]:
            yield f"resourceKey {key} of quota {name} max {most[key]} < used {used[key]}"


def _negative(amounts: Mapping[str, Quantity]) -> str:
    return " ".join(sorted(name for name, quantity in amounts.items() if quantity.sign < 0))
