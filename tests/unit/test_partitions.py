"""Exclusive CPUs as cpuset partitions: the kernel refuses no write on the way."""

from hypothesis import given
from hypothesis import strategies as st

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet
from nodeagent.resources.partitions import Partition, Write, partition_problem, partition_writes

POD_A, POD_B = "kubepods.slice/kubepods-poda.slice", "kubepods.slice/kubepods-podb.slice"
LEAVES = (f"{POD_A}/one.scope", f"{POD_A}/two.scope", f"{POD_B}/three.scope")


class Kernel:
    """The rules of the kernel for cpuset.cpus.exclusive and remote partitions."""

    def __init__(self) -> None:
        self.exclusive: dict[str, CpuSet] = {}
        self.partition: dict[str, str] = {}

    def write(self, path: str, file: str, value: str) -> None:
        parent, _, _ = path.rpartition("/")
        if file == "cpuset.cpus.partition":
            if value != "member":
                assert self.exclusive.get(path), f"{path}: no exclusive CPUs for a partition"
            self.partition[path] = value
            return
        assert value, "a write of no bytes does nothing"
        cpus = CpuSet.parse(value.strip())
        if parent:
            assert cpus <= self.exclusive.get(parent, NO_CPUS), f"{path}: more than the parent has"
        for other, own in self.exclusive.items():
            if other != path and other.rpartition("/")[0] == parent:
                assert not own & cpus, f"{path} and {other} overlap"
            if other.rpartition("/")[0] == path:
                assert own <= cpus, f"{path}: less than its child {other} has"
        self.exclusive[path] = cpus

    def owners(self) -> dict[str, CpuSet]:
        return {path: self.exclusive[path] for path, kind in self.partition.items() if kind != "member"}


def test_one_container_is_built_from_the_top_and_taken_down_from_the_leaf() -> None:
    after = {LEAVES[0]: CpuSet.parse("2-3")}
    up = partition_writes({}, after, Partition.ISOLATED)
    assert up == (
        Write("kubepods.slice", "cpuset.cpus.exclusive", "2-3"),
        Write(POD_A, "cpuset.cpus.exclusive", "2-3"),
        Write(LEAVES[0], "cpuset.cpus.exclusive", "2-3"),
        Write(LEAVES[0], "cpuset.cpus.partition", "isolated"),
    )
    down = partition_writes(after, {}, Partition.ISOLATED)
    assert [(write.path, write.value) for write in down] == [
        (LEAVES[0], "member"),
        (LEAVES[0], "\n"),
        (POD_A, "\n"),
        ("kubepods.slice", "\n"),
    ]
    assert partition_writes(after, after, Partition.ISOLATED) == ()


@st.composite
def owners(draw: st.DrawFn) -> dict[str, CpuSet]:
    """Some leaves with CPUs that no two of them share."""
    owner_of = draw(st.lists(st.sampled_from([None, *LEAVES]), min_size=6, max_size=6))
    found = {
        leaf: CpuSet.from_iterable(c for c, owner in enumerate(owner_of) if owner == leaf) for leaf in LEAVES
    }
    return {leaf: cpus for leaf, cpus in found.items() if cpus}


@given(st.lists(owners(), min_size=1, max_size=5))
def test_the_kernel_refuses_no_write_on_the_way(states: list[dict[str, CpuSet]]) -> None:
    kernel, before = Kernel(), dict[str, CpuSet]()
    for after in states:
        for write in partition_writes(before, after, Partition.ROOT):
            kernel.write(*write)
        assert kernel.owners() == after
        before = after


def test_a_partition_that_is_not_in_force_says_why() -> None:
    assert partition_problem("isolated\n", Partition.ISOLATED) == ""
    assert "Parent is not a partition root" in partition_problem(
        "root invalid (Parent is not a partition root)", Partition.ROOT
    )
    assert "'member', expected 'root'" in partition_problem("member", Partition.ROOT)
