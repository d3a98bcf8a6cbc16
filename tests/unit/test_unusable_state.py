"""State files that are damaged or not this machine's: named with what mends them, and running pods go on."""

from pathlib import Path

import pytest

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import parse_short
from nodeagent.resources.managers import LiveContainer, ResourceManagers
from tests.unit.resource_nodes import admitted, machine, memory_settings, settings
from tests.unit.resource_pods import container, pod


def damaged(content: str) -> str:
    return content.replace('"checksum":', '"checksum":1')


def foreign(content: str) -> str:
    return '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'


def torn(content: str) -> str:
    return content[: len(content) // 2]


def of_a_larger_machine(content: str) -> str:
    return '{"policyName":"static","defaultCpuSet":"0-63","checksum":0}'


@pytest.mark.parametrize("damage", [damaged, foreign, torn, of_a_larger_machine])
def test_an_unusable_file_is_reported_left_alone_and_costs_running_pods_nothing(
    tmp_path: Path, damage: object
) -> None:
    first = ResourceManagers(machine(), settings(), tmp_path)
    own, late = pod("p", container("own", "4")), pod("q", container("own", "4"))
    first.admit(own, [])
    had = first.container_cpus("p", "own")
    assert had
    file = tmp_path / "cpu_manager_state"
    file.write_text(damage(file.read_text()))  # type: ignore[operator]
    found = file.read_bytes()

    live = [LiveContainer("p", "own", "id", had)]
    second = ResourceManagers(machine(), settings(), tmp_path, live)
    (problem,) = second.problems
    assert problem.path == file
    assert "nodeagent state reset cpu" in str(problem)
    admitted(second.admit(late, [own, late]))
    admitted(second.admit(own, [own, late]))
    assert second.container_cpus("p", "own") == had
    assert not had & (second.container_cpus("q", "own") or had)
    assert file.read_bytes() == found

    file.unlink()
    second.refresh()
    assert second.problems == ()
    third = ResourceManagers(machine(), settings(), tmp_path)
    assert third.problems == ()
    assert third.container_cpus("p", "own") == had


def test_a_torn_state_of_kubelet_is_named_with_both_sets(tmp_path: Path) -> None:
    file = tmp_path / "cpu_manager_state"
    file.write_text('{"policyName":"static","defaultCpuSet":"0-3","checksum":0}')
    managers = ResourceManagers(parse_short("1x8x1"), settings(), tmp_path)
    (problem,) = managers.problems
    assert '"0-7"' in str(problem) and '"0-3"' in str(problem)
    assert "CPUs 4-7 of this machine are not in the file" in str(problem)
    assert str(managers.shared_pool) == "0-7"


def of_four_nodes(content: str) -> str:
    node = '{"numberOfAssignments":0,"memoryMap":{},"cells":[3]}'
    return f'{{"policyName":"Static","machineState":{{"3":{node}}},"checksum":0}}'


@pytest.mark.parametrize("damage", [damaged, foreign, torn, of_four_nodes])
def test_an_unusable_memory_file_costs_running_pods_nothing(tmp_path: Path, damage: object) -> None:
    first = ResourceManagers(machine(), memory_settings(), tmp_path)
    own = pod("p", container("own", "2", "3Gi"))
    admitted(first.admit(own, []))
    had = first.container_mems("p", "own")
    assert had
    file = tmp_path / "memory_manager_state"
    file.write_text(damage(file.read_text()))  # type: ignore[operator]
    found = file.read_bytes()

    live = [LiveContainer("p", "own", "id", first.container_cpus("p", "own") or CpuSet(), had)]
    second = ResourceManagers(machine(), memory_settings(), tmp_path, live)
    (problem,) = second.problems
    assert problem.path == file
    assert "nodeagent state reset memory" in str(problem)
    admitted(second.admit(own, [own]))
    assert second.container_mems("p", "own") == had
    assert file.read_bytes() == found

    file.unlink()
    second.refresh()
    third = ResourceManagers(machine(), memory_settings(), tmp_path)
    assert third.problems == ()
    assert third.container_mems("p", "own") == had
