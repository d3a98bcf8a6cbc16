"""What a pod asks for, what class that makes it, and how the kernel's OOM killer is to see it."""

from typing import Any

import pytest

from nodeagent.api.decode import from_builtins
from nodeagent.api.pod import Pod
from nodeagent.api.qos import QOSClass, is_critical, is_node_critical, is_static, oom_score_adj, qos_class
from nodeagent.api.resources import pod_limits, pod_requests

GIB = 2**30


def pod(spec: dict[str, Any], **annotations: str) -> Pod:
    return from_builtins({"metadata": {"name": "p", "annotations": annotations}, "spec": spec}, Pod)


def container(name: str, cpu: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}} if cpu else {}, **fields}


def spelled(amounts: Any) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("init", "total"),
    [
        ([], "300m"),
        ([container("i", "250m")], "300m"),
        ([container("i", "400m")], "400m"),
        # A sidecar runs beside the regular containers, and beside the init containers after it.
        ([container("s", "200m", restartPolicy="Always")], "500m"),
        ([container("s", "200m", restartPolicy="Always"), container("i", "400m")], "600m"),
        ([container("i", "400m"), container("s", "200m", restartPolicy="Always")], "500m"),
        (
            [container("s", "200m", restartPolicy="Always"), container("t", "1", restartPolicy="Always")],
            "1500m",
        ),
    ],
)
def test_requests_over_all_containers(init: list[dict[str, Any]], total: str) -> None:
    spec = {"containers": [container("a", "100m"), container("b", "200m")], "initContainers": init}
    assert spelled(pod_requests(pod(spec))) == {"cpu": total}


def test_overhead_is_requested_and_raises_limits_that_there_are() -> None:
    spec = {
        "containers": [
            {"name": "a", "resources": {"requests": {"memory": "1Gi"}, "limits": {"cpu": "1", "memory": "0"}}}
        ],
        "overhead": {"cpu": "250m", "memory": "1Mi"},
    }
    assert spelled(pod_requests(pod(spec))) == {"memory": "1025Mi", "cpu": "250m"}
    assert spelled(pod_limits(pod(spec))) == {"cpu": "1250m", "memory": "0"}
    assert spelled(pod_requests(pod(spec), overhead=False)) == {"memory": "1Gi"}


def test_pod_level_resources_speak_for_what_they_name() -> None:
    spec = {
        "containers": [
            {
                "name": "a",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}},
            }
        ],
        "resources": {"requests": {"cpu": "3", "ephemeral-storage": "9Gi"}},
    }
    assert spelled(pod_requests(pod(spec))) == {"cpu": "3", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    assert spelled(pod_requests(pod(spec), pod_level=False))["cpu"] == "1"


def test_summing_leaves_the_pod_alone() -> None:
    asked = pod({"containers": [container("a", "1"), container("b", "1")], "overhead": {"cpu": "1"}})
    first = spelled(pod_requests(asked))
    assert spelled(pod_requests(asked)) == first == {"cpu": "3"}


def test_status_says_the_class() -> None:
    spec = {"containers": [container("a", "1")]}
    assert qos_class(pod(spec)) is QOSClass.BURSTABLE
    for stated, expected in (("Guaranteed", QOSClass.GUARANTEED), ("Gold", QOSClass.BURSTABLE)):
        said = from_builtins({"spec": spec, "status": {"qosClass": stated}}, Pod)
        assert qos_class(said) is expected


@pytest.mark.parametrize(
    ("fields", "annotations", "critical", "node_critical"),
    [
        ({}, {}, False, False),
        ({}, {"kubernetes.io/config.source": "file"}, True, False),
        ({}, {"kubernetes.io/config.source": "api"}, False, False),
        ({}, {"kubernetes.io/config.mirror": ""}, True, False),
        ({"priority": 1_999_999_999}, {}, False, False),
        ({"priority": 2_000_000_000}, {}, True, False),
        ({"priorityClassName": "system-node-critical"}, {}, False, False),
        ({"priorityClassName": "system-node-critical", "priority": 2_000_001_000}, {}, True, True),
    ],
)
def test_critical(
    fields: dict[str, Any], annotations: dict[str, str], critical: bool, node_critical: bool
) -> None:
    asked = pod({"containers": [container("a")], **fields}, **annotations)
    assert (is_critical(asked), is_node_critical(asked)) == (critical, node_critical)
    assert is_static(asked) == (annotations.get("kubernetes.io/config.source") == "file")


@pytest.mark.parametrize(
    ("request_bytes", "score"),
    [
        (0, 999),
        (8 * GIB, 3),
        (80 * GIB, 3),
        (4 * GIB, 500),
        (GIB // 1024, 999),
        (GIB // 64, 999),
        (GIB // 32, 997),
    ],
)
def test_oom_score_of_a_burstable_container(request_bytes: int, score: int) -> None:
    # 1000 - 1000 * request / capacity, kept between 3 and 999.
    resources = {"requests": {"cpu": "1", "memory": request_bytes}}
    asked = pod({"containers": [{"name": "a", "resources": resources}]})
    assert oom_score_adj(asked, asked.spec.containers[0], 8 * GIB) == score
