"""Where a pod may run: node and pod affinity, tolerations, topology spread (core/v1)."""

from nodeagent.api.base import ApiObject, Int32, Int64
from nodeagent.api.meta import LabelSelector


class NodeSelectorRequirement(ApiObject, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiObject, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiObject, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(ApiObject, frozen=True, kw_only=True):
    preference: NodeSelectorTerm = NodeSelectorTerm()
    weight: Int32 = 0


class NodeAffinity(ApiObject, frozen=True, kw_only=True):
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(ApiObject, frozen=True, kw_only=True):
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""


class WeightedPodAffinityTerm(ApiObject, frozen=True, kw_only=True):
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()
    weight: Int32 = 0


class PodAffinity(ApiObject, frozen=True, kw_only=True):
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class PodAntiAffinity(ApiObject, frozen=True, kw_only=True):
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class Affinity(ApiObject, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(ApiObject, frozen=True, kw_only=True):
    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: Int64 | None = None
    value: str | None = None


class TopologySpreadConstraint(ApiObject, frozen=True, kw_only=True):
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    max_skew: Int32 = 0
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    topology_key: str = ""
    when_unsatisfiable: str = ""
