"""Merging of hints against kubelet 1.36."""

from typing import Any

import pytest

from nodeagent.hardware.cpuset import bits
from nodeagent.hardware.topology import NumaNode
from nodeagent.resources.errors import OptionError
from nodeagent.resources.topology_manager import TopologyManager
from nodeagent.resources.topology_options import parse_topology_settings
from tests.golden import bugs
from tests.golden.machines import hints


@pytest.mark.golden("topology_manager.json", "cases")
def test_merge(case: dict[str, Any]) -> None:
    nodes = tuple(NumaNode(node["id"], distances=tuple(node["distances"] or ())) for node in case["nodes"])

    def merge() -> dict[str, Any]:
        try:
            settings = parse_topology_settings(case["policy"], case["scope"], case["options"], nodes)
        except OptionError as error:
            return {"new_error": str(error)}
        manager = TopologyManager(settings, nodes)
        best = manager.merge(hints(provider) for provider in case["providers"])
        mask = None if best.mask is None else list(bits(best.mask))
        return {
            "hint": {"mask": mask, "preferred": best.preferred},
            "admit": manager.admits(best),
        }

    def exact(case: dict[str, Any]) -> None:
        assert merge() == {key: case[key] for key in ("new_error", "hint", "admit") if key in case}

    def instead_of_a_panic(case: dict[str, Any]) -> None:
        assert merge() == case["ours"]

    bugs.check(case, exact, {"panics where node ids have gaps": instead_of_a_panic})
