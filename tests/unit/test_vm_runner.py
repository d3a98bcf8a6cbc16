"""vagrant/vm without a machine: what it says when something is missing, and what it never touches."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

VAGRANT = Path(__file__).parents[2] / "vagrant"
sys.path.insert(0, str(VAGRANT))

from nodevm.machine import Machine  # noqa: E402
from nodevm.paths import VmError, require, require_space  # noqa: E402
from nodevm.shapes import SHAPES, Shape  # noqa: E402


def _vm(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NODEAGENT_CACHE": str(cache)}
    command = [sys.executable, str(VAGRANT / "vm"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NODEAGENT_CACHE", str(tmp_path))
    return tmp_path


def test_numa_nodes_share_out_the_cpus_and_the_memory() -> None:
    shape = Shape("x", "", 2048, sockets=2, cores=2, threads=2, numa_nodes=2)
    options = " ".join(shape.arguments())
    assert "-smp 8,sockets=2,cores=2,threads=2 -m 2048M" in options
    assert "-object memory-backend-ram,id=m0,size=1024M -numa node,nodeid=0,cpus=0-3,memdev=m0" in options
    assert "-object memory-backend-ram,id=m1,size=1024M -numa node,nodeid=1,cpus=4-7,memdev=m1" in options


def test_every_shape_divides_evenly() -> None:
    for shape in SHAPES.values():
        assert shape.cpus % shape.numa_nodes == 0 == shape.memory_mib % shape.numa_nodes


def test_status_of_nothing_has_an_exit_code_of_its_own(cache: Path) -> None:
    result = _vm(cache, "status")
    assert (result.returncode, result.stdout) == (3, "no machine runs: vagrant/vm up\n")


@pytest.mark.parametrize("command", [["ssh", "--", "true"], ["put", "--project"], ["get", "/etc/hostname"]])
def test_a_machine_that_does_not_run_is_named_in_a_sentence(cache: Path, command: list[str]) -> None:
    result = _vm(cache, command[0], "--shape", "small", *command[1:])
    assert result.returncode == 1
    assert result.stderr == "vm: small is not running: vagrant/vm up --shape small\n"


def test_down_of_nothing_is_no_error(cache: Path) -> None:
    assert _vm(cache, "down").returncode == 0


def test_a_reused_pid_is_neither_taken_for_the_machine_nor_killed(cache: Path) -> None:
    """The pidfile of a QEMU that is gone names a process that is somebody else's by now."""
    with subprocess.Popen(["sleep", "60"]) as foreign:
        directory = cache / "run" / "plain"
        directory.mkdir(parents=True)
        state = {"shape": "plain", "image": "image-0", "accelerator": "tcg", "ssh_port": 1, "metrics_port": 2}
        (directory / "state.json").write_text(json.dumps(state | {"sockets": str(cache / "sockets")}))
        (directory / "qemu.pid").write_text(f"{foreign.pid}\n")
        machine = Machine("plain")
        assert machine.pid() is None
        machine.down()
        assert foreign.poll() is None and not directory.exists()
        foreign.kill()


def test_an_unknown_shape_lists_the_known() -> None:
    with pytest.raises(VmError, match="shape 'huge' is unknown: expected one of plain, numa2"):
        Machine("huge")


def test_missing_programs_are_given_as_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(VmError, match="apt-get install qemu-system-x86 openssh-client mmdebstrap"):
        require("qemu-system-x86_64", "ssh", "ssh-keygen", "mmdebstrap")


def test_a_full_disk_is_told_before_the_work_starts(tmp_path: Path) -> None:
    with pytest.raises(VmError, match=r"MiB free at .*, .* MiB needed: make room"):
        require_space(tmp_path, 1 << 60)
