"""What is freed before a pod must go."""

import errno
import os
from pathlib import Path

import pytest

from nodeagent.cgroup.errors import WriteRefused
from nodeagent.cgroup.files import CgroupTree
from nodeagent.eviction.manager import Reclaim
from nodeagent.eviction.page_cache import cache_may_help, is_urgent
from nodeagent.eviction.signals import Observation, Signal
from nodeagent.eviction.thresholds import parse_thresholds
from nodeagent.pods.reclaim import drop_cache, remove_dead_logs
from tests.unit.simulated_node import (
    MIB,
    SimulatedNode,
    VirtualClock,
    Workload,
    make_loop,
    make_pod,
    make_policy,
    run,
)

NOW = 1_800_000_000.0


def write(path: Path, age_seconds: float = 100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path.parent.parent, (NOW - age_seconds, NOW - age_seconds))


def test_only_the_logs_of_what_is_dead_go(tmp_path: Path) -> None:
    logs = tmp_path / "pods"
    kept = [
        "default_runs_u1/c/3.log",
        "default_runs_u1/c/3.log.20260101-150405",
        # A sidecar that still runs beside its own next attempt, and a file that is no log.
        "default_runs_u1/side/0.log",
        "default_runs_u1/side/1.log",
        "default_runs_u1/c/notes",
        "default_young_u3/c/0.log",
    ]
    gone = ["default_runs_u1/c/2.log", "default_runs_u1/c/1.log.20260101-150405", "default_over_u2/c/0.log"]
    for name in (*kept, *gone):
        write(logs / name, 0.5 if "young" in name else 100)
    (logs / "default_link_u4").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    remove_dead_logs(logs, {"u1": {("c", 3), ("side", 0)}}, NOW)
    assert {str(path.relative_to(logs)) for path in logs.rglob("*") if path.is_file()} == set(kept)
    assert (tmp_path / "elsewhere").is_dir()
    remove_dead_logs(tmp_path / "none", {}, NOW)


class OldTree(CgroupTree):
    """A kernel before 6.11, where memory.reclaim takes nothing but an amount."""

    def write(self, path: str, file: str, value: str) -> None:
        if not value.isdigit():
            raise WriteRefused(path, file, value, errno.EINVAL)
        super().write(path, file, value)


@pytest.mark.parametrize(("kind", "expected"), [(CgroupTree, "700 swappiness=0"), (OldTree, "700")])
def test_cache_is_asked_back(tmp_path: Path, kind: type[CgroupTree], expected: str) -> None:
    slice_ = tmp_path / "kubepods.slice"
    slice_.mkdir()
    (slice_ / "memory.stat").write_text("anon 5000\nactive_file 1000\ninactive_file 200\n")
    (slice_ / "memory.reclaim").write_text("")
    drop_cache(kind(tmp_path), "kubepods.slice")
    assert (slice_ / "memory.reclaim").read_text() == expected


@pytest.mark.parametrize(
    ("available_mib", "cache_mib", "mib_per_second", "helps"),
    [
        (190, 100, 0, True),
        # It does not cover what is missing; it is too little to be worth it; there is no time.
        (120, 70, 0, False),
        (199, 40, 0, False),
        (190, 100, 200, False),
    ],
)
def test_when_cache_can_spare_a_pod(
    available_mib: int, cache_mib: int, mib_per_second: int, helps: bool
) -> None:
    (threshold,) = parse_thresholds(eviction_hard={"memory.available": "200Mi"})
    observed = Observation(available_mib * MIB, 1000 * MIB)
    assert cache_may_help(threshold, observed, cache_mib * MIB, mib_per_second * MIB) is helps
    assert not is_urgent(threshold, observed)
    assert is_urgent(threshold, Observation(99 * MIB, 1000 * MIB))
    (pids,) = parse_thresholds(eviction_hard={"pid.available": "10"})
    assert not cache_may_help(pids, Observation(9, 100), MIB, 0)
    assert Signal.PID_AVAILABLE is pids.signal


def caching(pod: str, cache_mib: int, **load: float) -> SimulatedNode:
    workload = Workload(make_pod(pod), start_bytes=100 * MIB, **load)  # type: ignore[arg-type]
    return SimulatedNode(VirtualClock(), [workload], base_bytes=1500 * MIB, cache_bytes=cache_mib * MIB)


async def test_page_cache_goes_before_pods() -> None:
    node = caching("reader", cache_mib=150)
    await run(make_loop(node, make_policy({"memory.available": "300Mi"})), node.clock, 8)
    assert (node.reclaimed, node.evictions) == ([Reclaim.PAGE_CACHE], [])


async def test_a_hog_is_not_waited_for_while_cache_comes_back() -> None:
    node = caching("hog", cache_mib=150, bytes_per_second=150.0 * MIB, grows_from=5.0)
    await run(make_loop(node, make_policy({"memory.available": "200Mi"})), node.clock, 20)
    assert node.evicted_names() == ["hog"]
    assert node.lowest_available_bytes > 90 * MIB
