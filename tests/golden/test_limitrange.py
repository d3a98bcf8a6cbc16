"""LimitRanges, against Kubernetes' own outcome (limitrange.json)."""

from typing import Any

import pytest

from nodeagent.admission.limit_range import ANNOTATION, Checked, check_claim, check_pod, set_defaults
from nodeagent.admission.limit_range_validation import default_limit_range, validate_limit_range
from nodeagent.admission.request import PERSISTENT_VOLUME_CLAIMS, PODS, Operation, Request
from nodeagent.api.container import ResourceRequirements
from nodeagent.api.decode import from_builtins, to_builtins
from nodeagent.api.defaults import default_pod
from nodeagent.api.persistent_volume_claim import PersistentVolumeClaim
from nodeagent.api.pod import Container, Pod
from nodeagent.api.policy import LimitRange
from tests.golden.statuses import status_of

Case = dict[str, Any]


def _stored(documents: list[Case]) -> list[LimitRange]:
    return [default_limit_range(from_builtins(document, LimitRange)) for document in documents]


def _limits(limit_range: LimitRange) -> list[Case]:
    limits: list[Case] = to_builtins(limit_range.spec)["limits"]
    return limits


def _resources(pod: Pod) -> Case:
    def of(containers: tuple[Container, ...]) -> Case:
        return {each.name: to_builtins(each.resources) for each in containers}

    found: Case = {"containers": of(pod.spec.containers), "initContainers": of(pod.spec.init_containers)}
    found["podLevel"] = to_builtins(pod.spec.resources or ResourceRequirements())
    return {name: part for name, part in found.items() if part}


@pytest.mark.golden("limitrange.json", "admission")
def test_admission(case: Case) -> None:
    limit_ranges = _stored(case["limitRanges"])
    assert [{"name": each.metadata.name, "limits": _limits(each)} for each in limit_ranges] == case[
        "limitRangesAfterDefaulting"
    ]

    checked = _pod(case, limit_ranges) if case["kind"] == "Pod" else _claim(case, limit_ranges)

    assert status_of(checked.refusal) == case.get("validateStatus")
    assert (checked.refusal is None) == case["allowed"]
    complaints = sorted({each.complaint for each in checked.comparisons if each.complaint})
    assert complaints == sorted(set(case.get("validateErrors", ())))
    if "failedLimitRange" in case:
        assert checked.comparisons[-1].limit_range == case["failedLimitRange"]


def _pod(case: Case, limit_ranges: list[LimitRange]) -> Checked:
    operation, subresource = Operation(case["operation"]), case.get("subresource", "")
    pod = default_pod(from_builtins(case["object"], Pod))
    old = from_builtins(case["oldObject"], Pod) if "oldObject" in case else None
    assert _resources(pod) == case["podAfterDefaulting"]
    request = Request(PODS, pod, operation, old, subresource)
    admitted = set_defaults(request, limit_ranges).pod
    assert _resources(admitted) == case["podAfterAdmit"]
    assert admitted.metadata.annotations.get(ANNOTATION) == case.get("annotation")
    return check_pod(Request(PODS, admitted, operation, old, subresource), limit_ranges)


def _claim(case: Case, limit_ranges: list[LimitRange]) -> Checked:
    claim = from_builtins(case["object"], PersistentVolumeClaim)
    old = from_builtins(case["oldObject"], PersistentVolumeClaim) if "oldObject" in case else None
    operation, subresource = Operation(case["operation"]), case.get("subresource", "")
    request = Request(PERSISTENT_VOLUME_CLAIMS, claim, operation, old, subresource)
    return check_claim(request, limit_ranges)


@pytest.mark.golden("limitrange.json", "validation")
def test_validation(case: Case) -> None:
    limit_range = default_limit_range(from_builtins(case["limitRange"], LimitRange))
    assert _limits(limit_range) == case["limitsAfterDefaulting"]
    assert sorted(map(str, validate_limit_range(limit_range))) == case["errorsSorted"]
