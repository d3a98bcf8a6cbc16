"""A node that runs short ends the pod to blame, before the kernel ends anything, and spares the others."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.node import Node
from tests.integration.observed import (
    Pod,
    condition,
    events,
    kernel_kills,
    node_status,
    processes_of,
    status_of,
)
from tests.integration.workload import Manifest, container, of_each_class, pod, shell

pytestmark = pytest.mark.shape("small")

# Once it has found this file, a hog is content with what it has.
SATED = "/run/sated"
GROWING = f"""
import os, time
held = []
while not os.path.exists({SATED!r}):
    held.append(b"x" * (4 << 20))
    time.sleep(%s)
time.sleep(1e6)
"""
TRANSITION_SECONDS = 15
PIDS_LEFT = 150
THREADS_MAX = "/proc/sys/kernel/threads-max"
CUE = "/run/cue"
MEMORY_MESSAGE = re.compile(
    r"The node was low on resource: memory\. Threshold quantity: 200Mi, available: (\d+)Ki\. "
    r"Container c was using (\d+)Ki, request is 0, has larger consumption of memory\. "
)


def memory_hog(name: str, pause_seconds: float, **spec: Any) -> Manifest:
    return pod(name, container("python3", "-c", GROWING % pause_seconds), **spec)


def pressure(node: Node, kind: str) -> str:
    return str(condition(node_status(node), kind).get("status"))


def wait_evicted(node: Node, name: str) -> Pod:
    return node.wait_phase(name, "Failed", timeout=120)


class Innocents:
    """The pods that have nothing to do with it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        manifests = of_each_class()
        del manifests["besteffort"]
        for name, manifest in manifests.items():
            node.apply(name, manifest)
        self._pods = [node.wait_phase(name, "Running") for name in manifests]
        self._before = self._processes()
        self._kills = kernel_kills(node)

    def _processes(self) -> list[dict[str, list[int]]]:
        return [processes_of(self._node, each) for each in self._pods]

    def are_unharmed(self) -> None:
        assert kernel_kills(self._node) == self._kills
        assert self._processes() == self._before
        for name in ("guaranteed", "burstable"):
            assert status_of(self._node.wait_phase(name, "Running"))["restartCount"] == 0


class TestMemory:
    @pytest.fixture
    def kubelet_config(self) -> dict[str, Any]:
        return {
            "evictionHard": {"memory.available": "200Mi"},
            "evictionPressureTransitionPeriod": f"{TRANSITION_SECONDS}s",
        }

    @pytest.fixture
    def node(self, shared_node: Node) -> Iterator[Node]:
        shared_node.run(f"rm -f {SATED}")
        shared_node.wait(lambda: pressure(shared_node, "MemoryPressure") == "False", what="no pressure yet")
        yield shared_node
        # The next test's pods would be refused.
        shared_node.run(f"touch {SATED}")

    def test_the_hog_goes_the_innocents_stay(self, node: Node) -> None:
        innocents = Innocents(node)
        node.apply("hog", memory_hog("hog", 0.05, restartPolicy="Never"))
        hog = wait_evicted(node, "hog")
        assert pressure(node, "MemoryPressure") == "True"
        name = hog["metadata"]["name"]
        assert hog["status"]["reason"] == "Evicted"
        message = MEMORY_MESSAGE.fullmatch(hog["status"]["message"])
        assert message, hog["status"]["message"]
        available, used = int(message[1]) << 10, int(message[2]) << 10
        # Noticed when it was crossed, not when the memory was gone.
        assert 100 << 20 < available < 200 << 20
        assert used > 50 << 20
        assert condition(hog["status"], "DisruptionTarget")["reason"] == "TerminationByKubelet"
        assert [each["message"] for each in events(node, "Evicted", name)] == [hog["status"]["message"]]
        node.wait(lambda: not any(processes_of(node, hog).values()), what="its processes gone")
        innocents.are_unharmed()

        # Under pressure nobody comes who asks for nothing; who says what it needs may.
        node.apply("late", pod("late"))
        node.apply("modest", pod("modest", container(requests={"memory": "1Mi"})))
        late = node.wait_phase("late", "Failed")["status"]
        assert (late["reason"], late["message"]) == (
            "Evicted",
            "Pod was rejected: The node had condition: [MemoryPressure]. ",
        )
        node.wait_phase("modest", "Running")
        node.wait(lambda: pressure(node, "MemoryPressure") == "False", 120, "the end of the pressure")
        node.wait_phase("late", "Running", timeout=120)
        assert wait_evicted(node, "hog")["metadata"]["uid"] == hog["metadata"]["uid"]
        innocents.are_unharmed()

    def test_it_comes_back_when_the_pressure_is_over(self, node: Node) -> None:
        node.apply("hog", memory_hog("hog", 0.05))
        evicted = wait_evicted(node, "hog")
        assert evicted["status"]["reason"] == "Evicted"
        node.run(f"touch {SATED}")
        back = node.wait_phase("hog", "Running", timeout=180)
        assert pressure(node, "MemoryPressure") == "False"
        assert not back["status"].get("reason")
        assert status_of(back)["restartCount"] == 0

    def test_as_fast_as_it_can(self, node: Node) -> None:
        """The kernel's OOM killer stays idle although nothing slows the hog down."""
        innocents = Innocents(node)
        node.apply("hog", memory_hog("hog", 0.0, restartPolicy="Never"))
        assert wait_evicted(node, "hog")["status"]["reason"] == "Evicted"
        innocents.are_unharmed()

    def test_the_counts_are_in_the_metrics(self, node: Node) -> None:
        node.apply("hog", memory_hog("hog", 0.05, restartPolicy="Never"))
        before, dead_before = counted(node), counted(node, DEAD)
        wait_evicted(node, "hog")
        assert counted(node) == before + 1
        node.wait(lambda: counted(node, DEAD) == dead_before + 1, what="the time to its end in the metrics")
        assert re.search(r'^nodeagent_eviction_headroom{.*"memory.available".*} ', node.get("/metrics"), re.M)

    def test_who_exceeds_its_own_storage_limit_goes_alone(self, node: Node) -> None:
        innocents = Innocents(node)
        script = "head -c 3000000 /dev/zero | tr '\\0' x | fold -w 99; sleep infinity"
        limits = {"ephemeral-storage": "1Mi"}
        node.apply("writer", pod("writer", shell(script, limits=limits), restartPolicy="Never"))
        status = wait_evicted(node, "writer")["status"]
        assert (status["reason"], status["message"]) == (
            "Evicted",
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        )
        assert pressure(node, "DiskPressure") == "False"
        innocents.are_unharmed()


DEAD = "nodeagent_eviction_crossing_to_dead_seconds_count"


def counted(node: Node, name: str = "kubelet_evictions") -> float:
    found = re.findall(rf'^{name}\{{eviction_signal="memory.available"\}} (\S+)$', node.get("/metrics"), re.M)
    return float(found[0]) if found else 0.0


class TestProcesses:
    @pytest.fixture
    def kubelet_config(self) -> dict[str, Any]:
        return {
            "evictionHard": {"pid.available": str(PIDS_LEFT)},
            "evictionPressureTransitionPeriod": f"{TRANSITION_SECONDS}s",
        }

    @pytest.fixture
    def threads_max(self, shared_node: Node) -> Iterator[str]:
        """The kernel's setting, put back afterwards."""
        before = shared_node.read(THREADS_MAX)
        yield THREADS_MAX
        shared_node.run(f"echo {before} >{THREADS_MAX}")

    def test_a_fork_bomb_without_a_limit_goes(self, shared_node: Node, threads_max: str) -> None:
        innocents = Innocents(shared_node)
        shared_node.run(f"rm -f {CUE}; mkfifo {CUE}")
        script = f"read _ <{CUE}; while :; do sleep 1000 & done"
        shared_node.apply("bomb", pod("bomb", container("bash", "-c", script), restartPolicy="Never"))
        shared_node.wait_phase("bomb", "Running")
        # Only now is the machine made small: systemd gives every scope a seventh of what it can hold.
        running = int(shared_node.read("/proc/loadavg").split()[3].split("/")[1])
        shared_node.run(f"echo {running + 500} >{threads_max}; echo >{CUE}")
        evicted = wait_evicted(shared_node, "bomb")
        assert evicted["status"]["reason"] == "Evicted"
        message = re.fullmatch(
            rf"The node was low on resource: pids\. Threshold quantity: {PIDS_LEFT}, available: (\d+)\. ",
            evicted["status"]["message"],
        )
        assert message, evicted["status"]["message"]
        assert 0 < int(message[1]) < PIDS_LEFT
        assert pressure(shared_node, "PIDPressure") == "True"
        shared_node.wait(
            lambda: not any(processes_of(shared_node, evicted).values()), what="hundreds of processes gone"
        )
        innocents.are_unharmed()
        shared_node.wait(
            lambda: pressure(shared_node, "PIDPressure") == "False", 120, "the end of the pressure"
        )
