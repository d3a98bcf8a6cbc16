"""`state`: the resource managers' files shown, compared with the machine, put aside under a running agent."""

import json
from pathlib import Path

import pytest

from nodeagent.__main__ import main
from nodeagent.api.quantity import Quantity
from nodeagent.hardware.topology import read_topology
from nodeagent.resources.device_manager import Device, DeviceResource
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from tests.unit.agent_server import NOBODY, serving
from tests.unit.resource_pods import container, pod

CONFIG = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
cpuManagerReconcilePeriod: 7s
"""
SETTINGS = ManagerSettings(cpu_manager_policy="static", node_reservation={"cpu": Quantity.parse("1")})


class Station:
    """A machine of four CPUs in files, with a state directory and a configuration."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / "state"
        self.config = root / "kubelet.yaml"
        self.config.write_text(CONFIG)
        self.set_cpus(4)
        (root / "proc/sys/kernel").mkdir(parents=True)
        (root / "proc/meminfo").write_text("MemTotal: 2000000 kB\n")
        for name in ("pid_max", "threads-max"):
            (root / "proc/sys/kernel" / name).write_text("32768\n")

    def set_cpus(self, count: int) -> None:
        (self.root / "sys/devices/system/cpu").mkdir(parents=True, exist_ok=True)
        for name in ("online", "present", "possible"):
            (self.root / "sys/devices/system/cpu" / name).write_text(f"0-{count - 1}\n")

    def managers(self, settings: ManagerSettings = SETTINGS) -> ResourceManagers:
        return ResourceManagers(read_topology(self.root / "sys"), settings, self.directory)

    def run(self, *words: str, server: str = NOBODY) -> int:
        roots = [f"--{name}-root={self.root / name}" for name in ("proc", "sys")]
        where = [f"--config={self.config}", f"--state-directory={self.directory}", f"--server={server}"]
        return main(["state", *words, *where, *roots])


@pytest.fixture
def station(tmp_path: Path) -> Station:
    return Station(tmp_path)


def test_a_cpu_state_is_shown_with_the_pods_names(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    station.managers().admit(pod("u1", container("app", "2")), [])
    assert station.run("show", "cpu") == 0
    assert capsys.readouterr().out.splitlines() == [
        str(station.directory / "cpu_manager_state"),
        "  policy:      static",
        "  shared pool: 0,3",
        "  POD   CONTAINER   CPUS",
        "  u1    app         1-2",
    ]
    known = {"kind": "PodList", "items": [{"metadata": {"name": "web", "namespace": "shop", "uid": "u1"}}]}
    with serving({"/api/v1/pods": known}) as server:
        assert station.run("show", "cpu", server=server) == 0
    assert "shop/web   app" in capsys.readouterr().out
    assert station.run("show", "cpu", "-o", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["state"]["entries"] == {"u1": {"app": "1-2"}}


def test_memory_and_devices_are_shown_as_tables(station: Station, capsys: pytest.CaptureFixture[str]) -> None:
    station.directory.mkdir()
    gib = 1 << 30
    table = {
        "total": 4 * gib, "systemReserved": gib, "allocatable": 3 * gib, "reserved": gib, "free": 2 * gib,
    }  # fmt: skip
    memory = {
        "policyName": "Static",
        "machineState": {"0": {"numberOfAssignments": 1, "memoryMap": {"memory": table}, "cells": [0]}},
        "entries": {"u1": {"app": [{"numaAffinity": [0, 1], "type": "memory", "size": gib}]}},
        "checksum": 1,
    }
    (station.directory / "memory_manager_state").write_text(json.dumps(memory))
    devices = {"entries": {"u1": {"app": {"example.com/gpu": ["g0", "g1"]}}}, "checksum": 1}
    (station.directory / "device_manager_state").write_text(json.dumps(devices))
    assert station.run("show") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in lines if line.startswith("  ")] == [
        "policy: Static",
        "NUMA NODE KIND TOTAL SYSTEM ALLOCATABLE ASSIGNED FREE",
        "0 memory 4Gi 1Gi 3Gi 1Gi 2Gi",
        "POD CONTAINER KIND SIZE NUMA NODES",
        "u1 app memory 1Gi 0,1",
        "POD CONTAINER RESOURCE DEVICES",
        "u1 app example.com/gpu g0, g1",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is no JSON"), ("[]", "expected a JSON object"), ('{"entries": 3}', "is no cpu state")],
)
def test_what_is_no_state_is_said_in_a_sentence(
    text: str, said: str, station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    station.directory.mkdir()
    (station.directory / "cpu_manager_state").write_text(text)
    assert station.run("show", "cpu") == 1
    assert f"nodeagent: {station.directory}/cpu_manager_state: {said}" in capsys.readouterr().err


def test_no_file_is_said_too(station: Station, capsys: pytest.CaptureFixture[str]) -> None:
    assert station.run("show", "memory") == 1
    assert "memory_manager_state: no such file" in capsys.readouterr().err
    assert station.run("reset", "memory") == 1
    assert "nothing to put aside" in capsys.readouterr().err
    assert station.run("reset") == 1
    assert "which one? Expected one of cpu, memory, device" in capsys.readouterr().err
    assert station.run("verify") == 0
    assert capsys.readouterr().out.count("no such file") == 3


def test_a_file_that_suits_is_left_as_it_is(station: Station, capsys: pytest.CaptureFixture[str]) -> None:
    station.managers().admit(pod("u1", container("app", "2")), [])
    file = station.directory / "cpu_manager_state"
    before = file.read_bytes(), file.stat().st_mtime_ns
    assert station.run("verify", "cpu") == 0
    assert f"{file}: suits this machine and the configuration ({station.config})" in capsys.readouterr().out
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_what_differs_is_named_with_the_command_that_mends_it(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    station.managers()
    file = station.directory / "cpu_manager_state"
    before = file.read_bytes()
    station.set_cpus(6)
    assert station.run("verify", "cpu") == 1
    text = capsys.readouterr().out
    assert text.startswith(f"{file}: does not suit: ")
    assert "CPUs 4-5 of this machine are not in the file" in text
    assert "mend: 'nodeagent state reset cpu'" in text
    assert station.run("verify", "-o", "json") == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], data["files"][0]["path"], data["files"][0]["ok"]) == (False, str(file), False)
    assert data["files"][1]["ok"]
    station.config.write_text(CONFIG.replace("static", "none"))
    assert station.run("verify", "cpu") == 1
    assert 'configured policy "none" differs from state checkpoint policy "static"' in capsys.readouterr().out
    assert file.read_bytes() == before


def test_a_configuration_that_this_machine_cannot_have_is_a_sentence(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    station.config.write_text(CONFIG.replace('"0"', '"9"'))
    assert station.run("verify", "cpu") == 1
    assert "unknown CPU ID: 9" in capsys.readouterr().err


def test_a_running_agent_takes_a_reset_up_at_its_next_refresh(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file was spoilt while the agent was away; the pods keep their CPUs over all of it."""
    own = pod("u1", container("app", "2"))
    station.managers().admit(own, [])
    station.set_cpus(6)
    agent = station.managers()
    agent.admit(own, [own])
    assert len(agent.problems) == 1
    file = station.directory / "cpu_manager_state"
    spoilt = file.read_bytes()

    assert station.run("reset", "cpu") == 0
    text = capsys.readouterr().out
    (aside,) = station.directory.glob("cpu_manager_state.*Z")
    assert f"{file} is now {aside}." in text and "every 7s" in text and "no pod is touched" in text
    assert aside.read_bytes() == spoilt and not file.exists()

    agent.refresh()
    assert agent.problems == ()
    assert str(agent.container_cpus("u1", "app")) == "1-2"
    assert station.run("verify", "cpu") == 0
    assert str(station.managers().container_cpus("u1", "app")) == "1-2"


def test_a_sound_file_that_was_put_aside_comes_back_as_it_was(station: Station) -> None:
    gpus = DeviceResource("example.com/gpu", (Device("g0"), Device("g1")))
    settings = ManagerSettings(
        cpu_manager_policy="static", node_reservation=SETTINGS.node_reservation, devices=(gpus,)
    )
    agent = station.managers(settings)
    agent.admit(pod("u1", container("app", "2", more={"example.com/gpu": "1"})), [])
    for manager in ("cpu", "memory", "device"):
        file = station.directory / f"{manager}_manager_state"
        before = file.read_bytes()
        assert station.run("reset", manager, "-o", "json") == 0
        assert not file.exists()
        agent.refresh()
        assert file.read_bytes() == before
