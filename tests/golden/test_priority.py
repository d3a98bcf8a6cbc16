"""Priority admission and PriorityClasses, against Kubernetes' own outcome (priority.json)."""

from typing import Any

import pytest

from nodeagent.admission.priority import prioritize
from nodeagent.admission.priority_class import (
    SYSTEM_CLASSES,
    admit_priority_class,
    default_priority_class,
    validate_priority_class,
)
from nodeagent.admission.request import PODS, PRIORITY_CLASSES, Operation, Request
from nodeagent.api.decode import from_builtins
from nodeagent.api.pod import Pod
from nodeagent.api.policy import PriorityClass
from tests.golden.statuses import status_of

Case = dict[str, Any]


def _classes(documents: list[Case]) -> list[PriorityClass]:
    return [default_priority_class(from_builtins(document, PriorityClass)) for document in documents]


@pytest.mark.golden("priority.json", "system_classes")
def test_system_classes(case: Case) -> None:
    (known,) = (each for each in SYSTEM_CLASSES if each.metadata.name == case["name"])
    assert (known.value, known.global_default, known.description) == (
        case["value"],
        case["globalDefault"],
        case["description"],
    )
    assert validate_priority_class(known) == ()


@pytest.mark.golden("priority.json", "admit_pod")
def test_priority_of_a_pod(case: Case) -> None:
    old = from_builtins(case["oldPod"], Pod) if "oldPod" in case else None
    request = Request(
        PODS,
        from_builtins(case["pod"], Pod),
        Operation(case["operation"]),
        old,
        case.get("subresource", ""),
    )
    prioritized = prioritize(request, _classes(case["priorityClasses"]))

    assert status_of(prioritized.refusal) == case.get("status")
    if "result" in case:
        spec = prioritized.pod.spec
        assert {
            "priorityClassName": spec.priority_class_name or "",
            "priority": spec.priority,
            "preemptionPolicy": spec.preemption_policy,
        } == case["result"]


@pytest.mark.golden("priority.json", "priorityclass")
def test_priority_class(case: Case) -> None:
    priority_class = from_builtins(case["priorityClass"], PriorityClass)
    request = Request(PRIORITY_CLASSES, priority_class, Operation(case["operation"]))

    refusal = admit_priority_class(request, _classes(case["existing"]))

    assert status_of(refusal) == case.get("admissionStatus")
    errors = validate_priority_class(default_priority_class(priority_class))
    assert sorted(map(str, errors)) == case["validationErrorsSorted"]
