"""Comparing what should be with what the kernel says, and the order in which a tree is changed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.cgroup.reconcile import Change, Difference, differences, grows, in_safe_order, same
from tests.unit.fake_cgroups import FakeTree

POD = "kubepods.slice/kubepods-podu.slice"
PATHS = ("kubepods.slice", POD, f"{POD}/nodeagent-c.scope")


@pytest.mark.parametrize(
    ("file", "is_", "should"),
    [
        ("memory.max", "123453440", "123456789"),  # whole pages
        ("memory.max", "max", "max"),
        ("hugetlb.2MB.max", "4611686018427387904", "4611686018427387904"),
        ("hugetlb.2MB.max", "2097152", "3145728"),
        ("cpuset.cpus", "0-2", "0,1,2"),
        ("cpu.max", "max 100000", "max 100000"),
    ],
)
def test_the_kernels_own_spelling_is_no_difference(file: str, is_: str, should: str) -> None:
    assert same(file, is_, should)


@pytest.mark.parametrize(
    ("file", "is_", "should"),
    [
        ("memory.max", "max", "4096"),
        ("memory.max", "8192", "4096"),
        ("memory.low", "0", "4096"),
        ("memory.oom.group", "0", "1"),
        ("hugetlb.2MB.max", "max", "0"),
        ("cpuset.cpus", "", "0"),
        ("cpuset.cpus", "0-3", "0-2"),
        ("cpu.max", "max 100000", "max 5000"),
        ("cpu.weight", "100", "39"),
        ("pids.max", None, "1"),
    ],
)
def test_a_difference(file: str, is_: str | None, should: str) -> None:
    assert not same(file, is_, should)


def test_differences_keep_the_order_of_what_is_wanted(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path)
    for controller in ("cpu", "memory", "pids"):
        tree.write("", "cgroup.subtree_control", f"+{controller}")
    tree.create("a.slice")
    wanted = {"pids.max": "5", "memory.max": "max", "cpu.weight": "39", "cpuset.cpus": "1"}
    assert differences(tree, "a.slice", wanted) == (
        Difference("pids.max", "max", "5"),
        Difference("cpu.weight", "100", "39"),
        Difference("cpuset.cpus", None, "1"),
    )


@pytest.mark.parametrize(
    ("file", "is_", "should", "more"),
    [
        ("cpuset.cpus", "0-1", "0-3", True),
        ("cpuset.cpus", "0-3", "1-2", False),
        ("cpuset.cpus", "0-1", "1-2", False),  # it takes CPU 0 away
        ("cpu.max", "50000 100000", "max 100000", True),
        ("cpu.max", "50000 100000", "10000 10000", True),
        ("cpu.max", "max 100000", "1000 1000", False),
        ("memory.max", "4096", "8192", True),
        ("memory.max", "max", "8192", False),
        ("pids.max", "7", "max", True),
    ],
)
def test_growth(file: str, is_: str, should: str, more: bool) -> None:
    assert grows(Difference(file, is_, should)) is more


changes = st.builds(
    Change,
    st.sampled_from(PATHS),
    st.builds(
        Difference,
        st.just("memory.max"),
        st.integers(0, 9).map(str) | st.just("max"),
        st.integers(0, 9).map(str) | st.just("max"),
    ),
)


@given(st.lists(changes))
def test_growth_comes_first_from_the_root_and_cuts_last_from_the_leaves(wanted: list[Change]) -> None:
    ordered = in_safe_order(wanted)
    assert sorted(map(repr, ordered)) == sorted(map(repr, wanted))
    growing = [change for change in ordered if grows(change.difference)]
    assert list(ordered[: len(growing)]) == growing
    depths = [change.path.count("/") for change in ordered]
    assert depths[: len(growing)] == sorted(depths[: len(growing)])
    assert depths[len(growing) :] == sorted(depths[len(growing) :], reverse=True)
