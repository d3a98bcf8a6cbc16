"""Processes that run outside the cgroups of their pod."""

from pathlib import Path

from nodeagent.pods.escapes import find_escapes
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec

POD = "kubepods.slice/kubepods-podu1.slice"
LEAF = f"{POD}/nodeagent-c1.scope"


def process(proc: Path, pid: int, cgroup: str, *children: int, name: str = "sh") -> None:
    directory = proc / str(pid)
    (directory / f"task/{pid}").mkdir(parents=True)
    (directory / "cgroup").write_text(f"0::/{cgroup}\n")
    (directory / "status").write_text(f"Name:\t{name}\nUmask:\t0022\n")
    (directory / f"task/{pid}/children").write_text("".join(f"{child} " for child in children))


def container(pid: int) -> ContainerRecord:
    spec = ContainerSpec(
        container_id="c1",
        pod_uid="u1",
        pod_namespace="default",
        pod_name="a",
        container_name="c",
        argv=("sh",),
        log_path="/dev/null",
        cgroup=LEAF,
        pod_cgroup=POD,
    )
    return ContainerRecord(spec=spec, pid=pid, state="running")


def test_a_grandchild_that_left_is_named(tmp_path: Path) -> None:
    process(tmp_path, 10, LEAF, 11, 12)
    process(tmp_path, 11, f"{LEAF}/inner", 13)
    # 12 has ended meanwhile.
    process(tmp_path, 13, "system.slice/cron.service", name="miner")
    (escape,) = find_escapes(tmp_path, [container(10)])
    assert str(escape) == (
        "Process miner (pid 13) of container c runs in /system.slice/cron.service, outside its pod: no limit "
        "of the pod holds for it, and it outlives the pod"
    )


def test_nobody_left(tmp_path: Path) -> None:
    process(tmp_path, 10, LEAF)
    assert find_escapes(tmp_path, [container(10), container(99)]) == []
