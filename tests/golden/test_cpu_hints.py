"""Topology hints of the static CPU policy against kubelet 1.36."""

from typing import Any

import pytest

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.resources.cpu_setup import make_cpu_policy
from nodeagent.resources.cpu_state import CpuState
from tests.golden import bugs, machines, pods


@pytest.mark.golden("cpu_hints.json", "cases")
def test_hints(case: dict[str, Any], document: dict[str, Any]) -> None:
    reserved = CpuSet.parse(case["reserved_cpus"])
    policy = make_cpu_policy(
        "static",
        case["options"],
        machines.topology(document, case["topology"]),
        reserved_milli=1000 * len(reserved),
        reserved_cpus=reserved,
        topology_policy="restricted",
        alpha_options=True,
    )
    assert policy
    assignments = {
        uid: {name: CpuSet.parse(cpus) for name, cpus in containers.items()}
        for uid, containers in case["assignments"].items()
    }
    state = CpuState(CpuSet.parse(case["default"]), assignments)
    reusable = CpuSet.parse(case["reusable"])
    pod = pods.request(case["pod"]["uid"], case["pod"])

    def exact(case: dict[str, Any]) -> None:
        found = {
            container.name: machines.shown_hints(policy.container_hints(state, reusable, pod, container))
            for container in pod.containers
        }
        assert found == case["container_hints"]
        assert machines.shown_hints(policy.pod_hints(state, reusable, pod)) == case["pod_hints"]

    bugs.check(case, exact, {})
