"""QoS classes, defaulted resources and OOM scores, against kubelet and the API server (qos.json)."""

from typing import Any

import pytest

from nodeagent.api.decode import from_builtins
from nodeagent.api.defaults import default_pod
from nodeagent.api.pod import Container, Pod, ResourceRequirements
from nodeagent.api.qos import compute_qos_class, is_critical, is_node_critical, oom_score_adj, qos_class

Case = dict[str, Any]


def _spelled(resources: ResourceRequirements) -> dict[str, dict[str, str]]:
    lists = {"limits": resources.limits, "requests": resources.requests}
    return {
        name: {key: str(value) for key, value in amounts.items()}
        for name, amounts in lists.items()
        if amounts
    }


def _by_name(containers: tuple[Container, ...]) -> dict[str, dict[str, dict[str, str]]]:
    return {container.name: _spelled(container.resources) for container in containers}


@pytest.mark.golden("qos.json", "qos")
def test_class_and_defaulting(case: Case) -> None:
    pod = from_builtins(case["pod"], Pod)
    assert qos_class(pod) == case["qos"]
    assert compute_qos_class(pod) == case["computed"]
    pod = default_pod(pod)
    expected = case["resourcesAfterDefaulting"]
    assert _by_name(pod.spec.containers) == expected["containers"]
    assert _by_name(pod.spec.init_containers) == expected.get("initContainers", {})
    assert (pod.spec.resources is None) == ("podLevel" not in expected)
    if pod.spec.resources is not None:
        assert _spelled(pod.spec.resources) == expected["podLevel"]
    assert compute_qos_class(pod) == case["qosAfterDefaulting"]


@pytest.mark.golden("qos.json", "oom_score_adj")
def test_oom_score_adj(case: Case) -> None:
    pod = from_builtins(case["pod"], Pod)
    assert (qos_class(pod), is_critical(pod), is_node_critical(pod)) == (
        case["qos"],
        case["critical"],
        case["nodeCritical"],
    )
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    scores = {
        container.name: oom_score_adj(pod, container, case["memoryCapacity"]) for container in containers
    }
    assert scores == case["adj"]
