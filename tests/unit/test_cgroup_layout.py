"""Where pods' cgroups sit, and what may not become part of a path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.qos import QOSClass
from nodeagent.cgroup.errors import InvalidName
from nodeagent.cgroup.layout import CgroupLayout, check_container_id, check_path, check_pod_uid

UID = "793fbc45-7390-1b8e-42b8-390f06e1b746"
uids = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,126}[A-Za-z0-9])?", fullmatch=True)
roots = st.sampled_from(["", "/", "/foo", "/foo/bar", "/a-b"])


def test_the_four_levels() -> None:
    layout = CgroupLayout()
    assert layout.kubepods == "kubepods.slice"
    assert layout.qos(QOSClass.GUARANTEED) == "kubepods.slice"
    assert layout.qos(QOSClass.BEST_EFFORT) == "kubepods.slice/kubepods-besteffort.slice"
    assert layout.container(UID, QOSClass.BURSTABLE, "3f2a") == (
        "kubepods.slice/kubepods-burstable.slice/"
        "kubepods-burstable-pod793fbc45_7390_1b8e_42b8_390f06e1b746.slice/nodeagent-3f2a.scope"
    )


def test_both_drivers_share_one_tree() -> None:
    assert (
        CgroupLayout(driver="cgroupfs").pod("u", QOSClass.GUARANTEED) == "kubepods.slice/kubepods-podu.slice"
    )


def test_every_level_carries_the_names_of_its_parents_below_a_cgroup_root() -> None:
    assert CgroupLayout("/foo/bar").kubepods == "foo.slice/foo-bar.slice/foo-bar-kubepods.slice"


def test_reading_back() -> None:
    layout = CgroupLayout()
    leaf = layout.container(UID, QOSClass.BURSTABLE, "3f2a")
    assert layout.pod_uid_of(leaf) == layout.pod_uid_of(leaf.rpartition("/")[0]) == UID
    assert layout.container_id_of(leaf) == "3f2a"
    for path in (
        "",
        "kubepods.slice",
        "kubepods.slice/kubepods-burstable.slice",
        "system.slice/sshd.service",
    ):
        assert layout.pod_uid_of(path) is None
        assert layout.container_id_of(path) is None


def test_a_reserved_cgroup_is_read_as_kubelet_reads_it() -> None:
    assert CgroupLayout().reserved("/system.slice") == "system.slice"
    assert CgroupLayout().reserved("/system") == "system.slice"
    assert CgroupLayout(driver="cgroupfs").reserved("/podruntime/kubelet") == "podruntime/kubelet"


@pytest.mark.parametrize(
    "uid", ["", "a/b", "..", "a..b", "with_underscore", "-a", "a-", "a b", "a\n", "é", "x" * 129]
)
def test_refused_uid(uid: str) -> None:
    with pytest.raises(InvalidName):
        check_pod_uid(uid)


@pytest.mark.parametrize("container_id", ["", "..", "a..b", "a/b", "-a", "a b", "a\0", "x" * 129])
def test_refused_container_id(container_id: str) -> None:
    with pytest.raises(InvalidName):
        check_container_id(container_id)


@pytest.mark.parametrize("path", ["/", "/sys", "a//b", "a/../b", ".", "a/.", "a\0b", "a b", "a\\x2db"])
def test_refused_path(path: str) -> None:
    with pytest.raises(InvalidName, match="cgroup path"):
        check_path(path)


@given(uids, st.sampled_from(QOSClass), roots)
def test_a_pod_is_found_again_from_its_path(uid: str, qos: QOSClass, root: str) -> None:
    layout = CgroupLayout(root)
    path = layout.pod(uid, qos)
    assert layout.pod_uid_of(path) == uid
    assert check_path(path) == path
    assert all(len(unit) < 256 for unit in path.split("/"))


@given(st.text(max_size=200))
def test_no_text_leads_out_of_the_slice(text: str) -> None:
    layout = CgroupLayout()
    try:
        path = layout.pod(text, QOSClass.GUARANTEED)
    except InvalidName:
        return
    assert path.count("/") == 1
    assert check_path(path) == path
