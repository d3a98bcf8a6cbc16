"""Who gets which CPUs and memory nodes, as /proc says it, on machines with several NUMA nodes."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.node import CGROUP_ROOT, Node
from tests.integration.observed import KUBEPODS, allowed_cpus, events, leaf_of
from tests.integration.workload import container, pod

# CPUs 0 to 7 of numa2 are two sockets of two cores of two threads, siblings next to each other.
DROP_IN = "/etc/systemd/system/nodeagent.service.d"
WHOLE_CORE = {"cpu": "2", "memory": "64Mi"}


def cpus_of(node: Node, name: str) -> str:
    """The CPUs that the first process of a running pod may use, in the kernel's spelling."""
    return status_line(node, name, "Cpus_allowed_list")


def status_line(node: Node, name: str, field: str) -> str:
    leaf = leaf_of(node.wait_phase(name, "Running"))
    return node.run(f"grep {field} /proc/$(head -n1 {CGROUP_ROOT}/{leaf}/cgroup.procs)/status").split()[1]


@pytest.mark.shape("numa2")
class TestTwoNodes:
    """The static policy with whole cores, each a partition that host processes leave."""

    @pytest.fixture
    def kubelet_config(self) -> dict[str, Any]:
        return {
            "cpuManagerPolicy": "static",
            "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
            "topologyManagerPolicy": "single-numa-node",
            "reservedSystemCPUs": "0-1",
            "cpuManagerReconcilePeriod": "2s",
        }

    @pytest.fixture
    def agent_config(self) -> dict[str, Any]:
        return {"exclusiveCpuPartition": "isolated"}

    @pytest.fixture
    def privileged(self, node: Node) -> Iterator[Node]:
        """The kernel makes such partitions for CAP_SYS_ADMIN only, which the unit does without."""
        node.run(f"mkdir -p {DROP_IN}")
        node.write(f"{DROP_IN}/admin.conf", "[Service]\nCapabilityBoundingSet=CAP_SYS_ADMIN\n")
        node.run("systemctl daemon-reload")
        node.restart()
        yield node
        node.run(f"rm -r {DROP_IN} && systemctl daemon-reload")

    def test_exclusive_cpus_leave_everybody_elses_and_follow_the_machine(
        self, privileged: Node, kubelet_config: dict[str, Any]
    ) -> None:
        node = privileged
        node.apply("shared", pod("shared"))
        node.apply("own", pod("own", container(limits=WHOLE_CORE)))
        assert cpus_of(node, "own") == "2-3"
        # without the memory manager nobody is bound to a node
        assert status_line(node, "own", "Mems_allowed_list") == "0-1"
        leaf = leaf_of(node.wait_phase("own", "Running"))

        # host processes leave them as well
        def isolated() -> bool:
            return node.cgroup(leaf, "cpuset.cpus.partition") == "isolated"

        node.wait(isolated, what="the leaf a partition of its own")
        assert node.run("cat /sys/fs/cgroup/cpuset.cpus.isolated").strip() == "2-3"
        assert node.run("grep Cpus_allowed_list /proc/1/status").split()[1] == "0-1,4-7"
        node.wait(lambda: cpus_of(node, "shared") == "0-1,4-7", what="the shared pool without them")

        # the kind follows the setting while the container runs, and is kept
        def balanced() -> bool:
            return node.cgroup(leaf, "cpuset.cpus.partition") == "root"

        node.configure(kubelet_config, {"exclusiveCpuPartition": "root"})
        node.restart()
        node.wait(balanced, what="the leaf a partition with load balancing")
        node.run(f"echo member >{CGROUP_ROOT}/{leaf}/cpuset.cpus.partition")
        node.wait(balanced, what="the partition back")
        assert node.run("grep Cpus_allowed_list /proc/1/status").split()[1] == "0-1,4-7"

        # a foreign write is taken back
        shared = leaf_of(node.wait_phase("shared", "Running"))
        node.run(f"echo 4 >{CGROUP_ROOT}/{shared}/cpuset.cpus")
        node.wait(lambda: allowed_cpus(node, shared) == {"0-1,4-7"}, what="the foreign write taken back")

        # a core that goes away is left, and taken up again when it returns
        offline = "for cpu in 2 3; do echo {} >/sys/devices/system/cpu/cpu$cpu/online; done"
        node.run("echo 0 >/sys/devices/system/cpu/cpu3/online")
        node.wait(lambda: cpus_of(node, "own") == "2", what="the pod on the thread that is left")
        assert events(node, "CPUsChanged", "node")
        node.run(offline.format(1), check=False)
        node.wait(lambda: cpus_of(node, "own") == "2-3", what="the pod on its core again")
        assert allowed_cpus(node, shared) == {"0-1,4-7"}

        # nothing is left of the partition when the pod goes
        node.delete("own")
        node.wait_gone("own")
        node.wait(lambda: cpus_of(node, "shared") == "0-7", what="the shared pool whole again")
        node.wait(
            lambda: not node.cgroup(KUBEPODS, "cpuset.cpus.exclusive").strip(), what="no exclusive CPUs left"
        )
        assert node.run("grep Cpus_allowed_list /proc/1/status").split()[1] == "0-7"


@pytest.mark.shape("numa4")
class TestFourNodes:
    """Memory from the node that the CPUs are on."""

    @pytest.fixture
    def kubelet_config(self) -> dict[str, Any]:
        return {
            "cpuManagerPolicy": "static",
            "memoryManagerPolicy": "Static",
            "topologyManagerPolicy": "single-numa-node",
            "reservedSystemCPUs": "0",
            "systemReserved": {"memory": "100Mi"},
            "evictionHard": {"memory.available": "100Mi"},
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "200Mi"}}],
        }

    def test_cpus_and_memory_come_from_one_node(self, node: Node) -> None:
        node.apply("own", pod("own", container(limits={"cpu": "2", "memory": "128Mi"})))
        cpus, mems = cpus_of(node, "own"), status_line(node, "own", "Mems_allowed_list")
        siblings = node.run(f"cat /sys/devices/system/node/node{mems}/cpulist").strip()
        assert cpus == siblings
        node.apply("wide", pod("wide", container(limits={"cpu": "3", "memory": "64Mi"})))
        refused = node.wait_phase("wide", "Failed")
        assert refused["status"]["reason"] == "TopologyAffinityError"
        node.restart()
        assert (cpus_of(node, "own"), status_line(node, "own", "Mems_allowed_list")) == (cpus, mems)
