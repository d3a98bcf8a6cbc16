"""A quota tree for each pool of nodes: its root group has what the pool has, its pods stay in the pool."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from nodeagent.admission.elastic_quota import names
from nodeagent.admission.elastic_quota.amounts import Amounts, of_units, plus, units
from nodeagent.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from nodeagent.api.elastic_quota import ElasticQuota, ElasticQuotaProfile, ElasticQuotaSpec
from nodeagent.api.meta import LabelSelector, ObjectMeta
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.api.quantity import ZERO, Quantity
from nodeagent.api.resources import CPU, MEMORY
from nodeagent.scheduling.affinity import label_selector_matches

USUAL_KEYS = (CPU, MEMORY)
UNBOUNDED = Quantity.of((2**63 - 1) // 2000)
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@dataclass(frozen=True, slots=True)
class Pool:
    """The nodes of a profile: what they have, and the part of it that takes no pods just now."""

    total: Amounts
    unschedulable: Amounts


def tree_id(profile: ElasticQuotaProfile) -> str:
    """Return the profile's label, else a hash of its name."""
    meta = profile.metadata
    given = meta.labels.get(names.TREE_ID, "")
    return given or str(_fnv1a(f"{meta.namespace}/{meta.name}".encode()))


def pool(profile: ElasticQuotaProfile, nodes: Iterable[Node]) -> Pool:
    """Sum up the nodes that the profile selects."""
    total: Amounts = {}
    unschedulable: Amounts = {}
    selector = profile.spec.node_selector
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        if selector is None or not label_selector_matches(selector, node.metadata.labels):
            continue
        total = plus(total, node.status.allocatable)
        if node.spec.unschedulable or not _is_ready(node):
            unschedulable = plus(unschedulable, node.status.allocatable)
    if profile.spec.resource_ratio is None:
        return Pool(total, unschedulable)
    ratio = _ratio(profile.spec.resource_ratio)
    return Pool(_scaled(total, ratio), _scaled(unschedulable, ratio))


def root_quota(profile: ElasticQuotaProfile, nodes: Pool, stored: ElasticQuota | None) -> ElasticQuota:
    """Return the root group of the profile's tree, as it is to be written over the one that is stored."""
    meta = profile.metadata
    known = stored.metadata if stored is not None else ObjectMeta()
    labels = {
        **known.labels,
        names.PROFILE: meta.name,
        **profile.spec.quota_labels,
        names.TREE_ID: tree_id(profile),
        names.IS_ROOT: names.TRUE,
    }
    annotations = {
        **known.annotations,
        names.TOTAL_RESOURCE: names.amounts_text(nodes.total),
        names.UNSCHEDULABLE_RESOURCE: names.amounts_text(nodes.unschedulable),
    }
    keys = _keys(profile)
    written = replace(
        known,
        name=profile.spec.quota_name,
        namespace=meta.namespace,
        labels=labels,
        annotations=annotations,
    )
    spec = ElasticQuotaSpec(
        min={key: nodes.total.get(key, ZERO) for key in keys}, max=dict.fromkeys(keys, UNBOUNDED)
    )
    return replace(stored or ElasticQuota(), metadata=written, spec=spec)


def bound_to_pool(pod: Pod, profile: ElasticQuotaProfile) -> Pod:
    """Return the pod with the profile's node selector in its required node affinity."""
    selector = profile.spec.node_selector or LabelSelector()
    wanted = (
        *(
            NodeSelectorRequirement(key=key, operator="In", values=(value,))
            for key, value in selector.match_labels.items()
        ),
        *(
            NodeSelectorRequirement(key=each.key, operator=each.operator, values=each.values)
            for each in selector.match_expressions
        ),
    )
    if not wanted:
        return pod
    affinity = pod.spec.affinity or Affinity()
    of_nodes = affinity.node_affinity or NodeAffinity()
    required = of_nodes.required_during_scheduling_ignored_during_execution
    terms = (required.node_selector_terms if required is not None else ()) or (NodeSelectorTerm(),)
    extended = tuple(replace(each, match_expressions=(*each.match_expressions, *wanted)) for each in terms)
    of_nodes = replace(
        of_nodes,
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=extended),
    )
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=of_nodes)))


def _keys(profile: ElasticQuotaProfile) -> tuple[str, ...]:
    text = profile.metadata.annotations.get(names.RESOURCE_KEYS, "")
    try:
        return msgspec.json.decode(text, type=tuple[str, ...]) if text else USUAL_KEYS
    except msgspec.DecodeError:
        return USUAL_KEYS


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        return 1.0
    return ratio if 0 < ratio <= 1 else 1.0


def _scaled(amounts: Mapping[str, Quantity], ratio: float) -> Amounts:
    return {name: of_units(name, int(units(name, quantity) * ratio)) for name, quantity in amounts.items()}


def _is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)


def _fnv1a(data: bytes) -> int:
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME % 2**64
    return value
