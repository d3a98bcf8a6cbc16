"""Limits limit: CPU, memory and processes, and none of it is felt by the others."""

import re
from typing import Any

import pytest

from tests.integration.node import CGROUP_ROOT, Node
from tests.integration.observed import allowed_cpus, events, leaf_of, slice_of, status_of
from tests.integration.workload import container, pod, shell

BUSY = "while :; do :; done"
# Takes memory as fast as it can, all of it anonymous.
MEMORY_HOG = "exec tail /dev/zero"
FORK_BOMB = "while :; do sleep 1000 & done"
WATCHED_SECONDS = 10


def counters(text: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (line.partition(" ") for line in text.splitlines())}


def cpu_share(node: Node, leaf: str) -> float:
    """How many CPUs a leaf used, by the machine's own clock."""
    look = f"cat /proc/uptime; grep usage_usec {CGROUP_ROOT}/{leaf}/cpu.stat"
    words = node.run(f"{look}; sleep {WATCHED_SECONDS}; {look}").split()
    began, before, ended, after = float(words[0]), int(words[3]), float(words[4]), int(words[7])
    return (after - before) / 1e6 / (ended - began)


class TestQuotas:
    """With the default CPU policy, under which CPU is shared in time."""

    @pytest.fixture
    def kubelet_config(self) -> dict[str, Any]:
        return {"podPidsLimit": 64}

    def test_a_cpu_hog_gets_its_limit_and_no_more(self, shared_node: Node) -> None:
        shared_node.apply("hog", pod("hog", shell(BUSY, limits={"cpu": "200m", "memory": "32Mi"})))
        hog = shared_node.wait_phase("hog", "Running")
        leaf = leaf_of(hog)
        assert shared_node.cgroup(leaf, "cpu.max") == "20000 100000"
        before = counters(shared_node.cgroup(leaf, "cpu.stat"))
        share = cpu_share(shared_node, leaf)
        after = counters(shared_node.cgroup(leaf, "cpu.stat"))
        # Less only where the emulated CPUs themselves are kept waiting.
        assert 0.1 < share < 0.22
        assert after["nr_throttled"] - before["nr_throttled"] > WATCHED_SECONDS * 10 / 4
        assert after["throttled_usec"] > before["throttled_usec"]

    def test_a_memory_hog_is_killed_and_begins_again(self, shared_node: Node) -> None:
        neighbour = pod("neighbour", container(limits={"cpu": "100m", "memory": "16Mi"}))
        shared_node.apply("neighbour", neighbour)
        before = leaf_of(shared_node.wait_phase("neighbour", "Running"))
        shared_node.apply("hog", pod("hog", shell(MEMORY_HOG, limits={"memory": "32Mi"})))

        def killed_twice() -> dict[str, Any] | None:
            found = shared_node.pod("hog")
            return found if found and status_of(found).get("restartCount", 0) >= 1 else None

        hog = shared_node.wait(killed_twice, timeout=120, what="a restart after an OOM kill")
        assert hog is not None
        ended = status_of(hog)["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
        assert counters(shared_node.cgroup(slice_of(hog), "memory.events"))["oom_kill"] >= 1
        neighbour_now = shared_node.pod("neighbour")
        assert neighbour_now is not None
        assert leaf_of(neighbour_now) == before
        assert status_of(neighbour_now)["restartCount"] == 0

    def test_a_memory_hog_without_restarts_fails(self, shared_node: Node) -> None:
        manifest = pod("hog", shell(MEMORY_HOG, limits={"memory": "32Mi"}), restartPolicy="Never")
        shared_node.apply("hog", manifest)
        hog = shared_node.wait_phase("hog", "Failed")
        ended = status_of(hog)["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
        told = [each["message"] for each in events(shared_node, "OOMKilling", hog["metadata"]["name"])]
        victim = r"Process tail \(pid \d+\) of container c was killed: out of memory at the limit of "
        # The pod's limit is its container's: the kernel names one or the other.
        assert any(re.fullmatch(victim + re.escape(slice_of(hog)) + ".*", message) for message in told), told
        assert re.search(r'^nodeagent_oom_kills_total{scope="pod"} [1-9]', shared_node.get("/metrics"), re.M)

    def test_a_fork_bomb_stops_at_pids_max_and_the_node_goes_on(self, shared_node: Node) -> None:
        shared_node.apply("bomb", pod("bomb", container("bash", "-c", FORK_BOMB)))
        path = slice_of(shared_node.wait_phase("bomb", "Running"))
        assert shared_node.cgroup(path, "pids.max") == "64"

        def refused() -> bool:
            return counters(shared_node.cgroup(path, "pids.events"))["max"] > 0

        shared_node.wait(refused, what="a fork that is refused")
        assert int(shared_node.cgroup(path, "pids.current")) <= 64
        assert shared_node.get("/healthz") == "ok"
        shared_node.apply("after", pod("after"))
        shared_node.wait_phase("after", "Running")
        shared_node.delete("bomb")
        shared_node.wait_gone("bomb")
        assert not shared_node.exists(f"{CGROUP_ROOT}/{path}")


class TestWholeCpus:
    """With the static CPU policy: of the two CPUs one is reserved, so that one can be had whole."""

    @pytest.fixture
    def kubelet_config(self) -> dict[str, Any]:
        return {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "cpuManagerReconcilePeriod": "5s"}

    def test_whoever_has_a_cpu_to_itself_is_not_throttled(self, shared_node: Node) -> None:
        shared_node.apply("shared", pod("shared"))
        shared = leaf_of(shared_node.wait_phase("shared", "Running"))
        shared_node.apply("whole", pod("whole", shell(BUSY, limits={"cpu": "1", "memory": "32Mi"})))
        whole = shared_node.wait_phase("whole", "Running")
        leaf = leaf_of(whole)
        for path in (leaf, slice_of(whole)):
            assert shared_node.cgroup(path, "cpu.max") == "max 100000"
        assert allowed_cpus(shared_node, leaf) == {"1"}
        assert allowed_cpus(shared_node, shared) == {"0"}
        assert cpu_share(shared_node, leaf) > 0.5
        for path in (leaf, slice_of(whole)):
            assert counters(shared_node.cgroup(path, "cpu.stat")).get("nr_throttled", 0) == 0

    def test_a_cpu_that_is_taken_is_refused(self, shared_node: Node) -> None:
        whole = {"cpu": "1", "memory": "16Mi"}
        shared_node.apply("first", pod("first", container(limits=whole)))
        first = leaf_of(shared_node.wait_phase("first", "Running"))
        shared_node.apply("second", pod("second", container(limits=whole)))
        second = shared_node.wait_phase("second", "Failed")
        assert second["status"]["reason"] == "OutOfcpu"
        assert allowed_cpus(shared_node, first) == {"1"}
