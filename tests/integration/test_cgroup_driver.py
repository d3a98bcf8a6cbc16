"""The cgroup drivers on a real kernel under a real systemd, without the agent."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.node import Node

SCENARIOS = Path(__file__).parent / "cgroup_scenarios.py"
REMOTE = "/root/cgroup_scenarios.py"

Scenario = Callable[[str], dict[str, Any]]


@pytest.fixture
def scenario(machine: Node) -> Iterator[Scenario]:
    """Run a scenario inside the machine, and return what it found."""
    machine.put(SCENARIOS, REMOTE)

    def run(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            machine.run(f"/opt/nodeagent/bin/python {REMOTE} {name}", timeout=600)
        )
        return found

    yield run
    machine.run("systemctl stop devcg.slice; systemctl reset-failed", check=False)


def test_reload_and_reexec_change_no_value(scenario: Scenario) -> None:
    assert scenario("reload") == {
        "made": {},
        "daemon-reload, at once": {},
        "daemon-reload, after a start beside": {},
        "daemon-reexec, at once": {},
        "daemon-reexec, after a start beside": {},
        "controllers": [[], [], []],
        "running": True,
        "left behind": [],
    }


def test_a_change_is_kept_by_systemd_too(scenario: Scenario) -> None:
    pod, leaf = ["cpu.max", "memory.max", "pids.max"], ["cpuset.cpus", "cpu.max", "memory.low"]
    assert scenario("change") == {
        "changed": pod + leaf,
        "then": {},
        "after a reload": {},
        "again": [[], [], [], []],
        "left behind": [],
    }


def test_the_tree_of_an_earlier_life_is_adopted_and_repaired(scenario: Scenario) -> None:
    assert scenario("adopt") == {"wrong": {}, "processes": True, "left behind": []}


def test_a_slice_that_systemd_made_by_itself_becomes_ours(scenario: Scenario) -> None:
    assert scenario("implicit") == {"other": True, "wrong": {}, "left behind": []}


def test_removal_takes_what_resists(scenario: Scenario) -> None:
    assert scenario("removal") == {"exit": -9, "soon": True, "there": False, "qos": True, "left behind": []}


def test_what_cannot_be_done_is_said(scenario: Scenario) -> None:
    found = scenario("refused")
    assert found["dead process"].startswith("systemd did not start nodeagent-devcg2.scope: ")
    assert found["dead process"].endswith("No such process")
    assert "nodeagent-devcg1.scope was already loaded" in found["taken name"]
    assert "nodeagent-devcg2.scope is not there" in found["no cgroup"]
    assert "nodeagent-devcg2.scope: no connection to the system bus" in found["no bus"]
    assert (found["wrong"], found["left behind"]) == ({}, [])


def test_a_failed_scope_of_the_same_name_is_no_obstacle(scenario: Scenario) -> None:
    assert scenario("failed_unit") == {"wrong": {}, "left behind": []}


def test_out_of_memory_ends_a_container_whole(scenario: Scenario) -> None:
    assert scenario("group_kill") == {"exit": -9, "left behind": []}


def test_a_limit_below_what_is_used_blocks_nobody(scenario: Scenario) -> None:
    assert scenario("shrink") == {"wrong": {}, "loop went on": True, "left behind": []}


def test_the_same_tree_without_systemds_help(scenario: Scenario) -> None:
    found = scenario("plain")
    assert "a cgroup can hold processes, or hand controllers to its children, not both" in found.pop("inner")
    assert found == {
        "wrong": {},
        "processes": True,
        "changed": ["cpu.max", "pids.max"],
        "then": {},
        "exit": -9,
        "left behind": [],
    }
