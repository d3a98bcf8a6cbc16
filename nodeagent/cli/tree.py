"""`nodeagent tree`: the live cgroups of the pods, with values, usage and the limit that binds."""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nodeagent.api.pod import Pod
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cli.client import AgentClient, AgentUnreachable
from nodeagent.cli.common import CommandError, add_output_option, print_data, warn
from nodeagent.cli.get import add_server_options
from nodeagent.cli.objects import fetch_pods
from nodeagent.cli.settings import add_config_option, checked_config
from nodeagent.cli.table import columns, size
from nodeagent.stats.live_tree import LiveCgroup, bound_place, read_machine, read_tree, with_rates

HELP = "show the live cgroup tree: values, usage, and which limit binds"
EXAMPLES = """
  nodeagent tree
  nodeagent tree -o wide          with memory protection, swap and throttling
  nodeagent tree -o json
  nodeagent tree --interval 5     CPU use measured over 5 seconds

BOUND BY names, for cpu, memory and pids, the closest cgroup whose limit would be met first: the cgroup itself
(self), one above it, or the machine. Pods are named with the agent's help; without it their UIDs are shown.
"""
UNSET = "-"


def configure(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_output_option(parser, "wide", "json", "yaml")
    add_server_options(parser)
    parser.add_argument(
        "--proc-root",
        type=Path,
        default=Path("/proc"),
        metavar="DIR",
        help="proc mount; default: %(default)s",
    )
    parser.add_argument(
        "--interval", type=float, default=0.5, metavar="SECONDS", help="measure CPU use so long; 0: do not"
    )


def run(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.interval <= 3600:
        raise CommandError(f"--interval {arguments.interval:g}: expected 0 to 3600 seconds")
    kubelet = checked_config(arguments.config).kubelet
    layout = CgroupLayout(kubelet.cgroup_root)
    tree = open_tree(arguments.cgroup_root)
    levels = measured(tree, layout, arguments.proc_root, arguments.interval)
    if not levels:
        raise CommandError(
            f"there is no {layout.kubepods} below {arguments.cgroup_root}: no agent has run on this host"
        )
    names = pod_names(known_pods(arguments.server), layout)
    if arguments.output in ("json", "yaml"):
        print_data([_as_data(level, names, layout) for level in levels], arguments.output)
    else:
        print(tree_table(levels, names, layout, wide=arguments.output == "wide"))
    return 0


def open_tree(root: Path) -> CgroupTree:
    """The cgroups below a mount; raises CommandError."""
    try:
        return CgroupTree(root)
    except OSError as error:
        raise CommandError(f"{root}: {error.strerror}; is cgroup v2 mounted there?") from error


def measured(tree: CgroupTree, layout: CgroupLayout, proc_root: Path, seconds: float) -> list[LiveCgroup]:
    """The tree with the rates of so many seconds."""
    machine = read_machine(tree, proc_root)
    levels = read_tree(tree, layout, machine)
    if not levels or not seconds:
        return levels
    started = time.monotonic()
    time.sleep(seconds)
    return with_rates(levels, read_tree(tree, layout, machine), time.monotonic() - started)


def known_pods(server: str) -> Sequence[Pod]:
    """The agent's pods; none, and a warning, where it does not answer."""
    try:
        return [pod.value for pod in fetch_pods(AgentClient(server))]
    except AgentUnreachable as error:
        warn([f"{error}; pods are shown by UID"])
        return ()


def pod_names(pods: Sequence[Pod], layout: CgroupLayout) -> dict[str, str]:
    """Names by pod UID and by container id."""
    names = {}
    for pod in pods:
        names[pod.metadata.uid] = f"{pod.metadata.namespace}/{pod.metadata.name}"
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            if status.container_id:
                names[status.container_id.rpartition("//")[2]] = status.name
    return names


def tree_table(
    levels: Sequence[LiveCgroup], names: Mapping[str, str], layout: CgroupLayout, *, wide: bool = False
) -> str:
    """The tree as indented rows."""
    header = ["CGROUP", "CPU", "WEIGHT", "CPU MAX", "CPUS", "MEMORY", "MEMORY MAX", "PIDS", "PIDS MAX"]
    header += ["MIN", "LOW", "HIGH", "SWAP MAX", "OOM GROUP", "THROTTLED"] if wide else []
    depth = layout.kubepods.count("/")
    rows = []
    for level in levels:
        indent = "  " * (level.path.count("/") - depth)
        rows.append([indent + title(level, names, layout), *_cells(level, wide), _bound_by(level, layout)])
    return columns([*header, "BOUND BY"], rows)


def _cells(level: LiveCgroup, wide: bool) -> list[str]:
    values, usage = level.values, level.usage
    cells = [
        _cpu_use(level),
        values.get("cpu.weight", UNSET),
        values.get("cpu.max", UNSET),
        values.get("cpuset.cpus") or values.get("cpuset.cpus.effective") or UNSET,
        _bytes(usage.memory_bytes),
        _limit(values.get("memory.max")),
        UNSET if usage.pids is None else str(usage.pids),
        values.get("pids.max", UNSET),
    ]
    if wide:
        cells += [_limit(values.get(f"memory.{name}")) for name in ("min", "low", "high", "swap.max")]
        throttled = UNSET if usage.throttled_usec is None else f"{usage.throttled_usec / 1e6:.1f}s"
        cells += [values.get("memory.oom.group", UNSET), throttled]
    return cells


def _cpu_use(level: LiveCgroup) -> str:
    if level.cpu_milli is not None:
        return f"{level.cpu_milli}m"
    return UNSET if level.usage.cpu_usec is None else f"{level.usage.cpu_usec / 1e6:.1f}s"


def title(level: LiveCgroup, names: Mapping[str, str], layout: CgroupLayout) -> str:
    """The name of a cgroup's owner, as far as it is known."""
    own = level.path.rpartition("/")[2]
    if level.kind == "container":
        identifier = layout.container_id_of(level.path) or own
        return names.get(identifier, identifier[:13])
    if level.kind == "pod":
        uid = layout.pod_uid_of(level.path) or own
        return names.get(uid, f"pod {uid}")
    return own


def _bound_by(level: LiveCgroup, layout: CgroupLayout) -> str:
    words = (
        f"{resource}:{bound_place(level, bound, layout)}" for resource, bound in sorted(level.bounds.items())
    )
    return " ".join(words) or UNSET


def _limit(text: str | None) -> str:
    return size(int(text)) if text and text.isdigit() else text or UNSET


def _bytes(amount: int | None) -> str:
    return UNSET if amount is None else size(amount)


def _as_data(level: LiveCgroup, names: Mapping[str, str], layout: CgroupLayout) -> dict[str, Any]:
    data: dict[str, Any] = {"path": level.path, "kind": level.kind}
    key = layout.container_id_of(level.path) if level.kind == "container" else layout.pod_uid_of(level.path)
    if level.kind in ("pod", "container") and key is not None and key in names:
        data["name"] = names[key]
    used = level.usage
    usage = {
        "cpuMillicores": level.cpu_milli,
        "cpuUsec": used.cpu_usec,
        "throttledUsec": used.throttled_usec,
        "memoryBytes": used.memory_bytes,
        "pids": used.pids,
    }
    data["values"] = dict(level.values)
    data["usage"] = {name: value for name, value in usage.items() if value is not None}
    data["boundBy"] = {resource: asdict(bound) for resource, bound in sorted(level.bounds.items())}
    return data
