"""Making, changing and removing cgroups by plain files."""

from pathlib import Path

import pytest

from nodeagent.cgroup import controllers
from nodeagent.cgroup.cgroupfs import CgroupfsDriver
from nodeagent.cgroup.drivers import apply, update_all
from nodeagent.cgroup.errors import MissingController, NoSuchCgroup, StuckCgroup, WriteRefused
from nodeagent.cgroup.reconcile import Difference
from nodeagent.clock import SystemClock
from tests.unit.fake_cgroups import FakeTree

POD = "kubepods.slice/kubepods-podu.slice"
LEAF = f"{POD}/nodeagent-c.scope"
POD_VALUES = {"cpu.weight": "39", "cpu.max": "100000 100000", "memory.max": "1048576", "pids.max": "200"}
LEAF_VALUES = {"cpuset.cpus": "0-1", "cpu.weight": "100", "memory.max": "1048576"}


class ImpatientClock(SystemClock):
    """Sleeping takes no time here, and brings the time forward."""

    def __init__(self) -> None:
        self.slept = 0.0

    def monotonic(self) -> float:
        return self.slept

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path)


@pytest.fixture
def clock() -> ImpatientClock:
    return ImpatientClock()


@pytest.fixture
def driver(tree: FakeTree, clock: ImpatientClock) -> CgroupfsDriver:
    return CgroupfsDriver(tree, clock)


async def make_pod(driver: CgroupfsDriver, pid: int = 4711) -> None:
    await driver.ensure_slice("kubepods.slice", {"cpu.weight": "118"})
    await driver.ensure_slice(POD, POD_VALUES)
    await driver.attach(LEAF, pid, LEAF_VALUES)


async def test_a_pod_and_its_container(driver: CgroupfsDriver, tree: FakeTree) -> None:
    await make_pod(driver)
    assert {file: tree.read(POD, file) for file in POD_VALUES} == POD_VALUES
    assert {file: tree.read(LEAF, file) for file in LEAF_VALUES} == LEAF_VALUES
    assert tree.processes(LEAF) == (4711,)
    assert tree.processes(POD) == ()
    for level in ("", "kubepods.slice", POD):
        assert tree.enabled(level) == tree.controllers()
    assert tree.enabled(LEAF) == frozenset()


async def test_the_limits_are_there_before_the_process(driver: CgroupfsDriver, tree: FakeTree) -> None:
    await make_pod(driver)
    in_leaf = [file for path, file, _ in tree.writes if path == LEAF]
    assert in_leaf[-1] == "cgroup.procs"
    assert set(in_leaf) == {"cpuset.cpus", "memory.max", "cgroup.procs"}  # cpu.weight was 100 already


async def test_an_earlier_life_is_adopted(driver: CgroupfsDriver, tree: FakeTree) -> None:
    await make_pod(driver)
    tree.writes.clear()
    await driver.ensure_slice(POD, POD_VALUES | {"pids.max": "100"})
    assert tree.writes == [(POD, "pids.max", "100")]
    assert tree.processes(LEAF) == (4711,)


async def test_update_writes_and_returns_only_what_differs(driver: CgroupfsDriver, tree: FakeTree) -> None:
    await make_pod(driver)
    tree.write(POD, "cpu.weight", "1")
    tree.writes.clear()
    wanted = POD_VALUES | {"memory.max": "max"}
    expected = (Difference("cpu.weight", "1", "39"), Difference("memory.max", "1048576", "max"))
    assert await driver.update(POD, wanted) == expected
    assert [file for _, file, _ in tree.writes] == ["cpu.weight", "memory.max"]
    assert await driver.update(POD, wanted) == ()


async def test_a_limit_below_what_is_used_is_written_too(
    driver: CgroupfsDriver, tree: FakeTree, tmp_path: Path
) -> None:
    await make_pod(driver)
    (tmp_path / POD / "memory.current").write_text("900000\n")
    await driver.update(POD, POD_VALUES | {"memory.max": "524288"})
    assert tree.read(POD, "memory.max") == "524288"


async def test_update_of_what_is_gone(driver: CgroupfsDriver) -> None:
    with pytest.raises(NoSuchCgroup, match=POD):
        await driver.update(POD, POD_VALUES)


async def test_a_whole_tree_is_changed_in_a_safe_order(driver: CgroupfsDriver, tree: FakeTree) -> None:
    await make_pod(driver)
    tree.writes.clear()
    desired = {
        LEAF: {"memory.max": "2097152", "cpu.weight": "50"},
        POD: {"memory.max": "4194304", "pids.max": "100"},
        f"{POD}/nodeagent-gone.scope": {"cpu.weight": "1"},
    }
    changes = await update_all(driver, tree, desired)
    in_order = [
        (POD, "memory.max", "4194304"),
        (LEAF, "memory.max", "2097152"),
        (LEAF, "cpu.weight", "50"),
        (POD, "pids.max", "100"),
    ]
    assert tree.writes == in_order
    assert [(each.path, each.difference.file, each.difference.should) for each in changes] == in_order


async def test_a_cgroup_that_goes_while_it_is_written_is_said_to_be_gone(tree: FakeTree) -> None:
    with pytest.raises(NoSuchCgroup, match="kubepods"):
        await apply(tree, "kubepods.slice", {"cpu.weight": "39"})


async def test_a_missing_controller_is_named_with_the_file_it_was_looked_for_in(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path, "cpuset cpu io pids")
    with pytest.raises(MissingController, match=r"'memory' is missing from .*/cgroup\.controllers"):
        await CgroupfsDriver(tree, SystemClock()).ensure_slice(POD, POD_VALUES)


async def test_an_optional_controller_may_be_missing(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path, "cpuset cpu memory pids")
    driver = CgroupfsDriver(tree, SystemClock())
    await make_pod(driver)
    assert tree.enabled(POD) == {"cpuset", "cpu", "memory", "pids"}


async def test_processes_in_an_inner_cgroup_are_explained(tree: FakeTree) -> None:
    tree.create("kubepods.slice")
    tree.write("kubepods.slice", "cgroup.procs", "12")
    with pytest.raises(WriteRefused, match="can hold processes, or hand controllers"):
        controllers.enable(tree, "kubepods.slice", frozenset(("cpu",)))


async def test_removal_takes_everything_below(driver: CgroupfsDriver, tree: FakeTree) -> None:
    await make_pod(driver)
    tree.create(f"{LEAF}/nested")
    await driver.remove(POD)
    assert tree.children("kubepods.slice") == ()
    await driver.remove(POD)


async def test_what_cannot_be_killed_is_reported_within_a_bound(
    driver: CgroupfsDriver, tree: FakeTree, clock: ImpatientClock
) -> None:
    await make_pod(driver)
    tree.unkillable.add(4711)
    with pytest.raises(StuckCgroup, match="processes 4711 do not end") as caught:
        await driver.remove(POD)
    assert caught.value.pids == (4711,)
    assert 1 < clock.slept < 20
    assert tree.exists(LEAF)


async def test_a_cgroup_that_stays_busy_is_reported_within_a_bound(
    driver: CgroupfsDriver, tree: FakeTree, clock: ImpatientClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_pod(driver)
    monkeypatch.setattr(tree, "remove", lambda path: False)
    with pytest.raises(StuckCgroup, match="it stays busy"):
        await driver.remove(POD)
    assert clock.slept < 20
