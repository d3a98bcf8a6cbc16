"""CPU choice against what kubelet 1.36 chose."""

from typing import Any

import pytest

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.resources.cpu_assignment import CpuAssigner
from nodeagent.resources.cpu_options import parse_cpu_options
from nodeagent.resources.errors import NotEnoughCpus
from tests.golden import bugs
from tests.golden.machines import topology


@pytest.mark.golden("cpu_assignment.json", "cases")
def test_take(case: dict[str, Any], document: dict[str, Any]) -> None:
    available = CpuSet.parse(case["available"])
    assigner = CpuAssigner(topology(document, case["topology"]))
    options = parse_cpu_options(dict.fromkeys(case["options"], "true"), alpha=True)

    def take() -> str:
        try:
            choice = assigner.take(available, case["num"], options)
        except NotEnoughCpus as error:
            return str(error)
        together = CpuSet()
        for step in choice.steps:
            assert not together & step.cpus
            together |= step.cpus
        assert together == choice.cpus
        return str(choice.cpus)

    def exact(case: dict[str, Any]) -> None:
        assert take() == (case["error"]["message"] if "error" in case else case["result"])

    def size_and_freedom(case: dict[str, Any]) -> None:
        taken = CpuSet.parse(take())
        assert len(taken) == case["num"]
        assert taken <= available

    def kept_winner(case: dict[str, Any]) -> None:
        assert take() == case["ours"]

    bugs.check(
        case,
        exact,
        {
            "takes CPUs that were not free": size_and_freedom,
            "the winning combination was overwritten": kept_winner,
            "never returns": size_and_freedom,
        },
    )
