"""Merging of hints on many NUMA nodes."""

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from nodeagent.hardware.topology import regular_topology
from nodeagent.resources.hints import Hint, NumaMasks, intersections
from nodeagent.resources.topology_manager import TopologyManager
from nodeagent.resources.topology_options import Policy, TopologySettings

FAMILIES = st.sets(st.integers(0, 63), min_size=1)


@given(FAMILIES, FAMILIES)
def test_counting_finds_the_same_intersections_as_pairing(one: set[int], other: set[int]) -> None:
    pairs = {mask & another for mask in one for another in other}
    assert intersections(one, other) == pairs
    assert intersections(one, other, most_pairs=0) == pairs


def test_sixteen_nodes_do_not_explode() -> None:
    """Two resources that fit any two nodes, but prefer other single ones: four thousand million pairs."""
    topology = regular_topology(2, 2, 1, numa_per_socket=8)
    manager = TopologyManager(TopologySettings(Policy.BEST_EFFORT), topology.numa_nodes)
    masks = NumaMasks(range(16)).masks
    cpu = (Hint(1, True), *(Hint(mask, False) for mask in masks if mask.bit_count() > 1))
    memory = (Hint(2, True), *(Hint(mask, False) for mask in masks if mask.bit_count() > 1))
    begin = process_time()
    assert manager.merge([{"cpu": cpu}, {"memory": memory}]) == Hint(1, False)
    assert process_time() - begin < 5
