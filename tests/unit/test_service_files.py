"""The agent accepts the sample configuration, systemd the units, shellcheck the installer."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nodeagent.config import load_config

SYSTEMD = Path(__file__).parents[2] / "systemd"


def test_the_sample_configuration_is_accepted_without_a_warning() -> None:
    config = load_config(SYSTEMD / "config.yaml")
    assert config.warnings == ()
    assert config.kubelet.static_pod_path == "/etc/nodeagent/manifests"
    assert (config.kubelet.address, config.kubelet.read_only_port) == ("127.0.0.1", 10255)


def settings(unit: str) -> dict[str, str]:
    lines = (SYSTEMD / unit).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_containers_survive_the_stop_of_either_service() -> None:
    agent, keeper = settings("nodeagent.service"), settings("nodeagent-keeper.service")
    assert keeper["KillMode"] == "process"
    assert agent["Wants"] == "nodeagent-keeper.service"
    assert not {"Requires", "BindsTo", "PartOf"} & (agent.keys() | keeper.keys())
    assert agent["RuntimeDirectoryPreserve"] == keeper["RuntimeDirectoryPreserve"] == "yes"


def test_the_keeper_passes_no_sandbox_on_to_containers() -> None:
    inherited = ("Protect", "Private", "Restrict", "SystemCall", "NoNew", "Capability", "Lock", "Memory")
    harmless = {"MemoryMin", "MemoryLow", "Restart", "RestartSec"}
    keeper = settings("nodeagent-keeper.service")
    assert not [name for name in keeper if name.startswith(inherited) and name not in harmless]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    for path in SYSTEMD.glob("nodeagent*.s*"):
        text = path.read_text().replace("/opt/nodeagent/bin/nodeagent", "/bin/true")
        (tmp_path / path.name).write_text(text.replace("/opt/nodeagent/bin/python", "/bin/true"))
    units = [str(path) for path in tmp_path.iterdir()]
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    # Settings of a newer systemd than this host's are ignored by it, each with a line.
    newer = ("RestartSteps", "RestartMaxDelaySec", "FileDescriptorStorePreserve")
    complaints = [
        line
        for line in result.stderr.splitlines()
        if str(tmp_path) in line and not any(name in line for name in newer)
    ]
    assert complaints == []


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed here")
def test_the_installer_is_clean() -> None:
    result = subprocess.run(["shellcheck", SYSTEMD / "install"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
