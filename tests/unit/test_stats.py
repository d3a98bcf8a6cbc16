"""Samples of the node, of cgroups and of filesystems, from files as the kernel writes them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.cgroup.files import CgroupTree
from nodeagent.stats.cgroup import read_cgroup, read_in_haste
from nodeagent.stats.filesystem import DirectoryUsage, read_directory, read_filesystem
from nodeagent.stats.hot import HotReader
from nodeagent.stats.node import ProcessNumbers, node_memory, process_numbers, read_node
from nodeagent.stats.pod_usage import PodUsageReader
from nodeagent.stats.summary import PodReference

TIME = datetime(2026, 1, 1, tzinfo=UTC)
MEMINFO = """\
MemTotal:        1634488 kB
MemFree:         1480216 kB
MemAvailable:    1445220 kB
SwapTotal:       1048576 kB
SwapFree:        1000000 kB
HugePages_Total:      16
Hugetlb:           32768 kB
"""
ROOT_STAT = """\
anon 29061120
file 72978432
kernel 6905856
inactive_anon 0
active_anon 29761536
inactive_file 13500416
active_file 59000000
pgfault 914634
pgmajfault 489
"""
PRESSURE = """\
some avg10=5.98 avg60=4.43 avg300=5.27 total=40281797
full avg10=0.96 avg60=0.53 avg300=0.83 total=9023755
"""
POD = "kubepods.slice/kubepods-poda.slice"
POD_FILES = {
    "cgroup.events": "populated 1\nfrozen 0\n",
    "cgroup.stat": "nr_descendants 1\nnr_dying_descendants 22\n",
    "cpu.stat": "usage_usec 300\nuser_usec 200\nsystem_usec 100\n"
    "nr_periods 7\nnr_throttled 3\nthrottled_usec 42\n",
    "cpu.pressure": PRESSURE,
    "io.pressure": PRESSURE,
    "memory.current": "73650176\n",
    "memory.max": "104857600\n",
    "memory.peak": "73981952\n",
    "memory.swap.current": "4096\n",
    "memory.swap.max": "max\n",
    "memory.events": "low 0\nhigh 5\nmax 2\noom 1\noom_kill 1\n",
    "memory.pressure": PRESSURE,
    "memory.stat": "anon 23719936\nfile 44335104\nkernel 5468160\nfile_mapped 14364672\n"
    "inactive_file 7081984\nactive_file 36966400\npgfault 70586\npgmajfault 307\n",
    "pids.current": "9\n",
    "pids.max": "max\n",
}


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    root = tmp_path / "proc"
    write(root / "meminfo", MEMINFO)
    write(root / "loadavg", "1.36 3.49 4.53 2/29800 3715089\n")
    write(root / "sys/kernel/pid_max", "4194304\n")
    write(root / "sys/kernel/threads-max", "30000\n")
    write(root / "pressure/memory", PRESSURE)
    write(root / "pressure/io", PRESSURE)
    return root


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    root = tmp_path / "cgroup"
    write(root / "memory.stat", ROOT_STAT)
    write(root / "cpu.stat", "usage_usec 358528000\nuser_usec 233508000\nsystem_usec 125020000\n")
    for name, text in POD_FILES.items():
        write(root / POD / name, text)
        write(root / "kubepods.slice" / name, text)
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_the_nodes_memory_follows_kubelets_formula() -> None:
    memory = node_memory(MEMINFO, ROOT_STAT)
    assert memory is not None
    assert memory.usage_bytes == 29061120 + 72978432
    assert memory.working_set_bytes == 29061120 + 72978432 - 13500416
    assert memory.available_bytes == 1634488 * 1024 - 88539136 - 32768 * 1024
    assert memory.kernel_available_bytes == 1445220 * 1024
    assert memory.swap_total_bytes - memory.swap_free_bytes == 48576 * 1024


def test_more_inactive_cache_than_usage_makes_nothing_negative() -> None:
    memory = node_memory(MEMINFO, "anon 10\nfile 10\ninactive_file 100\n")
    assert memory is not None
    assert memory.working_set_bytes == 0
    full = node_memory("MemTotal: 1 kB\nHugetlb: 5 kB\n", "anon 1\nfile 1\n")
    assert full is not None
    assert full.available_bytes == 0


def test_memory_without_its_figures_is_unknown() -> None:
    assert node_memory("MemFree: 1 kB\n", ROOT_STAT) is None
    assert node_memory(MEMINFO, "file 1\n") is None
    without_estimate = node_memory("MemTotal: 1 kB\n", ROOT_STAT)
    assert without_estimate is not None
    assert without_estimate.kernel_available_bytes is None


@pytest.mark.parametrize(
    ("loadavg", "pid_max", "threads_max", "expected"),
    [
        ("1.36 3.49 4.53 2/29800 3715089", "4194304", "30000", ProcessNumbers(30000, 29800)),
        ("0 0 0 1/90 100", "12000", None, ProcessNumbers(12000, 90)),
        (None, "12000", "12000", None),
        ("garbage", "12000", "12000", None),
        ("0 0 0 1/90 100", None, "max", None),
    ],
)
def test_process_numbers(
    loadavg: str | None, pid_max: str | None, threads_max: str | None, expected: ProcessNumbers | None
) -> None:
    assert process_numbers(loadavg, pid_max, threads_max) == expected


def test_a_node_is_read(proc: Path, cgroups: Path) -> None:
    node = read_node(proc, CgroupTree(cgroups), TIME)
    assert node.memory == node_memory(MEMINFO, ROOT_STAT)
    assert node.processes == ProcessNumbers(30000, 29800)
    assert node.cpu is not None
    assert node.cpu.usage_microseconds == 358528000
    assert node.memory_pressure is not None
    assert node.memory_pressure.some.average_10 == 5.98


def test_a_node_without_its_files_is_unknown_and_not_zero(tmp_path: Path) -> None:
    node = read_node(tmp_path, CgroupTree(tmp_path), TIME)
    assert (node.memory, node.processes, node.cpu, node.memory_pressure) == (None, None, None, None)


def test_a_cgroup_is_read(cgroups: Path) -> None:
    sample = read_cgroup(CgroupTree(cgroups), POD)
    assert sample is not None
    assert sample.cpu is not None and sample.memory is not None
    assert (sample.cpu.usage_microseconds, sample.cpu.throttled_periods, sample.cpu.periods) == (300, 3, 7)
    assert sample.memory.working_set_bytes == 73650176 - 7081984
    assert sample.memory.available_bytes == 104857600 - (73650176 - 7081984)
    assert sample.memory.events == {"low": 0, "high": 5, "max": 2, "oom": 1, "oom_kill": 1}
    assert (sample.memory.swap_bytes, sample.memory.swap_limit_bytes) == (4096, None)
    assert (sample.tasks, sample.tasks_limit) == (9, None)
    assert (sample.populated, sample.dying_descendants) == (True, 22)
    assert sample.io_pressure is not None and sample.io_pressure.full is not None
    assert sample.io_pressure.full.total_microseconds == 9023755


def test_a_cgroup_in_haste_has_the_same_memory_and_tasks(cgroups: Path) -> None:
    tree = CgroupTree(cgroups)
    hasty, whole = read_in_haste(tree, POD), read_cgroup(tree, POD)
    assert hasty is not None and whole is not None and hasty.memory is not None and whole.memory is not None
    assert hasty.memory.working_set_bytes == whole.memory.working_set_bytes
    assert hasty.tasks == whole.tasks


def test_a_cgroup_that_is_gone_is_nothing(cgroups: Path) -> None:
    tree = CgroupTree(cgroups)
    assert read_cgroup(tree, "kubepods.slice/kubepods-podb.slice") is None
    assert read_in_haste(tree, "kubepods.slice/kubepods-podb.slice") is None


def test_the_hot_sample_says_what_the_slow_one_says(proc: Path, cgroups: Path) -> None:
    reader = HotReader(proc, CgroupTree(cgroups), "kubepods.slice", [cgroups])
    sample = reader.sample()
    memory = node_memory(MEMINFO, ROOT_STAT)
    assert memory is not None and sample.node_memory is not None and sample.pods_memory is not None
    assert sample.node_memory.available_bytes == memory.available_bytes
    assert sample.kernel_available_bytes == memory.kernel_available_bytes
    assert sample.processes == ProcessNumbers(30000, 29800)
    assert sample.pods_memory.capacity_bytes == 104857600
    assert sample.pods_memory.available_bytes == 104857600 - (73650176 - 7081984)
    # Others write to this disk, but not between every two looks.
    assert any(reader.sample().filesystems == (read_filesystem(cgroups),) for _ in range(100))
    reader.close()


def test_the_hot_sample_sees_changes_and_survives_files_that_go(proc: Path, cgroups: Path) -> None:
    reader = HotReader(proc, CgroupTree(cgroups), "kubepods.slice", [cgroups / "absent"])
    before = open_descriptors()
    reader.sample()
    write(proc / "loadavg", "0 0 0 1/77 1\n")
    (cgroups / "kubepods.slice/memory.max").write_text("max\n")
    sample = reader.sample()
    assert sample.processes == ProcessNumbers(30000, 77)
    assert sample.pods_memory is None
    assert sample.filesystems == (None,)
    reader.close()
    assert open_descriptors() == before


@pytest.mark.parametrize(
    ("available_kib", "pods_bytes", "is_calm"),
    [
        (1445220, 73650176, True),
        (1416320, 73650176, True),
        (1416310, 73650176, False),
        (1500000, 73650176, True),
        (1445220, 73650176 + 29_598_105, True),
        (1445220, 73650176 + 29_598_106, False),
    ],
)
def test_memory_is_calm_within_two_percent(
    proc: Path, cgroups: Path, available_kib: int, pods_bytes: int, is_calm: bool
) -> None:
    reader = HotReader(proc, CgroupTree(cgroups), "kubepods.slice")
    assert not reader.is_calm()  # nothing to compare with
    reader.sample()
    write(proc / "meminfo", MEMINFO.replace("1445220", str(available_kib)))
    write(cgroups / "kubepods.slice/memory.current", f"{pods_bytes}\n")
    assert reader.is_calm() is is_calm
    reader.close()


def test_pods_are_read_on_descriptors_that_stay_open(cgroups: Path) -> None:
    before = open_descriptors()
    tree = CgroupTree(cgroups)
    reader = PodUsageReader(tree)
    reference = PodReference(name="a", namespace="default", uid="a")
    first = reader.read(reference, POD)
    write(cgroups / POD / "memory.current", "83650176\n")
    second = reader.read(reference, POD)
    assert first is not None and first.memory is not None and first.process_stats is not None
    assert second is not None and second.memory is not None
    assert first.memory.working_set_bytes == 73650176 - 7081984
    assert second.memory.working_set_bytes == 83650176 - 7081984
    assert first.process_stats.process_count == 9
    assert open_descriptors() == before + 4
    assert reader.read(reference, "kubepods.slice/kubepods-podb.slice") is None
    reader.keep_only([])
    tree.close()
    assert open_descriptors() == before


def test_the_hot_sample_of_nothing_is_unknown(tmp_path: Path) -> None:
    sample = HotReader(tmp_path, CgroupTree(tmp_path), "kubepods.slice").sample()
    assert (sample.node_memory, sample.kernel_available_bytes, sample.pods_memory, sample.processes) == (
        None,
        None,
        None,
        None,
    )


def test_a_directory_is_added_up_without_links_and_twice_linked_files(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_bytes(b"x" * 100_000)
    (tmp_path / "a/again").hardlink_to(tmp_path / "a/b/file")
    (tmp_path / "link").symlink_to("/usr")
    usage = read_directory(tmp_path)
    assert usage is not None
    assert usage.inodes_used == 5  # the top, a, b, file, link
    assert 100_000 <= usage.used_bytes < 150_000


def test_a_directory_behind_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert read_directory(tmp_path / "link") is None
    assert read_directory(tmp_path / "absent") is None


def test_a_very_deep_directory_ends(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(300):
        deep = deep / "d"
    deep.mkdir(parents=True)
    before = open_descriptors()
    usage = read_directory(tmp_path)
    assert usage is not None and usage.inodes_used >= 256
    assert open_descriptors() == before


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**6))))
def test_usages_add_up(parts: list[tuple[int, int]]) -> None:
    total = sum((DirectoryUsage(*part) for part in parts), DirectoryUsage())
    assert total == DirectoryUsage(sum(part[0] for part in parts), sum(part[1] for part in parts))
