"""Node admission and preemption, against Kubernetes' own outcome (preemption.json)."""

from typing import Any

import msgspec
import pytest

from nodeagent.api.decode import decode_hook
from nodeagent.api.meta import LabelSelector
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.api.qos import is_critical, qos_class
from nodeagent.scheduling.critical import CONDITION_MESSAGE, CONDITION_REASON, MESSAGE, REASON, preempt
from nodeagent.scheduling.fit import Comparison, Failure, NodeView, PredicateFailure, fit
from nodeagent.scheduling.preemption import DisruptionBudget, NodeRefusal, nominate

Case = dict[str, Any]


def _pods(documents: list[Case]) -> list[Pod]:
    return [msgspec.convert(document, Pod, dec_hook=decode_hook) for document in documents]


@pytest.mark.golden("preemption.json", "kubelet_admit")
def test_node_admission(case: Case) -> None:
    pod = msgspec.convert(case["pod"], Pod, dec_hook=decode_hook)
    result = fit(pod, _node_view(case["node"]), _pods(case["otherPods"]))
    assert (result.fits, result.reason, result.message) == (
        case["admit"],
        case.get("reason", ""),
        case.get("message", ""),
    )


def _node_view(document: Case) -> NodeView:
    node = msgspec.convert(document, Node, dec_hook=decode_hook)
    return NodeView(node.metadata.name, node.status.allocatable, node.metadata.labels, node.spec.taints)


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


def _budget(document: Case) -> DisruptionBudget:
    return DisruptionBudget(
        document["metadata"]["namespace"],
        msgspec.convert(document["spec"].get("selector", {}), LabelSelector),
        document["status"]["disruptionsAllowed"],
        frozenset(document["status"].get("disruptedPods", ())),
    )


def _refusals(documents: Case) -> dict[str, NodeRefusal]:
    return {name: NodeRefusal(each["code"], tuple(each["reasons"])) for name, each in documents.items()}


@pytest.mark.golden("preemption.json", "scheduler")
def test_preemption_by_the_scheduler(case: Case) -> None:
    running = _pods(case["pods"])
    nodes = {
        view.name: (view, [pod for pod in running if pod.spec.node_name == view.name])
        for view in map(_node_view, case["nodes"])
    }
    pod = msgspec.convert(case["pod"], Pod, dec_hook=decode_hook)

    nomination = nominate(pod, nodes, [_budget(document) for document in case["pdbs"] or []])

    assert nomination.refusals == _refusals(case["filterStatus"])
    assert (nomination.not_eligible == "") == case["eligible"]
    assert nomination.not_eligible == case.get("notEligibleReason", "")
    assert {
        candidate.node: {
            "victims": [victim.metadata.name for victim in candidate.victims],
            "numPDBViolations": candidate.budget_violations,
        }
        for candidate in nomination.candidates
    } == case.get("candidates", {})
    assert nomination.not_candidates == _refusals(case.get("notCandidates", {}))
    assert nomination.node in case.get("selectedNodeOneOf", [case.get("selectedNode")])
