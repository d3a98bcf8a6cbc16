"""The tree is the one that a real kubelet made for the same pods on the same machine, value by value."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.integration.node import Node
from tests.integration.observed import (
    KUBEPODS,
    SLICES,
    VALUE_FILES,
    Pod,
    Tree,
    allowed_cpus,
    leaf_of,
    memory_total_bytes,
    processes,
    read_tree,
    slice_of,
)
from tests.integration.workload import Manifest, container, pod

pytestmark = pytest.mark.shape("kubelet")

RECORDED = json.loads((Path(__file__).parents[1] / "golden/data/live_tree_kubelet.json").read_text())
RECORDED_TREE: dict[str, dict[str, Any]] = RECORDED["tree"]
CONTROLLERS = "cgroup.subtree_control"
STATE_FILE = "/var/lib/nodeagent/cpu_manager_state"
CPUS = {"g2": "1-2", "b1": "0,3", "b2": "0,3", "b3": "0,3", "be": "0,3"}

# The recorded pods, by what kubelet called their slices.
RECORDED_UIDS = {
    "g2": "0203abd20b73be4bba0d09c62b3711bf",
    "b1": "66cf9f0799b074cb7428c3761456dca7",
    "b2": "e1bc1ab78d9d8f332c645603a7df7202",
    "b3": "cd9eaab18e1ec2f955f00219215b86e5",
    "be": "fe054ec4dad2b2509e0630d2fba62ed5",
}
# Containers by their oom_score_adj in the record, where the sandboxes have -998.
RECORDED_CONTAINERS = {
    ("g2", "c"): "-997",
    ("b1", "c"): "990",
    ("b2", "c"): "999",
    ("b2", "d"): "983",
    ("be", "c"): "1000",
}
# runc 1.1 wrote 1 CPU as 39; today's runtimes write 100 (2 CPUs 174, 250m 35, 100m 17).
WEIGHTS = {("g2", "c"): "174", ("b1", "c"): "35", ("b2", "c"): "17"}
# This container had not started yet when kubelet's tree was recorded: computed from its limits instead.
UNRECORDED = {
    "cpu.max": "1000 100000",
    "cpu.weight": "1",
    "memory.max": str(20 << 20),
    "cpuset.cpus": "0,3",
    "cpuset.cpus.effective": "0,3",
    "memory.swap.max": "0",
    "memory.oom.group": "1",
    "oom_score_adj": "999",
}


@pytest.fixture
def kubelet_config() -> dict[str, Any]:
    return {
        "cgroupDriver": "systemd",
        "cpuManagerPolicy": "static",
        "cpuManagerReconcilePeriod": "5s",
        "reservedSystemCPUs": "0",
        "podPidsLimit": 200,
        "evictionHard": {"memory.available": "300Mi"},
    }


def recorded_pods() -> dict[str, Manifest]:
    return {
        "g2": pod("g2", container(limits={"cpu": "2", "memory": "64Mi"})),
        "b1": pod(
            "b1",
            container(requests={"cpu": "250m", "memory": "32Mi"}, limits={"cpu": "500m", "memory": "128Mi"}),
        ),
        "b2": pod("b2", container(requests={"cpu": "100m"}), container(name="d", limits={"memory": "50Mi"})),
        "b3": pod(
            "b3", container(requests={"cpu": "1m", "memory": "1Mi"}, limits={"cpu": "2m", "memory": "20Mi"})
        ),
        "be": pod("be"),
    }


@pytest.fixture
def pods(shared_node: Node) -> Iterator[dict[str, Pod]]:
    """The recorded pods, running."""
    manifests = recorded_pods()
    for name, manifest in manifests.items():
        shared_node.apply(name, manifest)
    yield {name: shared_node.wait_phase(name, "Running", timeout=180) for name in manifests}


def recorded_slice(name: str) -> str:
    return next(path for path in RECORDED_TREE if path.endswith(f"pod{RECORDED_UIDS[name]}.slice"))


def recorded_leaf(name: str, container_name: str) -> dict[str, str]:
    parent = recorded_slice(name)
    if name == "b3":
        leaf = next(values for path, values in RECORDED_TREE.items() if path.startswith(f"{parent}/"))
        return leaf | UNRECORDED
    score = RECORDED_CONTAINERS[name, container_name]
    for path, values in RECORDED_TREE.items():
        if path.startswith(f"{parent}/") and values["procs"][0]["oom_score_adj"] == score:
            weight = WEIGHTS.get((name, container_name), values["cpu.weight"])
            return {**values, "cpu.weight": weight, "oom_score_adj": score}
    raise AssertionError(f"{name}/{container_name} is not in the record")


def expected_tree(node: Node, pods: dict[str, Pod]) -> Tree:
    """The recorded tree with this machine's names and size, without sandboxes."""
    threads_max = node.read("/proc/sys/kernel/threads-max")
    # Nothing but a CPU is reserved; evictionHard is not taken off what is enforced.
    kubepods = {"memory.max": str(memory_total_bytes(node)), "pids.max": threads_max}
    tree = {path: RECORDED_TREE[path] for path in SLICES.values()}
    tree[KUBEPODS] = tree[KUBEPODS] | kubepods
    of_host = {"pids.max": node.run("systemctl show -P DefaultTasksMax").strip()}
    for name, running in pods.items():
        tree[slice_of(running)] = RECORDED_TREE[recorded_slice(name)]
        for status in running["status"]["containerStatuses"]:
            tree[leaf_of(running, status["name"])] = recorded_leaf(name, status["name"]) | of_host
    return tree


def test_every_value_at_every_level_is_kubelets(shared_node: Node, pods: dict[str, Pod]) -> None:
    expected = expected_tree(shared_node, pods)
    compared = [file for file in VALUE_FILES if file in RECORDED_TREE[KUBEPODS] and file != CONTROLLERS]
    compared.append("cpuset.cpus.effective")
    assert len(compared) >= 14
    wanted = {path: {file: values[file] for file in compared} for path, values in expected.items()}

    def differences() -> dict[str, tuple[str | None, str | None]]:
        """What is, and what should be, by file."""
        found, pairs = read_tree(shared_node, compared), {}
        for path in wanted | found:
            for file in compared:
                pair = found.get(path, {}).get(file), wanted.get(path, {}).get(file)
                if pair[0] != pair[1]:
                    pairs[f"{path}/{file}"] = pair
        return pairs

    # Those that share CPUs leave those that g2 got, even if they were here first.
    with suppress(AssertionError):
        shared_node.wait(lambda: not differences(), timeout=60)
    assert differences() == {}

    for path, values in read_tree(shared_node, [CONTROLLERS]).items():
        handed_on = set(values.get(CONTROLLERS, "").split())
        needed = set() if path.endswith(".scope") else {"cpuset", "cpu", "io", "memory", "hugetlb", "pids"}
        assert needed <= handed_on, path

    running = processes(shared_node)
    for name, each in pods.items():
        for status in each["status"]["containerStatuses"]:
            wanted_score = recorded_leaf(name, status["name"])["oom_score_adj"]
            (pid,) = running[leaf_of(each, status["name"])]
            assert shared_node.read(f"/proc/{pid}/oom_score_adj") == wanted_score, (name, status["name"])


def test_exclusive_cpus_belong_to_one_container(shared_node: Node, pods: dict[str, Pod]) -> None:
    """As the processes themselves see it, and as the state file remembers it."""

    def seen() -> bool:
        return all(allowed_cpus(shared_node, leaf_of(pods[name])) == {cpus} for name, cpus in CPUS.items())

    shared_node.wait(seen, what="CPUs 1-2 for g2 alone")
    state = json.loads(shared_node.read(STATE_FILE))
    uid = pods["g2"]["metadata"]["uid"]
    assert state.pop("checksum") == checksum(state)
    assert state == {"policyName": "static", "defaultCpuSet": "0,3", "entries": {uid: {"c": "1-2"}}}

    shared_node.delete("g2")
    shared_node.wait_gone("g2")
    everyone = {leaf_of(pods[name]) for name in ("b1", "b2", "b3", "be")}
    shared_node.wait(
        lambda: all(allowed_cpus(shared_node, leaf) == {"0-3"} for leaf in everyone),
        what="all CPUs for the others again",
    )
    state = json.loads(shared_node.read(STATE_FILE))
    assert state.pop("checksum") == checksum(state)
    assert state["defaultCpuSet"] == "0-3"
    assert not state.get("entries")


def test_the_recorded_checksum_is_computed_as_ours() -> None:
    state = dict(RECORDED["cpu_manager_state"])
    assert state.pop("checksum") == checksum(state)


def test_the_burstable_weight_follows_the_requests(shared_node: Node) -> None:
    burstable = f"{KUBEPODS}/kubepods-burstable.slice"

    def weight() -> str:
        return shared_node.cgroup(burstable, "cpu.weight")

    assert weight() == "1"
    shared_node.apply("one", pod("one", container(requests={"cpu": "500m"})))
    shared_node.wait_phase("one", "Running")
    assert weight() == "20"  # 512 shares
    shared_node.apply("two", pod("two", container(requests={"cpu": "1500m"})))
    shared_node.wait_phase("two", "Running")
    assert weight() == "79"  # 2048 shares
    shared_node.delete("one")
    shared_node.wait_gone("one")
    shared_node.wait(lambda: weight() == "59", timeout=30, what="1536 shares")


def checksum(state: dict[str, Any]) -> int:
    """FNV-1a over the text that kubelet hashes: its Go structure, printed."""
    entries = " ".join(
        f"{uid}:map[{' '.join(f'{name}:{cpus}' for name, cpus in sorted(containers.items()))}]"
        for uid, containers in sorted(state.get("entries", {}).items())
    )
    text = (
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){state['policyName']} "
        f"DefaultCPUSet:(string){state['defaultCpuSet']} "
        f"Entries:(map[string]map[string]string)map[{entries}] Checksum:(checksum.Checksum)0}}"
    )
    result = 0x811C9DC5
    for byte in text.encode():
        result = (result ^ byte) * 0x01000193 & 0xFFFFFFFF
    return result
