"""What became of the pods: their cgroups, processes, logs and events, found without the agent's code."""

import json
from collections.abc import Iterable
from typing import Any

from tests.integration.node import CGROUP_ROOT, Node

Pod = dict[str, Any]
Tree = dict[str, dict[str, str]]

KUBEPODS = "kubepods.slice"
SLICES = {
    "Guaranteed": KUBEPODS,
    "Burstable": f"{KUBEPODS}/kubepods-burstable.slice",
    "BestEffort": f"{KUBEPODS}/kubepods-besteffort.slice",
}
CONTAINER_ID = "nodeagent://"
# Every file that somebody can set a value in. The rest counts, or shows what follows from these.
VALUE_FILES = (
    *(
        "cpu.max",
        "cpu.max.burst",
        "cpu.weight",
        "cpu.idle",
        "cpuset.cpus",
        "cpuset.mems",
        "cpuset.cpus.partition",
    ),
    *("memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group"),
    *("io.weight", "io.max", "pids.max", "hugetlb.2MB.max", "cgroup.freeze", "cgroup.subtree_control"),
)


def slice_of(pod: Pod) -> str:
    """The pod's cgroup, relative to the root: kubelet's names, '-' of a UID written as '_'."""
    parent = SLICES[pod["status"]["qosClass"]]
    prefix = parent.rpartition("/")[2].removesuffix(".slice")
    return f"{parent}/{prefix}-pod{pod['metadata']['uid'].replace('-', '_')}.slice"


def status_of(pod: Pod, name: str = "c") -> dict[str, Any]:
    """The status of one container, init containers included."""
    status = pod["status"]
    found = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    return next((each for each in found if each["name"] == name), {})


def leaf_of(pod: Pod, name: str = "c") -> str:
    """The cgroup of a container's latest attempt."""
    identifier = status_of(pod, name)["containerID"].removeprefix(CONTAINER_ID)
    return f"{slice_of(pod)}/nodeagent-{identifier}.scope"


def read_tree(node: Node, files: Iterable[str] = VALUE_FILES) -> Tree:
    """Every cgroup from kubepods down: path -> file -> text. What a level lacks is absent."""
    included = " ".join(f"--include={file}" for file in files)
    there = f"cd {CGROUP_ROOT} && [ -e {KUBEPODS} ] || exit 0"
    output = node.run(f"{there}; find {KUBEPODS} -type d; grep -rsH '' {included} {KUBEPODS}; true")
    tree: Tree = {}
    for line in output.splitlines():
        path, separator, text = line.partition(":")
        if not separator:
            tree[path] = {}
            continue
        directory, _, file = path.rpartition("/")
        values = tree.setdefault(directory, {})
        values[file] = f"{values[file]}\n{text}" if file in values else text
    return tree


def processes(node: Node) -> dict[str, list[int]]:
    """The PIDs in every container's leaf, by its path."""
    tree = read_tree(node, ["cgroup.procs"])
    leaves = {path: values for path, values in tree.items() if path.endswith(".scope")}
    return {path: sorted(map(int, leaf.get("cgroup.procs", "").split())) for path, leaf in leaves.items()}


def processes_of(node: Node, pod: Pod) -> dict[str, list[int]]:
    """The PIDs of one pod's containers, by leaf."""
    return {path: found for path, found in processes(node).items() if path.startswith(slice_of(pod))}


def allowed_cpus(node: Node, leaf: str) -> set[str]:
    """On which CPUs the kernel lets the processes of a leaf run, as they themselves see it."""
    look = "grep Cpus_allowed_list /proc/$pid/status"
    lines = node.run(f"for pid in $(cat {CGROUP_ROOT}/{leaf}/cgroup.procs); do {look}; done").splitlines()
    return {line.split()[1] for line in lines}


def events(node: Node, reason: str, about: str = "") -> list[dict[str, Any]]:
    """The events of one reason, of one object if it is named."""
    found = json.loads(node.get("/api/v1/events"))["items"]
    return [
        each for each in found if each["reason"] == reason and about in ("", each["involvedObject"]["name"])
    ]


def log_path(pod: Pod, name: str = "c", attempt: int = 0) -> str:
    meta = pod["metadata"]
    return f"/var/log/pods/{meta['namespace']}_{meta['name']}_{meta['uid']}/{name}/{attempt}.log"


def output_of(node: Node, pod: Pod, name: str = "c", attempt: int = 0) -> list[str]:
    """The lines that a container wrote, without what the log format puts before each."""
    text = node.run(f"cat {log_path(pod, name, attempt)} 2>/dev/null; true")
    return [line.split(" ", 3)[3] for line in text.splitlines()]


def node_status(node: Node) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(node.get("/api/v1/nodes"))["items"][0]["status"]
    return status


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    """One condition of a pod's or of the node's status."""
    return next((each for each in status.get("conditions", ()) if each["type"] == kind), {})


def memory_total_bytes(node: Node) -> int:
    return 1024 * int(node.run("awk '/^MemTotal/ {print $2}' /proc/meminfo"))


def kernel_kills(node: Node) -> int:
    """How often the kernel's OOM killer acted since the machine booted."""
    return int(node.run("awk '/^oom_kill / {print $2}' /proc/vmstat"))
