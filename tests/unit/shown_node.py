"""A small node for the tests of metrics and server: real files in a directory, two pods, known figures."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from nodeagent.admission.elastic_quota.quotas import Quotas, QuotaSettings
from nodeagent.api.event import Event
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.node import Node, NodeStatus, NodeSystemInfo
from nodeagent.api.pod import Container, Pod, PodSpec
from nodeagent.api.references import ObjectReference
from nodeagent.cgroup.files import CgroupTree
from nodeagent.config import Config
from nodeagent.eviction.pace import Headroom
from nodeagent.eviction.signals import Signal
from nodeagent.eviction.thresholds import Amount, Threshold
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Topology, parse_short
from nodeagent.metrics.instruments import Instruments
from nodeagent.metrics.source import AgentState, MeteredCgroup
from nodeagent.server.view import DecisionQuery, HealthCheck
from nodeagent.stats.summary import NodeStats, Summary
from tests.unit.elastic_quotas import quota, quota_node, quota_pod

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
GIB = 1 << 30
KUBEPODS = "kubepods.slice"
BURSTABLE = f"{KUBEPODS}/kubepods-burstable.slice"
WEB = f"{BURSTABLE}/kubepods-burstable-podu1.slice"
WEB_MAIN = f"{WEB}/nodeagent-c1.scope"

_AVERAGES = "avg10=0.00 avg60=0.00 avg300=0.00"
PRESSURE = f"some {_AVERAGES} total=1500000\nfull {_AVERAGES} total=250000\n"
MEMORY_STAT = (
    "anon 700\nfile 300\nkernel 40\nfile_mapped 30\ninactive_file 200\nactive_file 100\n"
    "pgfault 9\npgmajfault 2\n"
)


def cgroup_files(usage_usec: int = 2_500_000, quota: str = "max", memory: int = 1000) -> dict[str, str]:
    """The files of one cgroup, all of its figures known."""
    return {
        "cgroup.events": "populated 1\nfrozen 0\n",
        "cgroup.stat": "nr_descendants 0\nnr_dying_descendants 0\n",
        "cpu.max": f"{quota} 100000\n",
        "cpu.stat": (
            f"usage_usec {usage_usec}\nuser_usec 2000000\nsystem_usec 500000\n"
            "nr_periods 40\nnr_throttled 10\nthrottled_usec 750000\n"
        ),
        "cpu.pressure": PRESSURE,
        "memory.current": f"{memory}\n",
        "memory.stat": MEMORY_STAT,
        "memory.events": "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\n",
        "memory.max": "4096\n",
        "memory.peak": "1200\n",
        "memory.pressure": PRESSURE,
        "memory.swap.current": "64\n",
        "memory.swap.max": "0\n",
        "io.pressure": PRESSURE,
        "pids.current": "3\n",
        "pids.max": "max\n",
    }


def write_cgroup(root: Path, path: str, files: Mapping[str, str]) -> None:
    directory = root / path
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text)


def write_proc(proc: Path) -> None:
    """A /proc with what is read of it: 4 GiB, 3 GiB of swap half used, 120 tasks, two interfaces."""
    for name, text in {
        "meminfo": (
            "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\nSwapTotal: 3145728 kB\nSwapFree: 1572864 kB\n"
        ),
        "loadavg": "0.10 0.20 0.30 2/120 4711\n",
        "sys/kernel/pid_max": "32768\n",
        "sys/kernel/threads-max": "20000\n",
        "pressure/memory": PRESSURE,
        "pressure/io": PRESSURE,
        "net/dev": (
            "Inter-|   Receive                                                |  Transmit\n"
            " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
            "    lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
            "  eth0: 5000 50 1 2 0 0 0 0 7000 70 3 4 0 0 0 0\n"
        ),
    }.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(text)


class FixedClock:
    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here sleeps")


class ShownNode:
    """Everything that the server is shown, as the agent would show it."""

    def __init__(self, directory: Path) -> None:
        self.cgroup_root = directory / "cgroup"
        self.cgroup_root.mkdir(parents=True)
        self.proc_root = directory / "proc"
        write_proc(self.proc_root)
        root = {"cpu.stat": "usage_usec 90000000\nuser_usec 60000000\nsystem_usec 30000000\n"}
        root |= {"memory.stat": "anon 1073741824\nfile 536870912\ninactive_file 268435456\n"}
        write_cgroup(self.cgroup_root, "", root)
        for path in (KUBEPODS, BURSTABLE):
            write_cgroup(self.cgroup_root, path, cgroup_files())
        write_cgroup(self.cgroup_root, WEB, cgroup_files(quota="50000"))
        write_cgroup(self.cgroup_root, WEB_MAIN, cgroup_files(quota="50000"))
        self.tree = CgroupTree(self.cgroup_root)
        self.topology: Topology = parse_short("1x2x2")
        self.clock = FixedClock()
        self.instruments = Instruments()
        self.config = Config()
        self.health_checks: dict[str, HealthCheck] = {"log": lambda: None, "syncloop": lambda: None}
        self.desired = [make_pod("web", "shop"), make_pod("db", "shop"), make_pod("web", "test")]
        self.recorded = [make_event("e1", "shop"), make_event("e2", "test")]
        self.listed = [
            MeteredCgroup(KUBEPODS),
            MeteredCgroup(BURSTABLE),
            MeteredCgroup(WEB, "shop", "web"),
            MeteredCgroup(WEB_MAIN, "shop", "web", "main", "c1", started_at_seconds=1_772_000_000.5),
        ]
        self.decided = [
            (number, "Eviction" if number % 3 == 0 else "Admission", ("shop", f"p{number % 2}"))
            for number in range(1, 151)
        ]
        self.asked_for_short_summary: list[bool] = []

    @property
    def metrics(self) -> "ShownNode":
        return self

    def cgroups(self) -> Sequence[MeteredCgroup]:
        return self.listed

    def state(self) -> AgentState:
        return AgentState(
            running_pods=1,
            containers={"running": 1, "exited": 2},
            desired_pods={True: 3},
            active_pods={True: 2},
            working_pods={("sync", "desired", True): 3},
            shared_pool_cpus=3,
            exclusive_cpus_per_numa={0: 1},
            headrooms=[Headroom(Threshold(Signal.PID_AVAILABLE, Amount(fraction=0.1)), 250.0, 12.5)],
            quota_groups=self.elastic_quotas().groups(),
        )

    def pods(self) -> Sequence[Pod]:
        return self.desired

    def running_pods(self) -> Sequence[Pod]:
        return self.desired[:1]

    def node(self) -> Node:
        info = NodeSystemInfo(machine_id="m1", system_uuid="s1", boot_id="b1")
        return Node(metadata=ObjectMeta(name="n1"), status=NodeStatus(node_info=info))

    def events(self) -> Sequence[Event]:
        return self.recorded

    def decisions(self, query: DecisionQuery, before: int, limit: int) -> Sequence[tuple[int, bytes]]:
        found = [
            (number, b'{"id":%d}' % number)
            for number, kind, pod in reversed(self.decided)
            if number < before and query.kind in (None, kind) and query.pod in (None, pod)
        ]
        return found[:limit]

    def elastic_quotas(self) -> Quotas:
        quotas = Quotas(QuotaSettings(), lambda: NOW)
        quotas.put_node(quota_node("n1", 10, 10))
        for name in ("red", "blue"):
            quotas.put_quota(quota(name, (5, 5), (10, 10)))
        quotas.put_pod(quota_pod("web", "red", 8, 1, node="n1"))
        quotas.refresh_all()
        return quotas

    def cpu_owners(self) -> Mapping[str, CpuSet]:
        return {"reserved": CpuSet.parse("0"), "shop/web/main": CpuSet.parse("2-3")}

    async def summary(self, only_cpu_and_memory: bool) -> Summary:
        self.asked_for_short_summary.append(only_cpu_and_memory)
        return Summary(node=NodeStats(node_name="n1"), pods=())

    def close(self) -> None:
        self.tree.close()


def make_pod(name: str, namespace: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}-{name}"),
        spec=PodSpec(containers=(Container(name="main"),)),
    )


def make_event(name: str, namespace: str) -> Event:
    return Event(
        metadata=ObjectMeta(name=name, namespace=namespace),
        involved_object=ObjectReference(kind="Pod", namespace=namespace, name="web"),
        reason="Started",
    )
