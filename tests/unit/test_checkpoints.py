"""State files: kubelet's checksums, old layouts, and writes that a kill cannot tear."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import parse_short
from nodeagent.resources import cpu_checkpoint
from nodeagent.resources.checkpoint import StateFile, StateFileError, write_atomically
from nodeagent.resources.cpu_state import CpuState
from nodeagent.resources.managers import LiveContainer, ManagerSettings, ResourceManagers
from nodeagent.resources.state_files import put_aside
from tests.unit.resource_nodes import settings
from tests.unit.resource_pods import container, pod

UIDS = ("69aa6124-4e0e-4c66-94ea-feae7df25b68", "e49ac32c-22a3-4c8c-8be3-721bd1fd9eaa")


def cpus(**lists: str) -> dict[str, CpuSet]:
    return {name.replace("_", "-"): CpuSet.parse(text) for name, text in lists.items()}


@pytest.mark.parametrize(
    ("policy", "state", "checksum"),
    [
        ("static", CpuState(CpuSet.parse("0-79")), 1241370203),
        ("static", CpuState(CpuSet.parse("2-19,22-39,42-59,62-79")), 3758876046),
        (
            "static",
            CpuState(
                CpuSet.parse("1,3,15-31,47-63"),
                {
                    UIDS[1]: cpus(centos="0,2,4-14,32,34,36-46", init_container="33"),
                    UIDS[0]: cpus(init_container="35"),
                },
            ),
            3748757820,
        ),
        ("none", CpuState(), 1353318690),
    ],
)
def test_checksums_of_files_that_kubelets_wrote(
    policy: str, state: CpuState, checksum: int, tmp_path: Path
) -> None:
    content = cpu_checkpoint.encode(policy, state)
    assert content.endswith(b'"checksum":%d}' % checksum)
    file = StateFile(tmp_path / "state", "cpu")
    file.write(lambda: content)
    assert cpu_checkpoint.load(file, policy, {}) == (state, True)


def test_the_layout_before_kubernetes_1_18_is_read_through_the_running_containers(tmp_path: Path) -> None:
    container_id = "cdc2c5cc531dd48bceb064e5411259a46bd8b8e70974fce10a3620b5b5da2c05"
    (tmp_path / "cpu_manager_state").write_text(
        '{"policyName":"static","defaultCpuSet":"0-1,6-17",'
        f'"entries":{{"{container_id}":"2-5"}},"checksum":148873334}}'
    )
    live = [LiveContainer("p", "own", container_id, CpuSet.parse("2-5"))]
    managers = ResourceManagers(parse_short("1x18x1"), settings(), tmp_path, live)
    assert managers.problems == ()
    own = pod("p", container("own", "4"))
    assert managers.admit(own, [own]).admitted
    assert managers.container_cpus("p", "own") == CpuSet.parse("2-5")
    (problem,) = ResourceManagers(parse_short("1x18x1"), ManagerSettings(), tmp_path).problems
    assert 'configured policy "none" differs from state checkpoint policy "static"' in str(problem)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("", "truncated|unexpected end|Input data"),
        ("[" * 100_000, "recursion|depth|array|object"),
        ('{"policyName":"static","defaultCpuSet":"0-3","checksum":7}', "checkpoint is corrupted"),
        (
            '{"policyName":"static","defaultCpuSet":"0","entries":{"p":{"c":"1"}},"checksum":7}',
            "checkpoint is corrupted",
        ),
        (
            '{"policyName":"static","defaultCpuSet":"0-x","checksum":0}',
            'could not parse default cpu set "0-x"',
        ),
        (
            '{"policyName":"static","defaultCpuSet":"0","entries":{"p":{"c":"5-2"}},"checksum":0}',
            'could not parse cpuset "5-2" for container "c" in pod "p": invalid range "5-2" (5 > 2)',
        ),
        ("{}", 'configured policy "static" differs from state checkpoint policy ""'),
    ],
)
def test_an_unusable_file_says_why(content: str, cause: str, tmp_path: Path) -> None:
    path = tmp_path / "cpu_manager_state"
    path.write_text(content)
    with pytest.raises(StateFileError) as refused:
        cpu_checkpoint.load(StateFile(path, "cpu"), "static", {})
    assert any(part in refused.value.cause for part in cause.split("|")) or cause in refused.value.cause
    assert f'delete the CPU manager checkpoint file "{path}"' in str(refused.value)


def test_a_directory_in_the_files_place_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "memory_manager_state").mkdir()
    (problem,) = ResourceManagers(parse_short("1x4x1"), settings(), tmp_path).problems
    assert problem.manager == "memory"
    assert "cannot be read" in str(problem)


WRITER = """
import sys
from pathlib import Path
from nodeagent.resources.checkpoint import write_atomically
path = Path(sys.argv[1])
number = 0
while True:
    number += 1
    write_atomically(path, b"%d " % number * 2000)
    if number == 1:
        print("begun", flush=True)
"""


def test_a_kill_at_any_moment_leaves_the_old_content_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for round_ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        ) as writer:
            assert writer.stdout and writer.stdout.readline() == b"begun\n"
            time.sleep(0.01 * round_)
            os.kill(writer.pid, signal.SIGKILL)
        words = path.read_bytes().split()
        assert len(words) == 2000
        assert len(set(words)) == 1
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_failed_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with pytest.raises(OSError):
        write_atomically(tmp_path / "state", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_putting_a_file_aside_lets_a_running_agent_write_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "cpu_manager_state"
    path.write_text("damaged")
    managers = ResourceManagers(parse_short("1x4x1"), settings(), tmp_path)
    assert managers.admit(pod("p", container("own", "2")), []).admitted
    assert path.read_text() == "damaged"
    aside = put_aside(path, datetime(2026, 1, 1, tzinfo=UTC))
    managers.refresh()
    assert aside.read_text() == "damaged"
    assert ResourceManagers(parse_short("1x4x1"), settings(), tmp_path).problems == ()
    assert '"own":"1-2"' in path.read_text()
