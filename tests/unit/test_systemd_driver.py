"""The systemd driver where a scope of the same name is there already."""

from pathlib import Path

import pytest

from nodeagent.cgroup.bus import SystemdBus
from nodeagent.cgroup.errors import UnitExists
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.systemd import SystemdDriver
from nodeagent.cgroup.units import Properties
from nodeagent.clock import SystemClock

SLICE = "kubepods.slice/kubepods-podu1.slice"
SCOPE = "nodeagent-c1.scope"
PID = 4711


class FakeBus(SystemdBus):
    """A systemd that has the scope already, and moves the process once it makes it anew."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.calls: list[str] = []

    async def version(self) -> int:
        return 257

    async def start_transient(self, unit: str, properties: Properties) -> None:
        self.calls.append("start")
        if "stop" not in self.calls:
            raise UnitExists(unit, "start", "already there")
        (self.directory / "cgroup.procs").write_text(f"{PID}\n")

    async def stop(self, unit: str) -> None:
        self.calls.append("stop")

    async def reset_failed(self, unit: str) -> None:
        self.calls.append("reset")


def make(root: Path, populated: int) -> tuple[SystemdDriver, FakeBus]:
    directory = root / SLICE / SCOPE
    directory.mkdir(parents=True)
    (directory / "cgroup.procs").write_text("")
    (directory / "cgroup.events").write_text(f"populated {populated}\nfrozen 0\n")
    bus = FakeBus(directory)
    return SystemdDriver(CgroupTree(root), bus, SystemClock()), bus


async def test_an_empty_scope_of_a_dead_agent_is_made_anew(tmp_path: Path) -> None:
    driver, bus = make(tmp_path, populated=0)
    await driver.attach(f"{SLICE}/{SCOPE}", PID, {})
    assert bus.calls == ["start", "stop", "reset", "start"]


async def test_a_scope_with_processes_is_left_alone(tmp_path: Path) -> None:
    driver, bus = make(tmp_path, populated=1)
    with pytest.raises(UnitExists):
        await driver.attach(f"{SLICE}/{SCOPE}", PID, {})
    assert bus.calls == ["start"]
