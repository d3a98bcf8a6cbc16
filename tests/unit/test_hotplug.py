"""CPUs that go and come: noticed by event or by poll, and told as a new machine."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.hotplug import TopologyWatcher, is_cpu_event
from nodeagent.hardware.topology import parse_short
from tests.unit.sysfs_trees import put, write_sysfs

OFFLINE = (
    b"offline@/devices/system/cpu/cpu3\0ACTION=offline\0DEVPATH=/devices/system/cpu/cpu3\0"
    b"SUBSYSTEM=cpu\0SEQNUM=1735\0"
)


class StandingClock:
    """Sleeps end when the test says so."""

    def __init__(self) -> None:
        self.ring = asyncio.Event()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await self.ring.wait()
        self.ring.clear()


def test_only_cpus_that_come_or_go_are_news() -> None:
    assert is_cpu_event(OFFLINE)
    assert is_cpu_event(OFFLINE.replace(b"offline", b"online"))
    assert not is_cpu_event(OFFLINE.replace(b"SUBSYSTEM=cpu", b"SUBSYSTEM=block"))
    assert not is_cpu_event(OFFLINE.replace(b"offline@", b"change@"))
    assert not is_cpu_event(b"")


@pytest.mark.parametrize("way", ["event", "poll"])
async def test_a_cpu_that_went_offline_is_told(way: str, tmp_path: Path) -> None:
    topology = parse_short("1x4x1")
    write_sysfs(tmp_path, topology)
    clock = StandingClock()
    watcher = TopologyWatcher(tmp_path, clock, 10.0)
    changes = watcher.changes(topology)
    first = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    put(tmp_path, "devices/system/cpu/online", "0-2")
    put(tmp_path, "devices/system/cpu/offline", "3")
    if way == "event":
        watcher.notice()
    else:
        clock.ring.set()
    changed = await asyncio.wait_for(first, 5)
    assert (changed.online, changed.offline) == (CpuSet.parse("0-2"), CpuSet.parse("3"))
    await changes.aclose()


async def test_a_look_that_finds_nothing_new_tells_nothing(tmp_path: Path) -> None:
    topology = parse_short("1x4x1")
    write_sysfs(tmp_path, topology)
    clock = StandingClock()
    watcher = TopologyWatcher(tmp_path, clock, 10.0)
    changes = watcher.changes(topology)
    first = asyncio.ensure_future(anext(changes))
    watcher.notice()
    done, _ = await asyncio.wait((first,), timeout=0.1)
    assert not done
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
