"""Every decision of the resource managers tells in plain words, and as plain data, how it came about."""

import json
from pathlib import Path

from nodeagent.resources import explain
from nodeagent.resources.managers import ResourceManagers
from tests.unit.resource_nodes import machine, memory_settings, settings
from tests.unit.resource_pods import container, pod


def test_an_allocation_tells_where_its_cpus_and_memory_come_from(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), memory_settings(topology_manager_policy="restricted"), tmp_path)
    admission = managers.admit(pod("p", container("app", "3", "2Gi"), container("aside", "500m")), [])
    told = admission.explanation
    assert "container app: cpu fits NUMA node 0 or NUMA node 1 (1 wider set of nodes would do too)" in told
    assert "container app: placed on NUMA node 0" in told
    assert (
        "container app: got the CPUs 1,8-9 for itself, 3 of the 15 that were free: "
        "core 1 (1,9), CPUs of core 0 (8)"
    ) in told
    assert "container app: got 2147483648 bytes of memory on NUMA node 0" in told
    assert "container aside: shares CPUs with others, because 500m CPUs is no whole number of CPUs" in told


def test_a_pod_that_runs_already_keeps_what_it_has(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), memory_settings(), tmp_path)
    running = pod("p", container("app", "2", "1Gi"))
    managers.admit(running, [])
    assert managers.admit(running, [running]).explanation == (
        "container app: keeps its CPUs 1,9",
        "container app: keeps 1073741824 bytes of memory on NUMA node 0",
    )


def test_a_refusal_in_pod_scope_is_about_the_pod(tmp_path: Path) -> None:
    chosen = memory_settings(topology_manager_policy="single-numa-node", topology_manager_scope="pod")
    managers = ResourceManagers(machine(), chosen, tmp_path)
    refused = managers.admit(pod("p", container("one", "4", "1Gi"), container("two", "6", "1Gi")), [])
    told = refused.explanation
    assert told[0] == (
        "the pod was refused: TopologyAffinityError: Resources cannot be allocated with Topology locality"
    )
    assert "the pod: cpu fits NUMA nodes 0,1" in told
    assert (
        "the pod: policy single-numa-node admits only one NUMA node that every resource prefers, "
        "and there is none"
    ) in told
    assert any(sentence.startswith("the pod: 10 CPUs were asked for; 15 are free") for sentence in told)


def test_a_refusal_for_whole_cores_names_them(tmp_path: Path) -> None:
    options = {"full-pcpus-only": "true"}
    managers = ResourceManagers(machine(), settings(cpu_manager_policy_options=options), tmp_path)
    refused = managers.admit(pod("p", container("app", "3")), [])
    assert refused.reason == "SMTAlignmentError"
    assert refused.message == "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"
    assert "container app was refused: SMTAlignmentError" in " ".join(refused.explanation)


def test_a_record_is_plain_data(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), memory_settings(topology_manager_policy="restricted"), tmp_path)
    admission = managers.admit(pod("p", container("app", "2", "1Gi")), [])
    data = json.loads(json.dumps(explain.to_builtins(admission.record)))
    (app,) = data["containers"]
    assert app["affinity"] == {"numaNodes": [0], "preferred": True}
    cpus, memory = app["allocations"]
    assert (cpus["requested"], cpus["cpus"], cpus["affinity"]) == (2, "1,9", [0])
    assert memory["blocks"] == [{"nodes": [0], "kind": "memory", "size": 1073741824}]
