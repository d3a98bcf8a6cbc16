"""What an operator is told: why, with the numbers, over restarts; about state files; and what is refused."""

import json
import re
from typing import Any

import pytest

from tests.integration.node import CONFIG, Node
from tests.integration.observed import events, leaf_of, processes, status_of
from tests.integration.workload import container, pod, shell

pytestmark = pytest.mark.shape("small")

STATE_FILE = "/var/lib/nodeagent/cpu_manager_state"
GROWING = """
import time
held = []
while True:
    held.append(b"x" * (4 << 20))
    time.sleep(0.1)
"""


@pytest.fixture
def kubelet_config() -> dict[str, Any]:
    return {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
        "cpuManagerReconcilePeriod": "2s",
        "evictionHard": {"memory.available": "200Mi"},
        "evictionPressureTransitionPeriod": "10s",
    }


@pytest.fixture
def node(shared_node: Node) -> Node:
    return shared_node


def own(name: str) -> Any:
    """A pod that gets a CPU to itself."""
    return pod(name, container(limits={"cpu": "1", "memory": "32Mi"}))


def explained(node: Node, what: str) -> str:
    return node.run(f"nodeagent explain {what}")


class TestPods:
    def test_a_pod_is_explained_after_a_restart_too(self, node: Node) -> None:
        node.apply("own", own("own"))
        node.apply("huge", pod("huge", container(requests={"cpu": "50"})))
        greedy = shell("sleep 2; exec tail /dev/zero", limits={"memory": "16Mi"})
        node.apply("greedy", pod("greedy", greedy))
        running = node.wait_phase("own", "Running")
        node.wait_phase("huge", "Failed")
        node.wait(
            lambda: status_of(node.pod("greedy") or {"status": {}}).get("restartCount", 0) > 0,
            what="a restart of the pod that asks for too much memory",
        )
        name = running["metadata"]["name"]
        before = explained(node, f"pod/{name}")
        assert "container c: got the CPUs 1 for itself, 1 of the 1 that were free" in before
        assert "container c runs on the CPUs 1" in before
        assert re.search(r"cpu 1000m fits into the 1000m left of 1000m", before)
        leaf = before[before.index(f"container c ({leaf_of(running)})") :]
        assert "cpu: 1000m at most, by cpuset.cpus of itself" in leaf
        # What the kernel itself holds for a pod is the pod's: there a little less is left.
        assert re.search(r"memory: 32Mi at most, by memory\.max of its(elf| pod), of which 3[\d.]+Mi", leaf)

        huge = explained(node, f"pod/{name.replace('own', 'huge')}")
        assert "OutOfcpu: Node didn't have enough resource: cpu, requested: 50000" in huge
        assert re.search(r"cpu 50000m is more than the \d+m left of 1000m, by \d+m", huge)

        oom = explained(node, f"pod/{name.replace('own', 'greedy')}")
        assert re.search(r"container c ended last .* with exit code 137 \(OOMKilled\)", oom)
        assert "the kernel has killed processes of this pod for want of memory" in oom

        node.restart()
        after = explained(node, f"pod/{name}")
        admitted = re.compile(r"admitted \S+")
        assert admitted.findall(after) == admitted.findall(before)
        assert "pods: 110, less 0 kept from pods, leaves 110" in explained(node, "node")

    def test_an_eviction_is_explained_after_a_restart_too(self, node: Node) -> None:
        node.apply("own", own("own"))
        innocent = node.wait_phase("own", "Running")["metadata"]["name"]
        node.apply("hog", pod("hog", container("python3", "-c", GROWING), restartPolicy="Never"))
        hog = node.wait_phase("hog", "Failed", timeout=120)
        assert hog["status"]["reason"] == "Evicted"
        node.restart()
        (decision, *_) = json.loads(explained(node, "eviction -o json"))["evictions"]
        record = decision["eviction"]
        assert (record["uid"], record["cause"]) == (hog["metadata"]["uid"], "memory.available")
        assert record["message"] == hog["status"]["message"]
        pressure = record["pressure"]
        assert pressure["threshold"] == "200Mi"
        assert 0 < pressure["available"] < 200 << 20
        assert pressure["ratePerSecond"] > 0
        assert [each["name"] for each in record["candidates"]] == [hog["metadata"]["name"], innocent]
        text = explained(node, f"eviction {decision['id']}")
        assert re.search(r"dead +\S+, \d+ ms after it began", text)
        assert f"default/{innocent}: within its request" in text
        assert text.strip().splitlines()[1:] == [
            line.strip(" ") and line[2:]
            for line in explained(node, f"pod/{hog['metadata']['name']}")
            .partition("\nEvictions\n")[2]
            .splitlines()[1:]
        ]


class TestStateFiles:
    def test_a_file_is_put_aside_under_running_pods(self, node: Node) -> None:
        node.apply("own", own("own"))
        running = node.wait_phase("own", "Running")
        before, cpus = processes(node), node.cgroup(leaf_of(running), "cpuset.cpus")
        assert cpus == "1"
        shown = node.run("nodeagent state show cpu")
        assert re.search(rf"default/{running['metadata']['name']} +c +1", shown)
        verify = f"nodeagent state verify cpu --config {CONFIG}"
        assert "suits this machine" in node.run(verify)

        text = node.read(STATE_FILE)
        said = node.run("nodeagent state reset cpu")
        aside = re.match(rf"{STATE_FILE} is now (\S+Z)\.", said)
        assert aside and node.read(aside[1]) == text
        node.wait(lambda: node.exists(STATE_FILE), 30, "a new state file")
        assert node.read(STATE_FILE) == text

        node.stop()
        node.write(STATE_FILE, '{"policyName":"static","defaultCpuSet":"0","checksum":1}')
        node.start()
        said = node.run(f"{verify}; true")
        assert f"{STATE_FILE}: does not suit: " in said and "mend: 'nodeagent state reset cpu'" in said
        assert any(STATE_FILE in each["message"] for each in events(node, "StateFileProblem"))
        node.run("nodeagent state reset cpu")
        node.wait(lambda: events(node, "StateFileRenewed"), 30, "the agent's word that it writes again")
        assert node.read(STATE_FILE) == text
        assert "suits this machine" in node.run(verify)
        assert processes(node) == before
        assert node.cgroup(leaf_of(running), "cpuset.cpus") == cpus
        node.run(f"rm {STATE_FILE}.*Z")


class TestRefusals:
    def refusal(self, node: Node, command: str) -> str:
        """What the agent says before it touches anything."""
        return node.run(f"{command} 2>&1; echo exit $?")

    def test_swap_and_missing_rights_are_refused_in_a_sentence(self, node: Node) -> None:
        agent = f"nodeagent run --config {CONFIG}"
        node.run("dd if=/dev/zero of=/swapfile bs=1M count=16 status=none && chmod 600 /swapfile")
        node.run("/usr/sbin/mkswap -q /swapfile && /usr/sbin/swapon /swapfile")
        try:
            said = self.refusal(node, agent)
        finally:
            node.run("/usr/sbin/swapoff /swapfile && rm /swapfile")
        assert "nodeagent: this host cannot be a node: swap is on: /swapfile (/proc/swaps)" in said
        assert "running with swap on is not supported, please disable swap or set failSwapOn: false" in said
        assert "'nodeagent doctor'" in said and said.endswith("exit 1\n")
        said = self.refusal(node, f"setpriv --reuid=65534 --clear-groups {agent}")
        assert "running as user 65534" in said and "needs root" in said and said.endswith("exit 1\n")
