"""What is filled in when a quota group is created."""

from collections.abc import Mapping

from msgspec.structs import replace

from nodeagent.admission.elastic_quota import names
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.quantity import Quantity


class DefaultingFailed(ValueError):
    """A group that cannot be completed; the message is Koordinator's."""


def with_defaults(quota: ElasticQuota, known: Mapping[str, ElasticQuota]) -> ElasticQuota:
    """Fill in parent, tree and shared weight; raises DefaultingFailed."""
    meta = quota.metadata
    if meta.name == names.ROOT:
        return quota
    parent = names.parent_of(meta)
    labels = {**meta.labels, names.PARENT: parent}
    if parent != names.ROOT and names.TREE_ID not in meta.labels:
        if parent not in known:
            raise DefaultingFailed(f"fill quota {meta.name} failed, parent not exist")
        tree_id = known[parent].metadata.labels.get(names.TREE_ID, "")
        labels |= {names.TREE_ID: tree_id} if tree_id else {}
    annotations = {**meta.annotations, names.SHARED_WEIGHT: _shared_weight(quota)}
    return replace(quota, metadata=replace(meta, labels=labels, annotations=annotations))


def _shared_weight(quota: ElasticQuota) -> str:
    """Return the annotation with exactly the resources of max, as it stands if it has them."""
    text, most = quota.metadata.annotations.get(names.SHARED_WEIGHT, ""), quota.spec.max
    if not text:
        return names.amounts_text(most) if most else "null"
    try:
        weights: Mapping[str, Quantity] = names.read_amounts(text)
    except ValueError as error:
        raise DefaultingFailed(f"fillDefaultQuotaInfo unmarshal sharedWeight failed:{error}") from error
    if weights.keys() == most.keys():
        return text
    return names.amounts_text({name: weights.get(name, limit) for name, limit in most.items()})
