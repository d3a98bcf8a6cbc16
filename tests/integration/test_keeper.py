"""The keeper under real systemd and cgroups, without the agent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.node import Node

SCENARIOS = Path(__file__).parent / "keeper_scenarios.py"
REMOTE = "/root/keeper_scenarios.py"

Scenario = Callable[[str], dict[str, Any]]


@pytest.fixture
def scenario(machine: Node) -> Scenario:
    """Run a scenario beside a keeper without a past, and return what it found."""
    machine.clean()
    machine.run("systemctl start nodeagent-keeper.service", timeout=300)
    machine.put(SCENARIOS, REMOTE)

    def run(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            machine.run(f"/opt/nodeagent/bin/python {REMOTE} {name}", timeout=300)
        )
        return found

    return run


def test_a_container_outlives_who_started_it(scenario: Scenario) -> None:
    assert scenario("begin") == {"state": "running"}
    found = scenario("look")
    assert found == {
        "exit_code": 7,
        "signal": None,
        "oom_killed": False,
        "output": [str(number) for number in range(1, 31)],
    }


def test_a_kill_for_memory_is_known_as_one(scenario: Scenario) -> None:
    killed = {"exit_code": 137, "signal": 9, "oom_killed": True}
    found = scenario("oom")
    assert found == {
        "main-1": killed,
        "main-2": killed,
        "main-3": killed,
        "child": {"exit_code": 137, "signal": None, "oom_killed": True, "output": "child ended with 137"},
        "killed": {"exit_code": 137, "signal": 9, "oom_killed": False},
    }


def test_containers_and_their_output_survive_all_restarts_of_the_keeper(
    machine: Node, scenario: Scenario
) -> None:
    # systemd forgets the descriptors of a stopped unit that nobody wants
    machine.run("systemctl enable --quiet nodeagent-keeper.service")
    try:
        found = scenario("restarts")
    finally:
        machine.run("systemctl disable --quiet nodeagent-keeper.service")
    ticks = found.pop("ticks")
    assert ticks == list(range(1, len(ticks) + 1))
    assert found == {
        "same process after a reload": True,
        "renewed": {"exit_code": 5, "signal": None, "oom_killed": False},
        "states": {"polite": "exited", "ticks": "running"},
        "stored": 2,
        "stored at the end": 0,
        "last": {"exit_code": None, "signal": None, "oom_killed": False},
    }


def test_a_container_does_not_pay_for_its_own_start(scenario: Scenario) -> None:
    found = scenario("frugal")
    # the program is loaded, and nothing of that is on its bill
    assert found["program"].endswith("sleep")
    assert int(found["bill"]["usage_usec"]) == 0
    assert int(found["bill"]["nr_throttled"]) == 0
    assert found["seconds"] < 10


def test_what_cannot_start_leaves_nothing(scenario: Scenario) -> None:
    assert scenario("failures") == {
        "messages": [
            'exec: "nonesuch": executable file not found in $PATH',
            'exec: "/etc/passwd": permission denied',
            'exec: "/no/such": stat /no/such: no such file or directory',
            "attach failed",
        ],
        "attached": [],
        "containers": [],
        "processes": 1,
    }


def test_it_stays_small(scenario: Scenario) -> None:
    found = scenario("memory")
    assert found["alone_kib"] < 12 * 1024
    assert found["with_20_kib"] - found["alone_kib"] < 20 * 100
