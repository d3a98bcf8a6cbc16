"""The kernel's notices of pressure, and the quick readers, on a real kernel."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.node import Node

SCENARIOS = Path(__file__).parent / "notice_scenarios.py"
REMOTE = "/root/notice_scenarios.py"
MIB = 1 << 20

Scenario = Callable[[str], dict[str, Any]]


@pytest.fixture
def scenario(machine: Node) -> Scenario:
    machine.clean()
    machine.put(SCENARIOS, REMOTE)

    def run(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            machine.run(f"/opt/nodeagent/bin/python {REMOTE} {name}", timeout=300)
        )
        return found

    return run


def test_a_change_of_memory_events_wakes_and_a_removed_cgroup_is_quiet(scenario: Scenario) -> None:
    found = scenario("events")
    assert found["before"] == 0
    assert found["during"] >= 1
    assert found["after_removal"] == 0


def test_waiting_for_memory_fires_the_pressure_trigger(scenario: Scenario) -> None:
    found = scenario("pressure")
    assert found["during"] >= 1


def test_quick_and_thorough_samples_agree(scenario: Scenario) -> None:
    found = scenario("samples")
    assert found["memory_differs_by"] < 8 * MIB
    assert found["tasks_differ_by"] <= 10
    assert found["most_tasks_agree"]
    assert found["is_calm"]
    assert found["slice_bytes"] > MIB
    assert found["fill_rate"] > MIB
