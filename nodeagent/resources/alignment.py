"""What kubelet counts as aligned: containers on whole cores, containers or pods on one NUMA node."""

from collections.abc import Iterator

from nodeagent.resources.cpu_policy import CpuAllocation
from nodeagent.resources.errors import SMT_ALIGNMENT_ERROR, TOPOLOGY_AFFINITY_ERROR
from nodeagent.resources.pod_admission import PodDecision
from nodeagent.resources.topology_options import Policy, Scope, TopologySettings

Label = tuple[str, str]
"""Scope and boundary, as the metric spells them."""

PHYSICAL_CPU, NUMA_NODE = "physical_cpu", "numa_node"


def alignments(
    decision: PodDecision, settings: TopologySettings, *, whole_cores: bool
) -> Iterator[tuple[Label, bool]]:
    """Yield what was aligned (True) and what could not be; only what the policies promise is counted."""
    scope = str(settings.scope)
    if settings.policy is Policy.SINGLE_NUMA_NODE:
        if settings.scope is Scope.POD:
            yield (scope, NUMA_NODE), decision.reason != TOPOLOGY_AFFINITY_ERROR
        else:
            yield from (((scope, NUMA_NODE), True) for _ in decision.containers)
            if decision.reason == TOPOLOGY_AFFINITY_ERROR:
                yield (scope, NUMA_NODE), False
    if whole_cores:
        for container in decision.containers:
            if any(isinstance(record, CpuAllocation) for record in container.allocations):
                yield ("container", PHYSICAL_CPU), True
        if decision.reason == SMT_ALIGNMENT_ERROR:
            yield ("container", PHYSICAL_CPU), False
