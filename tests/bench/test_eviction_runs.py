"""Is eviction ever late? Hogs beside innocent pods in the virtual machine, and a table of what came of it.

Run with: pytest -m bench -s tests/bench/test_eviction_runs.py. A witness outside the agent
looks every 20 ms. A miss: the offender stayed, an innocent pod suffered, or the kernel's OOM killer acted.
"""

import json
import os
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeagent.pods.decisions import Decision
from tests.integration.node import CGROUP_ROOT, Node
from tests.integration.observed import KUBEPODS, kernel_kills, processes_of, slice_of, status_of
from tests.integration.workload import Manifest, container, of_each_class, pod

pytestmark = pytest.mark.bench

HERE = Path(__file__).parent
REPETITIONS = 5
TOOLS = "/root/bench"
THREADS_MAX = "/proc/sys/kernel/threads-max"
CUE, WITNESSED = "/run/cue", "/run/witnessed"
THRESHOLD_MIB = 200
SMALL_DISK_MIB, SMALL_DISK_INODES = 48, 2000
PIDS_LEFT, PODS_PIDS_LIMIT = 150, 400
EVICTED_SECONDS = 180
EXPENDABLE = "expendable"
QOS = {
    "BestEffort": {},
    "Burstable": {"requests": {"memory": "16Mi"}},
    "Guaranteed": {"limits": {"cpu": "1", "memory": "350Mi"}},
}
MEMORY_RUNS = [
    (kind, qos, rate)
    for kind, rates in (("anonymous", (10, 40, 150, 0)), ("tmpfs", (40, 0)), ("cache", (40, 0)))
    for qos in QOS
    for rate in rates
]
CONFIGURATION: dict[str, Any] = {
    "evictionHard": {
        "memory.available": f"{THRESHOLD_MIB}Mi",
        "pid.available": str(PIDS_LEFT),
        "nodefs.available": "10%",
        "nodefs.inodesFree": "10%",
    },
    "evictionPressureTransitionPeriod": "1s",
    "podPidsLimit": PODS_PIDS_LIMIT,
    "systemReserved": {"memory": "0"},
}


@dataclass
class Row:
    """What became of one kind of run."""

    name: str
    seconds: list[float] = field(default_factory=list)
    told_seconds: list[float] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    runs: int = 0
    least_mib: list[float] = field(default_factory=list)
    kernel_kills: int = 0
    kubepods_ooms: int = 0

    def __str__(self) -> str:
        least = f"{min(self.least_mib):.0f}" if self.least_mib else "-"
        return (
            f"{self.name:<34} {self.runs:>4} {_times(self.seconds):>13} {_times(self.told_seconds):>13} "
            f"{len(self.misses):>6} {least:>6} {self.kernel_kills:>7} {self.kubepods_ooms:>8}  "
            f"{'; '.join(self.misses)}"
        )


def _times(seconds: list[float]) -> str:
    if not seconds:
        return "-"
    return f"{1000 * statistics.median(seconds):.0f} / {1000 * max(seconds):.0f}"


@pytest.fixture(scope="module")
def table() -> Iterator[list[Row]]:
    rows: list[Row] = []
    yield rows
    print(f"\nhost load {os.getloadavg()[0]:.1f}; times in ms: median / most; least MiB available")
    print(
        f"{'offender':<34} {'runs':>4} {'dead after':>13} {'as recorded':>13} misses  least  kernel kubepods"
    )
    print("\n".join(map(str, rows)))


@pytest.fixture(scope="module")
def node(small_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A small machine whose node filesystem is a small one of its own, with the agent and two innocents."""
    node = small_node
    node.clean()
    node.run(f"mkdir -p {TOOLS} /mnt/small")
    for tool in ("hog.py", "witness.py"):
        node.put(HERE / tool, f"{TOOLS}/{tool}")
    image = _small_disk(tmp_path_factory.mktemp("disk"))
    node.put(image, "/root/")
    node.run(f"gunzip -f /root/{image.name} && mount -o loop /root/{image.stem} /mnt/small")
    for directory in ("/var/lib/nodeagent", "/var/log/pods"):
        place = f"/mnt/small/{directory.rpartition('/')[2]}"
        node.run(f"mkdir -p {place} {directory} && mount --bind {place} {directory}")
    node.configure(CONFIGURATION, {})
    node.start()
    priority_class = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    node.apply(EXPENDABLE, priority_class | {"metadata": {"name": EXPENDABLE}, "value": -10})
    yield node
    # Neither the watchdog nor anything else ended the agent meanwhile.
    assert node.run("systemctl show -P NRestarts nodeagent.service").strip() == "0"


def _small_disk(directory: Path) -> Path:
    """A file system in a compressed file; the machine has no tool to make one."""
    disk = directory / "small.img"
    subprocess.run(["truncate", "-s", f"{SMALL_DISK_MIB}M", disk], check=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-N", str(SMALL_DISK_INODES), disk], check=True)
    subprocess.run(["gzip", disk], check=True)
    return disk.with_suffix(".img.gz")


class Innocents:
    """Pods that have nothing to do with it, within their requests."""

    def __init__(self, node: Node) -> None:
        self.node = node
        manifests = of_each_class()
        for name in ("guaranteed", "burstable"):
            node.apply(name, manifests[name])
        self.pods = [node.wait_phase(name, "Running") for name in ("guaranteed", "burstable")]
        self.before = [processes_of(node, each) for each in self.pods]

    def complaint(self) -> str:
        for before, each in zip(self.before, self.pods, strict=True):
            now = self.node.pod(each["metadata"]["name"])
            if now is None or now["status"]["phase"] != "Running" or status_of(now)["restartCount"]:
                return f"innocent {each['metadata']['name']} suffered"
            if processes_of(self.node, each) != before:
                return f"innocent {each['metadata']['name']} lost processes"
        return ""


@pytest.fixture(scope="module")
def innocents(node: Node) -> Innocents:
    return Innocents(node)


def kubepods_ooms(node: Node) -> int:
    """How often all pods together reached the limit of their slice and found nothing to give back."""
    return int(node.run(f"awk '/^oom / {{print $2}}' {CGROUP_ROOT}/{KUBEPODS}/memory.events.local"))


def hog(kind: str, rate: float, qos: str = "BestEffort") -> Manifest:
    command = ("python3", f"{TOOLS}/hog.py", CUE, kind, str(rate))
    # What a Guaranteed pod uses is within its request: only its priority makes it go before the innocents.
    priority = {"priorityClassName": EXPENDABLE} if qos == "Guaranteed" else {}
    return pod("hog", container(*command, **QOS[qos]), restartPolicy="Never", **priority)


def told_seconds(node: Node, uid: str) -> float | None:
    """The time from crossing to dead as the agent recorded it."""
    items = json.loads(node.get("/nodeagent/v1/decisions?kind=eviction&limit=20"))["items"]
    records = [msgspec.convert(item, Decision).eviction for item in items]
    return next((each.seconds_to_dead for each in records if each is not None and each.uid == uid), None)


def run_once(
    node: Node,
    innocents: Innocents,
    row: Row,
    manifest: Manifest,
    *,
    must_go: bool,
    last: bool = True,
    first: str = ":",
) -> None:
    """Let one offender loose, and add what became of it to the row.

    `first` is run when it waits for its cue; where it is the `last`, calm is waited for.
    """
    name = manifest["metadata"]["name"]
    node.run(f"rm -f {CUE} {WITNESSED}")
    kills, ooms = kernel_kills(node), kubepods_ooms(node)
    node.apply(name, manifest)
    offender = node.wait_phase(name, "Running", timeout=180)
    node.run(
        f"systemd-run -q --collect --unit=witness -p CPUWeight=1000 python3 {TOOLS}/witness.py {WITNESSED} "
        f"{THRESHOLD_MIB << 20} {slice_of(offender)} && sleep 2 && {first} && touch {CUE}"
    )
    misses = []
    try:
        if must_go:
            reason = node.wait_phase(name, "Failed", timeout=EVICTED_SECONDS)["status"].get("reason")
            if reason != "Evicted":
                misses.append(f"{name} ended as {reason}")
        else:
            node.run("sleep 15")
    except AssertionError:
        misses.append(f"{name} stayed")
    node.run("sleep 1.5")
    seen: dict[str, Any] = json.loads(node.read(WITNESSED))
    node.run("systemctl stop witness", check=False)
    row.runs += 1
    row.least_mib.append(seen["least_bytes"] / (1 << 20))
    if seen["seconds"] is not None:
        row.seconds.append(seen["seconds"])
    told = told_seconds(node, offender["metadata"]["uid"])
    if told is not None:
        row.told_seconds.append(told)
    row.kernel_kills += kernel_kills(node) - kills
    row.kubepods_ooms += kubepods_ooms(node) - ooms
    if kernel_kills(node) > kills:
        misses.append("the kernel killed")
    misses += filter(None, [innocents.complaint()])
    row.misses += misses
    node.delete(name)
    node.wait_gone(name)
    if last:
        node.wait(lambda: _is_calm(node), 120, "no pressure")


def _is_calm(node: Node) -> bool:
    conditions = json.loads(node.get("/api/v1/nodes"))["items"][0]["status"]["conditions"]
    return all(each["status"] == "False" for each in conditions if each["type"].endswith("Pressure"))


def repeat(
    node: Node, innocents: Innocents, table: list[Row], name: str, manifest: Manifest, *, must_go: bool = True
) -> None:
    row = Row(name)
    table.append(row)
    for _ in range(REPETITIONS):
        run_once(node, innocents, row, manifest, must_go=must_go)
    print(f"\n{row}")
    assert not row.misses


@pytest.mark.parametrize(("kind", "qos", "rate"), MEMORY_RUNS)
def test_memory(node: Node, innocents: Innocents, table: list[Row], kind: str, qos: str, rate: float) -> None:
    """Pages of files can be given back: there nobody needs to go."""
    speed = f"{rate} MB/s" if rate else "unbounded"
    name = f"{kind}, {qos}, {speed}"
    repeat(node, innocents, table, name, hog(kind, rate, qos), must_go=kind != "cache")


def bomb(*, limited: bool) -> Manifest:
    """Forks without end, up to the limit of a pod, or of the node where `limited` is false."""
    script = f"until [ -e {CUE} ]; do sleep 0.1; done; while :; do sleep 1000 & done"
    return pod("hog" if limited else "bomb", container("bash", "-c", script), restartPolicy="Never")


def test_a_fork_bomb_at_its_pods_limit(node: Node, innocents: Innocents, table: list[Row]) -> None:
    repeat(
        node,
        innocents,
        table,
        f"fork bomb, podPidsLimit {PODS_PIDS_LIMIT}",
        bomb(limited=True),
        must_go=False,
    )


def test_many_processes_near_the_machines_limit(node: Node, innocents: Innocents, table: list[Row]) -> None:
    """The machine is made small when the pod runs: systemd gives each scope a part of what it holds."""
    row = Row("fork bomb, near the machine's limit")
    table.append(row)
    before = node.read(THREADS_MAX)
    running = "$(cut -d/ -f2 /proc/loadavg | cut -d' ' -f1)"
    fewer = f"echo $(({running} + {PIDS_LEFT + PODS_PIDS_LIMIT // 2})) >{THREADS_MAX}"
    for _ in range(REPETITIONS):
        try:
            run_once(node, innocents, row, bomb(limited=False), must_go=True, last=False, first=fewer)
        finally:
            node.run(f"echo {before} >{THREADS_MAX}")
        node.wait(lambda: _is_calm(node), 120, "no pressure")
    print(f"\n{row}")
    assert not row.misses


def test_a_log_that_fills_the_disk(node: Node, innocents: Innocents, table: list[Row]) -> None:
    repeat(node, innocents, table, f"log, on a disk of {SMALL_DISK_MIB} MiB", hog("log", 10))


def test_files_that_use_up_the_inodes(node: Node, innocents: Innocents, table: list[Row]) -> None:
    repeat(node, innocents, table, f"inodes, on a disk of {SMALL_DISK_INODES}", hog("inodes", 2))


def test_everything_at_once(node: Node, innocents: Innocents, table: list[Row]) -> None:
    """Beside the one that is timed, others use up memory and processes, and write to the disk."""
    beside = {
        "also-tmpfs": ("tmpfs", 40, "Burstable"),
        "also-log": ("log", 5, "Burstable"),
        "also-cache": ("cache", 40, "Guaranteed"),
    }
    row = Row("anonymous, unbounded, and all others")
    table.append(row)
    for _ in range(REPETITIONS):
        node.run(f"rm -f {CUE}")
        for name, what in beside.items():
            manifest = hog(*what)
            manifest["metadata"]["name"] = name
            node.apply(name, manifest)
        node.apply("also-bomb", bomb(limited=True) | {"metadata": {"name": "also-bomb"}})
        for name in (*beside, "also-bomb"):
            node.wait_phase(name, "Running", timeout=180)
        run_once(node, innocents, row, hog("anonymous", 0), must_go=True, last=False)
        for name in (*beside, "also-bomb"):
            node.delete(name)
        for name in (*beside, "also-bomb"):
            node.wait_gone(name)
        node.wait(lambda: _is_calm(node), 120, "no pressure")
    print(f"\n{row}")
    assert not row.misses
