"""Living with systemd: it takes nothing back, is told how things stand, and is not needed for the tree."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from tests.integration.node import CGROUP_ROOT, Node
from tests.integration.observed import (
    KUBEPODS,
    SLICES,
    Pod,
    Tree,
    events,
    leaf_of,
    processes,
    processes_of,
    read_tree,
    slice_of,
)
from tests.integration.workload import container, of_each_class, pod, shell

AGENT = "nodeagent.service"
DROP_IN = f"/run/systemd/system/{AGENT}.d/watchdog.conf"
RECONCILE_SECONDS = 5


@pytest.fixture
def kubelet_config() -> dict[str, Any]:
    return {
        "cgroupDriver": "systemd",
        "cpuManagerReconcilePeriod": f"{RECONCILE_SECONDS}s",
        "podPidsLimit": 100,
        "systemReserved": {"cpu": "100m", "memory": "64Mi"},
    }


@pytest.fixture
def pods(shared_node: Node) -> dict[str, Pod]:
    """A running pod of each QoS class."""
    manifests = of_each_class()
    for name, manifest in manifests.items():
        shared_node.apply(name, manifest)
    return {name: shared_node.wait_phase(name, "Running") for name in manifests}


def agent_pid(node: Node) -> str:
    return node.run(f"systemctl show -P MainPID {AGENT}").strip()


class TestReload:
    @pytest.mark.parametrize("verb", ["daemon-reload", "daemon-reexec"])
    def test_no_value_changes(self, shared_node: Node, pods: dict[str, Pod], verb: str) -> None:
        """At no level, neither at once nor when systemd next touches the tree, and not by being repaired."""
        before, running = read_tree(shared_node), processes(shared_node)
        assert len(before) == 3 + 3 + 3
        repaired = len(events(shared_node, "CgroupRepaired"))
        shared_node.run(f"systemctl {verb}", timeout=300)
        assert read_tree(shared_node) == before

        shared_node.apply("passing", pod("passing", container(requests={"cpu": "50m"})))
        shared_node.wait_phase("passing", "Running")
        during = read_tree(shared_node)
        upper = (KUBEPODS, SLICES["Burstable"])
        assert {path: during[path] for path in before if path not in upper} == {
            path: before[path] for path in before if path not in upper
        }
        shared_node.delete("passing")
        shared_node.wait_gone("passing")
        shared_node.wait(lambda: read_tree(shared_node) == before, timeout=30, what="the values of before")
        assert processes(shared_node) == running
        assert len(events(shared_node, "CgroupRepaired")) == repaired


class TestDrift:
    @pytest.mark.parametrize(
        ("level", "file", "value"),
        [
            ("pod", "cpu.max", "7000 100000"),
            ("pod", "memory.max", "max"),
            ("container", "memory.max", str(40 << 20)),
            ("qos", "cpu.weight", "9000"),
            ("kubepods", "pids.max", "max"),
        ],
    )
    def test_a_foreign_value_is_put_right_and_reported(
        self, shared_node: Node, pods: dict[str, Pod], level: str, file: str, value: str
    ) -> None:
        burstable = pods["burstable"]
        path = {
            "pod": slice_of(burstable),
            "container": leaf_of(burstable),
            "qos": SLICES["Burstable"],
            "kubepods": KUBEPODS,
        }[level]
        right = shared_node.cgroup(path, file)
        assert right != value
        shared_node.run(f"echo '{value}' >{CGROUP_ROOT}/{path}/{file}")
        shared_node.wait(
            lambda: shared_node.cgroup(path, file) == right,
            timeout=6 * RECONCILE_SECONDS,
            what=f"{file} put right",
        )

        def reported() -> bool:
            told = [each["message"] for each in events(shared_node, "CgroupRepaired")]
            return any(f"{path}/{file}" in text and value in text and right in text for text in told)

        shared_node.wait(reported, what="an event about it")

    def test_a_property_set_through_systemd_is_foreign_too(
        self, shared_node: Node, pods: dict[str, Pod]
    ) -> None:
        path = slice_of(pods["burstable"])
        unit = path.rpartition("/")[2]
        right = shared_node.cgroup(path, "memory.max")
        shared_node.run(f"systemctl set-property --runtime {unit} MemoryMax=infinity")
        shared_node.wait(
            lambda: shared_node.cgroup(path, "memory.max") == right, timeout=6 * RECONCILE_SECONDS
        )
        # It stays: systemd itself was told, too.
        shared_node.run("systemctl daemon-reload", timeout=300)
        assert shared_node.cgroup(path, "memory.max") == right


class TestService:
    def test_the_status_line_counts_the_pods(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        def status() -> str:
            return shared_node.run(f"systemctl show -P StatusText {AGENT}").strip()

        shared_node.wait(lambda: status() == "3 of 3 pods running", timeout=60, what="the status line")
        shared_node.delete("besteffort")
        shared_node.wait_gone("besteffort")
        shared_node.wait(lambda: status() == "2 of 2 pods running", timeout=60, what="the status line")

    def test_the_journal_has_the_pods_fields(self, shared_node: Node) -> None:
        shared_node.apply("diarist", pod("diarist"))
        meta = shared_node.wait_phase("diarist", "Running")["metadata"]
        query = f"journalctl --no-pager -o json -u {AGENT} POD_NAME={meta['name']} POD_UID={meta['uid']}"
        entries = [json.loads(line) for line in shared_node.run(query).splitlines()]
        started = [entry for entry in entries if entry.get("EVENT_REASON") == "Started"]
        assert len(started) == 1
        assert started[0]["POD_NAMESPACE"] == "default"
        assert started[0]["SYSLOG_IDENTIFIER"] == "nodeagent"
        assert started[0]["PRIORITY"] == "6"

    def test_a_reload_reads_the_manifests_again(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        before, running = agent_pid(shared_node), processes(shared_node)
        shared_node.run(f"systemctl reload {AGENT}")
        shared_node.get("/healthz")
        assert agent_pid(shared_node) == before
        assert processes(shared_node) == running

    @pytest.fixture
    def short_watchdog(self, shared_node: Node) -> Iterator[None]:
        shared_node.run(f"mkdir -p $(dirname {DROP_IN})")
        shared_node.write(DROP_IN, "[Service]\nWatchdogSec=15s\nTimeoutAbortSec=3s\n")
        shared_node.run("systemctl daemon-reload", timeout=300)
        shared_node.restart()
        yield
        shared_node.run(f"rm {DROP_IN}; systemctl daemon-reload", timeout=300)
        shared_node.restart()

    def test_an_agent_that_hangs_is_begun_anew_and_the_pods_do_not_feel_it(
        self, shared_node: Node, pods: dict[str, Pod], short_watchdog: None
    ) -> None:
        running, before = processes(shared_node), agent_pid(shared_node)
        shared_node.wait(lambda: shared_node.get("/healthz") == "ok")
        shared_node.run(f"kill -STOP {before}")

        def renewed() -> bool:
            return agent_pid(shared_node) not in (before, "0") and bool(shared_node.pods())

        shared_node.wait(renewed, timeout=120, what="another agent")
        assert "watchdog" in shared_node.run(f"journalctl --no-pager -u {AGENT} -n 200 | grep -i watchdog")
        for name in pods:
            shared_node.wait_phase(name, "Running")
        assert processes(shared_node) == running

    def test_the_service_does_not_hold_the_pods(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        """No container is in the cgroup of a service: systemd could end it together with that."""
        inside = shared_node.run(f"cat {CGROUP_ROOT}/nodeagent.slice/*/cgroup.procs").split()
        for found in processes(shared_node).values():
            assert not set(map(str, found)) & set(inside)


class TestDrivers:
    """Both drivers make the same tree; only what a host gives every scope is systemd's alone."""

    EXPECTED: ClassVar[Tree] = {
        "guaranteed": {
            "slice": "cpu.max=10000 100000 cpu.weight=4 memory.max=33554432 pids.max=100",
            "leaf": "cpu.max=10000 100000 cpu.weight=17 memory.max=33554432 memory.oom.group=1",
        },
        "burstable": {
            "slice": "cpu.max=20000 100000 cpu.weight=4 memory.max=67108864 pids.max=100",
            "leaf": "cpu.max=20000 100000 cpu.weight=17 memory.max=67108864 memory.oom.group=1",
        },
        "besteffort": {
            "slice": "cpu.max=max 100000 cpu.weight=1 memory.max=max pids.max=100",
            "leaf": "cpu.max=max 100000 cpu.weight=1 memory.max=max memory.oom.group=1",
        },
    }

    @pytest.fixture(params=["systemd", "cgroupfs"])
    def kubelet_config(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        return {"cgroupDriver": request.param, "podPidsLimit": 100}

    def test_a_pod_of_each_class(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        tree = read_tree(shared_node)
        assert len(tree) == 3 + 3 + 3
        for name, running in pods.items():
            for level, path in (("slice", slice_of(running)), ("leaf", leaf_of(running))):
                wanted = self.EXPECTED[name][level]
                shown = " ".join(
                    f"{file}={tree[path].get(file)}"
                    for file in ("cpu.max", "cpu.weight", "memory.max", "memory.oom.group", "pids.max")
                    if f"{file}=" in wanted
                )
                assert shown == wanted, (name, level)
        for name, running in pods.items():
            (pids,) = processes_of(shared_node, running).values()
            shared_node.delete(name)
            shared_node.wait_gone(name)
            assert not shared_node.exists(f"{CGROUP_ROOT}/{slice_of(running)}")
            assert not any(shared_node.exists(f"/proc/{pid}") for pid in pids)
        assert len(read_tree(shared_node)) == 3

    def test_who_cannot_be_asked_to_end_is_removed_all_the_same(self, shared_node: Node) -> None:
        """A frozen pod with processes of its own below the leaf, and strangers beside it."""
        deaf = "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' &"
        shared_node.apply("stubborn", pod("stubborn", shell(f"{deaf} {deaf} {deaf} wait")))
        running = shared_node.wait_phase("stubborn", "Running")
        path = slice_of(running)
        shared_node.wait(lambda: len(processes_of(shared_node, running)[leaf_of(running)]) >= 4)
        shared_node.run(
            f"cd {CGROUP_ROOT}/{path} && mkdir cri-stranger.scope && (setsid sleep 100000 >/dev/null 2>&1 & "
            "echo $! >cri-stranger.scope/cgroup.procs) && echo 1 >cgroup.freeze"
        )
        shared_node.delete("stubborn")
        shared_node.wait_gone("stubborn")
        assert not shared_node.exists(f"{CGROUP_ROOT}/{path}")
