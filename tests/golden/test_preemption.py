"""Node admission and preemption, against Kubernetes' own outcome (preemption.json)."""

from typing import Any

import msgspec
import pytest
from nodeagent.api.decode import decode_hook
from nodeagent.api.node import Node

from nodeagent.api.pod import Pod
from nodeagent.api.qos import is_critical, qos_class
from nodeagent.scheduling.critical import CONDITION_MESSAGE, CONDITION_REASON, MESSAGE, REASON, preempt
from nodeagent.scheduling.fit import Comparison, Failure, NodeView, PredicateFailure, fit

Case = dict[str, Any]


def _pods(documents: list[Case]) -> list[Pod]:
    return [msgspec.convert(document, Pod, dec_hook=decode_hook) for document in documents]


@pytest.mark.golden("preemption.json", "kubelet_admit")
def test_node_admission(case: Case) -> None:
    node = msgspec.convert(case["node"], Node, dec_hook=decode_hook)
    view = NodeView(node.metadata.name, node.status.allocatable, node.metadata.labels, node.spec.taints)
    result = fit(msgspec.convert(case["pod"], Pod, dec_hook=decode_hook), view, _pods(case["otherPods"]))
    assert (result.fits, result.reason, result.message) == (
        case["admit"],
        case.get("reason", ""),
        case.get("message", ""),
    )


def _failure(given: Case) -> Failure:
    if "predicate" in given:
        return PredicateFailure(given["predicate"], given["desc"])
    return Comparison(given["resource"], given["requested"], given["used"], given["capacity"])


@pytest.mark.golden("preemption.json", "kubelet")
def test_preemption_for_a_critical_pod(case: Case) -> None:
    pod = msgspec.convert(case["admitPod"], Pod, dec_hook=decode_hook)
    running = _pods(case["pods"])
    assert is_critical(pod) == case["critical"]
    assert {each.metadata.name: qos_class(each) for each in running} == case["qos"]

    preemption = preempt(pod, [_failure(given) for given in case["failureReasons"]], running)

    assert [victim.metadata.name for victim in preemption.victims] == case["preempted"]
    assert [failure.description for failure in preemption.remaining] == case.get("remainingReasons", [])
    assert preemption.error == case.get("error", "")
    if "statusWritten" in case:
        status = case["statusWritten"]
        assert (status["reason"], status["message"]) == (REASON, MESSAGE)
        condition = status["condition"]
        assert (condition["reason"], condition["message"]) == (CONDITION_REASON, CONDITION_MESSAGE)
        assert case["event"] == f"Warning {REASON} {MESSAGE}"
