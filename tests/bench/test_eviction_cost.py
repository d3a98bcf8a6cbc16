"""What watching costs: run with `pytest -m bench -s tests/bench/test_eviction_cost.py`."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.cgroup.files import CgroupTree
from nodeagent.eviction.manager import State, short_of
from nodeagent.eviction.signals import observe_hot
from nodeagent.stats.cgroup import read_cgroup, read_in_haste
from nodeagent.stats.hot import HotReader
from nodeagent.stats.pod_usage import PodUsageReader
from nodeagent.stats.summary import PodReference
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
from tests.unit.test_stats import POD_FILES, ROOT_STAT, write

pytestmark = pytest.mark.bench

CGROUP_MOUNT = Path("/sys/fs/cgroup")
PODS = 110
HARD = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "pid.available": "1000",
}


def microseconds(work: Callable[[], object], repetitions: int = 2000) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    taken = []
    for _ in range(repetitions):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1e6)
    taken.sort()
    return taken[repetitions // 2], taken[repetitions * 99 // 100]


@pytest.fixture
def tree(tmp_path: Path) -> CgroupTree:
    """The machine's own tree, or files of the same size where it has no cgroup v2."""
    if (CGROUP_MOUNT / "cgroup.controllers").exists():
        return CgroupTree(CGROUP_MOUNT)
    stat = "".join(f"{name:.<20}{number} 123456789\n" for number, name in enumerate(["figure"] * 60))
    write(tmp_path / "memory.stat", ROOT_STAT + stat)
    for name, text in POD_FILES.items():
        write(tmp_path / "kubepods.slice" / name, text + (stat if name == "memory.stat" else ""))
    return CgroupTree(tmp_path)


def test_a_sample_near_a_threshold(tree: CgroupTree) -> None:
    paths = [Path("/")]
    slice_name = "kubepods.slice" if tree.exists("kubepods.slice") else "system.slice"
    reader = HotReader(Path("/proc"), tree, slice_name, paths)
    thresholds = make_policy(HARD).effective_thresholds
    sample, sample_worst = microseconds(reader.sample)
    whole, whole_worst = microseconds(
        lambda: short_of(thresholds, State(), observe_hot(reader.sample(), datetime.now(UTC)))
    )
    hasty, _ = microseconds(lambda: read_in_haste(tree, slice_name), 500)
    pods, reference = PodUsageReader(tree), PodReference(name="p", namespace="n", uid="u")
    kept, _ = microseconds(lambda: pods.read(reference, slice_name))
    complete, _ = microseconds(lambda: read_cgroup(tree, slice_name), 500)
    print(f"\nhot sample: median {sample:.0f} us, p99 {sample_worst:.0f} us")
    print(f"sample and comparison: median {whole:.0f} us, p99 {whole_worst:.0f} us")
    print(f"one cgroup in haste: {hasty:.0f} us, completely: {complete:.0f} us")
    print(f"one pod on open descriptors: {kept:.0f} us, so {PODS} pods: {PODS * kept / 1000:.1f} ms")


@pytest.mark.parametrize(("title", "capacity_mib"), [("16 GiB free", 16_384), ("256 GiB free", 262_144)])
async def test_far_from_thresholds(title: str, capacity_mib: int, tree: CgroupTree) -> None:
    """The loop's own processor time with 110 pods that do nothing, on a machine that fills 20 GB/s."""
    node = SimulatedNode(
        VirtualClock(),
        [Workload(make_pod(f"pod-{number}", memory="10Mi"), start_bytes=MIB) for number in range(PODS)],
        capacity_bytes=capacity_mib * MIB,
    )
    reader = HotReader(Path("/proc"), tree, "kubepods.slice", [Path("/")])
    simulated = node.sample

    def sample() -> object:
        reader.sample()
        return simulated()

    node.sample = sample  # type: ignore[method-assign, assignment]
    loop = make_loop(node, make_policy(HARD), bytes_per_second=20e9)
    seconds = 600.0
    began = time.process_time()
    await run(loop, node.clock, seconds)
    spent = time.process_time() - began
    print(
        f"\n{title}: {len(node.samples) / seconds:.2f} samples a second, "
        f"{100 * spent / seconds:.4f} % of a core"
    )
    assert node.evictions == []
