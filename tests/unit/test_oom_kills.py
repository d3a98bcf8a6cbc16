"""What the kernel's log says of its OOM killer, and who is told."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from nodeagent.clock import SystemClock
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.oom_kills import OomKillReporter, Scope
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec
from nodeagent.stats.kernel_log import OomKill, parse_oom_kill
from nodeagent.store import Store
from tests.unit.simulated_node import make_pod

POD = "kubepods.slice/kubepods-poduid_a.slice"
LEAF = f"{POD}/nodeagent-c1.scope"


def line(limit: str, process: str = "python3", cgroup: str = LEAF, priority: int = 6) -> bytes:
    """A line as Linux 6.12 writes it."""
    whose = f"oom_memcg=/{limit}" if limit else "global_oom"
    constraint = "CONSTRAINT_MEMCG" if limit else "CONSTRAINT_NONE"
    return (
        f"{priority},812,73200981,-;oom-kill:constraint={constraint},nodemask=(null),cpuset=nodeagent-c1.scope,"
        f"mems_allowed=0,{whose},task_memcg=/{cgroup},task={process},pid=977,uid=0\n SUBSYSTEM=x\n"
    ).encode()


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (line(LEAF), OomKill("python3", 977, LEAF, LEAF)),
        (line(""), OomKill("python3", 977, LEAF, None)),
        (line(POD, process="a,pid=1,uid=0"), OomKill("a,pid=1,uid=0", 977, LEAF, POD)),
        # Somebody who may write to the log says it, not the kernel: facility 1.
        (line(LEAF, priority=14), None),
        (b"6,1,2,-;Memory cgroup out of memory: Killed process 977 (python3)\n", None),
        (b"", None),
        (b"no record", None),
    ],
)
def test_lines_of_the_log(record: bytes, expected: OomKill | None) -> None:
    assert parse_oom_kill(record) == expected


class Bench:
    def __init__(self, directory: Path) -> None:
        pod = make_pod("a")
        spec = ContainerSpec(
            container_id="c1",
            pod_uid=pod.metadata.uid,
            pod_namespace="default",
            pod_name="a",
            container_name="c",
            argv=("python3",),
            log_path="/dev/null",
            cgroup=LEAF,
            pod_cgroup=POD,
        )
        records = ContainerRecords()
        records.update(ContainerRecord(spec=spec, pid=977, state="running"))
        self.store = Store(directory / "nodeagent.db")
        self.scopes: list[Scope] = []
        events = EventRecorder(self.store, SystemClock(), "node")
        self.reporter = OomKillReporter("kubepods.slice", records, lambda: [pod], events, self.scopes.append)

    def events(self) -> set[tuple[str, str, str]]:
        found = [json.loads(body) for body in self.store.events()]
        return {(each["involvedObject"]["kind"], each["reason"], each["message"]) for each in found}


KILLED = "Process python3 (pid 977) of container c was killed: out of memory"


@pytest.mark.parametrize(
    ("limit", "cgroup", "scope", "expected"),
    [
        (LEAF, LEAF, "pod", {("Pod", "OOMKilling", f"{KILLED} at the limit of {LEAF}")}),
        (POD, f"{LEAF}/inner", "pod", {("Pod", "OOMKilling", f"{KILLED} at the limit of {POD}")}),
        (
            "kubepods.slice",
            LEAF,
            "pods",
            {
                ("Pod", "OOMKilling", f"{KILLED} at the limit of kubepods.slice"),
                (
                    "Node",
                    "PodsOOM",
                    "Pods reached the limit of kubepods.slice, victim process: python3, pid: 977",
                ),
            },
        ),
        (
            None,
            LEAF,
            "system",
            {
                ("Pod", "OOMKilling", f"{KILLED} on the whole machine"),
                ("Node", "SystemOOM", "System OOM encountered, victim process: python3, pid: 977"),
            },
        ),
        ("user.slice", "user.slice/x", "other", set()),
    ],
)
def test_the_pod_and_the_node_are_told(
    tmp_path: Path, limit: str | None, cgroup: str, scope: str, expected: set[tuple[str, str, str]]
) -> None:
    bench = Bench(tmp_path)
    bench.reporter.killed(OomKill("python3", 977, cgroup, limit))
    assert bench.scopes == [scope]
    assert bench.events() == expected


async def test_the_log_is_followed_from_now_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "kmsg"
    os.mkfifo(log)
    # A pipe has no end to seek to; the kernel's log has.
    monkeypatch.setattr(os, "lseek", lambda *_: 0)
    bench = Bench(tmp_path)
    bench.reporter.watch(log)
    writer = os.open(log, os.O_WRONLY)
    os.write(writer, line(LEAF))
    for _ in range(100):
        await asyncio.sleep(0.01)
        if bench.scopes:
            break
    assert bench.scopes == [Scope.POD]
    bench.reporter.close()
    os.close(writer)


async def test_without_the_log_the_agent_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.reporter.watch(tmp_path / "none")
    bench.reporter.close()
