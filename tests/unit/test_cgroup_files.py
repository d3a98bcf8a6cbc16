"""Files of a cgroup tree: what is read, what is refused, and that nothing leads out of it."""

import errno
from pathlib import Path

import pytest

from nodeagent.cgroup.errors import InvalidName, WriteRefused
from nodeagent.cgroup.files import CgroupTree


@pytest.fixture
def tree(tmp_path: Path) -> CgroupTree:
    (tmp_path / "a.slice" / "b.slice").mkdir(parents=True)
    (tmp_path / "a.slice" / "cpu.max").write_text("max 100000\n")
    return CgroupTree(tmp_path)


def test_read(tree: CgroupTree) -> None:
    assert tree.read("a.slice", "cpu.max") == "max 100000"
    assert tree.read("a.slice", "no.such.file") is None
    assert tree.read("gone.slice", "cpu.max") is None
    assert tree.children("gone.slice") == ()
    assert not tree.exists("gone.slice")
    assert not tree.populated("gone.slice")


def test_a_refused_write_says_what_was_written_where_and_why(tree: CgroupTree) -> None:
    with pytest.raises(
        WriteRefused, match=r"gone\.slice/cpu\.max: the kernel refused 'max': No such file"
    ) as caught:
        tree.write("gone.slice", "cpu.max", "max")
    assert caught.value.errno == errno.ENOENT


def test_nothing_outside_is_reached(tree: CgroupTree, tmp_path: Path) -> None:
    for path in ("..", "a.slice/../..", "/etc"):
        with pytest.raises(InvalidName):
            tree.read(path, "passwd")
    for file in ("../x", "..", "a/b", "x\0"):
        with pytest.raises(InvalidName):
            tree.read("a.slice", file)
    (tmp_path / "a.slice" / "link").symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic link"):
        tree.read("a.slice", "link")
    (tmp_path / "out.slice").symlink_to("/etc")
    assert not tree.exists("out.slice")


def test_a_list_longer_than_a_page_is_read_whole(tree: CgroupTree, tmp_path: Path) -> None:
    pids = tuple(range(1, 20_000))
    (tmp_path / "a.slice" / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    assert tree.processes("a.slice") == pids


def test_descendants_come_before_their_parents(tree: CgroupTree) -> None:
    for path in ("a.slice/b.slice/c", "a.slice/d", "a.slice/d/e"):
        tree.create(path)
    order = list(tree.descendants("a.slice"))
    assert sorted(order) == ["a.slice/b.slice", "a.slice/b.slice/c", "a.slice/d", "a.slice/d/e"]
    for path in order:
        assert order.index(path) > max((order.index(child) for child in tree.children(path)), default=-1)


def test_a_deep_nest_is_no_trap(tree: CgroupTree) -> None:
    path = "a.slice"
    for _ in range(1200):
        path += "/x"
        tree.create(path)
    order = list(tree.descendants("a.slice"))
    assert len(order) == 1201
    assert all(tree.remove(each) for each in order)


def test_what_is_busy_is_not_removed(tree: CgroupTree) -> None:
    assert not tree.remove("a.slice")
    assert tree.remove("a.slice/b.slice")
    assert tree.remove("a.slice/b.slice")


def test_killing_what_is_gone_is_no_error(tree: CgroupTree) -> None:
    tree.kill("gone.slice")
    with pytest.raises(WriteRefused):
        tree.kill("a.slice")  # it is there, and this kernel has no cgroup.kill
