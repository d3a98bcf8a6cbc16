"""Our values against the tree that a real kubelet made (live_tree_kubelet.json), file by file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeagent.api.decode import from_builtins
from nodeagent.api.pod import Pod
from nodeagent.api.qos import QOSClass, oom_score_adj, qos_class
from nodeagent.api.quantity import Quantity
from nodeagent.cgroup.conversions import container_weight, linear_weight, milli_to_shares
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cgroup.reconcile import same
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.cgroup.values import Values, container_values, node_values, pod_values, qos_values
from nodeagent.config import Config, load_config
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.node import NodeInfo
from nodeagent.resources.allocatable import NodeResources, node_allocatable, node_capacity

FILE = "live_tree_kubelet.json"
MEMORY_BYTES = 2983832 * 1024
CONFIG = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
podPidsLimit: 200
evictionHard: {memory.available: 300Mi}
"""
# Whose slices they were: the classes and the limits leave no choice.
POD_OF_UID = {
    "0203abd20b73be4bba0d09c62b3711bf": "g2",
    "66cf9f0799b074cb7428c3761456dca7": "b1",
    "e1bc1ab78d9d8f332c645603a7df7202": "b2",
    "cd9eaab18e1ec2f955f00219215b86e5": "b3",
    "fe054ec4dad2b2509e0630d2fba62ed5": "be",
}
SANDBOX_OOM_SCORE_ADJ = "-998"
# What the kernel gives a new cgroup, for the files that nobody wrote.
UNTOUCHED = {
    "cpuset.cpus": "",
    "cpuset.mems": "",
    "memory.swap.max": "max",
    "memory.oom.group": "0",
    "hugetlb.2MB.max": "max",
}
NO_VALUE = {"cpuset.cpus.effective", "cgroup.subtree_control", "io.weight", "procs"}

Document = dict[str, Any]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return load_config(path)


@pytest.fixture
def pods(document: Document) -> dict[str, Pod]:
    return {name: pod_of(name, text) for name, text in document["pods"].items()}


@pytest.fixture
def node(document: Document, config: Config) -> NodeResources:
    info = node_info(document)
    return NodeResources(
        capacity={**node_capacity(info, config.kubelet.max_pods), "pid": Quantity.of(info.pids)},
        system_reserved={name: Quantity.parse(q) for name, q in config.kubelet.system_reserved.items()},
        eviction_hard=config.kubelet.eviction_hard,
    )


@pytest.fixture
def settings(document: Document, config: Config, node: NodeResources) -> CgroupSettings:
    return CgroupSettings.from_config(
        config,
        node_info(document),
        allocatable_memory_bytes=node_allocatable(node.capacity, node.reservation)["memory"].value(),
        swap_controller=True,
    )


def node_info(document: Document) -> NodeInfo:
    pids = min(document["threads_max"], document["pid_max"])
    return NodeInfo(4000, MEMORY_BYTES, pids, hugepages_bytes={2 << 20: 0})


def pod_of(name: str, text: str) -> Pod:
    """Read "{requests: ...}" as the resources of one container c, "c: {...}, d: {...}" as those of two."""
    resources = yaml.safe_load(text if text.startswith("{") else "{" + text + "}")
    by_container = resources if "c" in resources else {"c": resources}
    for each in by_container.values():
        # The API server's defaulting: a limit without a request is the request too.
        if "limits" in each:
            each["requests"] = {**each["limits"], **each.get("requests", {})}
    containers = [
        {"name": container, "image": "x", "resources": each} for container, each in by_container.items()
    ]
    return from_builtins({"metadata": {"name": name, "uid": name}, "spec": {"containers": containers}}, Pod)


@pytest.mark.golden(FILE, "tree")
def test_cgroup(
    case: str, document: Document, pods: dict[str, Pod], node: NodeResources, settings: CgroupSettings
) -> None:
    layout, live = CgroupLayout(), dict(document["tree"][case])
    uid = layout.pod_uid_of(case)
    if uid is None:
        values = upper_values(case, layout, pods, node, settings)
        untouched = {**UNTOUCHED}
    elif layout.pod(uid, qos_class(pods[POD_OF_UID[uid]])) == case:
        pod = pods[POD_OF_UID[uid]]
        exclusive = uid in document["cpu_manager_state"]["entries"]
        values, untouched = pod_values(pod, settings, exclusive_cpus=exclusive), {**UNTOUCHED}
    else:
        pod = pods[POD_OF_UID[uid]]
        [process] = live["procs"]
        if process["oom_score_adj"] == SANDBOX_OOM_SCORE_ADJ:
            return  # A pod sandbox: our pods have no pause container.
        values = leaf_values(pod, process, uid, document, settings)
        check_weight_formulas(values.pop("cpu.weight"), live.pop("cpu.weight"), pod, process)
        # systemd's DefaultTasksMax=15% of what the kernel allows; the pod's slice has the pod's own limit.
        untouched = {**UNTOUCHED, "pids.max": str(document["threads_max"] * 15 // 100)}
    expected = {**untouched, **values}
    assert {file: live[file] for file in expected if not same(file, live[file], expected[file])} == {}
    assert set(live) - set(expected) <= NO_VALUE | {"cpu.weight"}


def upper_values(
    path: str, layout: CgroupLayout, pods: dict[str, Pod], node: NodeResources, settings: CgroupSettings
) -> Values:
    if path == layout.kubepods:
        return node_values(node.kubepods, pods.values(), settings)
    [qos] = [each for each in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT) if layout.qos(each) == path]
    return qos_values(qos, pods.values(), settings)


def leaf_values(
    pod: Pod, process: Document, uid: str, document: Document, settings: CgroupSettings
) -> dict[str, str]:
    container = container_of(pod, process)
    state = document["cpu_manager_state"]
    own = state["entries"].get(uid, {}).get(container)
    return dict(
        container_values(
            pod,
            next(each for each in pod.spec.containers if each.name == container),
            settings,
            cpus=CpuSet.parse(own or state["defaultCpuSet"]),
            exclusive=own is not None,
        )
    )


def container_of(pod: Pod, process: Document) -> str:
    """Tell the containers of a pod apart by their oom_score_adj."""
    [name] = [
        each.name
        for each in pod.spec.containers
        if str(oom_score_adj(pod, each, MEMORY_BYTES)) == process["oom_score_adj"]
    ]
    return name


def check_weight_formulas(ours: str, kubelets: str, pod: Pod, process: Document) -> None:
    """runc 1.1.15 wrote the linear weight; ours is today's. Both follow from the same request."""
    name = container_of(pod, process)
    [container] = [each for each in pod.spec.containers if each.name == name]
    request = container.resources.requests.get("cpu", Quantity.of(0))
    shares = milli_to_shares(request.milli_value())
    assert (ours, kubelets) == (str(container_weight(shares)), str(linear_weight(shares)))
