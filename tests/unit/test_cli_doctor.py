"""`doctor` on hosts made of files: what it finds, how bad it is, and how to mend it."""

import json
from pathlib import Path

import pytest

from nodeagent.__main__ import main
from nodeagent.cli.host_checks import Level
from tests.unit.host_files import HostFiles


@pytest.fixture
def host(tmp_path: Path) -> HostFiles:
    return HostFiles(tmp_path)


def test_a_fit_host_passes_every_check(host: HostFiles) -> None:
    findings = host.findings()
    assert {finding.level for finding in findings.values()} == {Level.OK}
    assert findings["kernel"].found == "Linux 6.12.63+deb13-amd64"
    assert findings["process limit"].found == "12000"
    assert not (host.root / "state").exists()


@pytest.mark.parametrize("release", ["5.13.19", "4.18.0-553", "", "unknown"])
def test_an_old_kernel_fails(host: HostFiles, release: str) -> None:
    host.write("proc/sys/kernel/osrelease", release)
    finding = host.findings()["kernel"]
    assert finding.level is Level.FAIL
    assert "5.14 or later: cgroup.kill" in finding.mend


@pytest.mark.parametrize(
    ("mounts", "found"),
    [
        (
            "30 23 0:26 / {root} rw - tmpfs t rw\n31 30 0:27 / {root}/memory rw - cgroup cgroup rw,memory",
            "v1 hierarchy",
        ),
        (
            "30 23 0:26 / {root} rw - tmpfs tmpfs rw\n31 30 0:27 / {root}/unified rw - cgroup2 cgroup2 rw\n"
            "32 30 0:28 / {root}/cpu rw - cgroup cgroup rw,cpu",
            "hybrid hierarchy",
        ),
        (
            "30 23 0:26 / {root} rw - cgroup2 none rw\n31 30 0:27 / /cg/cpu rw - cgroup cgroup rw,cpu",
            "v1 hierarchies beside it: /cg/cpu",
        ),
        ("", "no cgroup hierarchy"),
        ("nonsense - ", "no cgroup hierarchy"),
    ],
)
def test_any_other_hierarchy_than_pure_v2_fails(host: HostFiles, mounts: str, found: str) -> None:
    host.write("proc/self/mountinfo", mounts.format(root=host.cgroup))
    finding = host.findings()["cgroup v2"]
    assert finding.level is Level.FAIL
    assert found in finding.found
    assert "systemd.unified_cgroup_hierarchy=1" in finding.mend


def test_missing_controllers_are_named_with_the_file_they_were_looked_for_in(host: HostFiles) -> None:
    host.write("cgroup/cgroup.controllers", "cpu pids")
    finding = host.findings()["controllers"]
    assert (finding.level, finding.found) == (Level.FAIL, "cgroup controllers missing: cpuset, memory")
    assert finding.where == str(host.cgroup / "cgroup.controllers")
    host.write("cgroup/cgroup.controllers", "cpuset cpu io memory pids")
    finding = host.findings()["controllers"]
    assert finding.level is Level.OK and "no pod can get huge pages" in finding.found


def test_a_containers_part_of_the_tree_is_noticed(host: HostFiles) -> None:
    host.write("cgroup/cgroup.events", "populated 1")
    assert host.findings()["delegation"].level is Level.WARN


def test_missing_pressure_figures_are_a_warning(host: HostFiles) -> None:
    (host.proc / "pressure/memory").unlink()
    finding = host.findings()["pressure stall information"]
    assert finding.level is Level.WARN and "psi=1" in finding.mend


def test_the_systemd_driver_needs_systemd(host: HostFiles) -> None:
    host.systemd = "systemd 241 (241)\n"
    assert host.findings()["systemd"].level is Level.FAIL
    host.systemd = None
    assert host.findings()["systemd"].level is Level.WARN
    host.write("proc/1/comm", "runit\n")
    finding = host.findings()["systemd"]
    assert (finding.level, finding.mend) == (Level.FAIL, "set cgroupDriver: cgroupfs")
    assert host.findings("cgroupDriver: cgroupfs")["systemd"].level is Level.OK


def test_swap_is_compared_with_the_configuration(host: HostFiles) -> None:
    host.write("proc/swaps", "Filename\tType\n/dev/zram0 partition 1 0 100\n/swapfile file 1 0 -2\n")
    finding = host.findings()["swap"]
    assert (finding.level, finding.found) == (Level.FAIL, "swap is on: /dev/zram0, /swapfile")
    assert host.findings("failSwapOn: false")["swap"].level is Level.OK


def test_smaller_faults_are_warnings(host: HostFiles) -> None:
    host.write("proc/sys/kernel/threads-max", "2000")
    (host.run / "systemd/timesync/synchronized").unlink()
    host.user = 1000
    findings = host.findings()
    assert {name for name, finding in findings.items() if finding.level is Level.WARN} == {
        "process limit",
        "clock",
        "user",
    }


def test_a_clock_that_was_never_set_fails(host: HostFiles) -> None:
    host.year = 1970
    assert host.findings()["clock"].level is Level.FAIL


def test_a_directory_that_is_a_file_fails(host: HostFiles) -> None:
    host.write("state", "")
    assert host.findings()["state directory"].level is Level.FAIL


def test_a_configuration_that_asks_for_more_than_there_is_fails(host: HostFiles) -> None:
    assert host.findings()["configuration"].found == "suits 2 CPUs and 1953 MiB of memory"
    finding = host.findings("systemReserved: {memory: 4Gi}")["configuration"]
    assert finding.level is Level.FAIL and "invalid Node Allocatable configuration" in finding.found
    assert (
        host.findings("cpuManagerPolicy: static\nreservedSystemCPUs: '9'")["configuration"].level
        is Level.FAIL
    )
    (host.sys / "devices/system/cpu/online").unlink()
    assert host.findings()["configuration"].level is Level.WARN


def test_the_report_comes_out_as_text_or_data(host: HostFiles, capsys: pytest.CaptureFixture[str]) -> None:
    host.write("proc/sys/kernel/osrelease", "5.4.0")
    host.write("config.yaml", host.config)
    roots = [f"--{name}-root={getattr(host, name)}" for name in ("cgroup", "proc", "sys", "run")]
    command = ["doctor", *roots, "--config", str(host.root / "config.yaml")]
    assert main(command) == 1
    text = capsys.readouterr().out
    assert f"FAIL  kernel                      Linux 5.4.0  ({host.proc}/sys/kernel/osrelease)" in text
    assert "mend: boot a kernel of version 5.14 or later" in text
    assert "14 checks: " in text
    assert main([*command, "-o", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] is False
    assert {check["name"]: check["level"] for check in data["checks"]}["kernel"] == "FAIL"
    assert main([*command, "-o", "yaml"]) == 1
    assert "level: FAIL" in capsys.readouterr().out
