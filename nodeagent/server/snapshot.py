"""What the dashboard draws, of one moment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from nodeagent.api.node import Node
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.eviction.pace import Headroom
from nodeagent.eviction.signals import is_counted
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Topology
from nodeagent.metrics.source import MeteredCgroup
from nodeagent.stats.live_tree import LiveCgroup, bound_place

SHARED, RESERVED, OFFLINE = "shared", "reserved", "offline"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a snapshot is made from. `owners` are the containers that have CPUs of their own, and reserved."""

    node: Node
    layout: CgroupLayout
    levels: Sequence[LiveCgroup]
    cgroups: Sequence[MeteredCgroup]
    topology: Topology
    owners: Mapping[str, CpuSet]
    newest_decision: int
    headrooms: Sequence[Headroom] = ()


def snapshot(parts: Parts) -> dict[str, Any]:
    """Return the page's data."""
    status = parts.node.status
    return {
        "node": parts.node.metadata.name,
        "conditions": [
            {"type": each.type, "status": each.status, "message": each.message or ""}
            for each in status.conditions
        ],
        "newestDecision": parts.newest_decision,
        "tree": list(_tree(parts)),
        "cpus": list(_cpus(parts.topology, parts.owners)),
        "headroom": [_gauge(each) for each in parts.headrooms],
    }


def _gauge(headroom: Headroom) -> dict[str, Any]:
    signal = headroom.threshold.signal
    return {
        "signal": str(signal),
        "hard": headroom.threshold.is_hard,
        "unit": "count" if is_counted(signal) else "bytes",
        "available": headroom.available,
        "left": headroom.left,
        "seconds": None if headroom.seconds == inf else headroom.seconds,
    }


def _tree(parts: Parts) -> Iterator[dict[str, Any]]:
    names = {each.path: _name(each) for each in parts.cgroups}
    top = parts.layout.kubepods.count("/")
    for level in parts.levels:
        usage = level.usage
        yield {
            "path": level.path,
            "kind": level.kind,
            "name": names.get(level.path) or level.path.rpartition("/")[2],
            "depth": level.path.count("/") - top,
            "weight": level.values.get("cpu.weight"),
            "cpus": level.values.get("cpuset.cpus") or level.values.get("cpuset.cpus.effective"),
            "used": {"cpu": level.cpu_milli, "memory": usage.memory_bytes, "pids": usage.pids},
            "throttled": level.throttled_share,
            "bounds": {
                resource: {**asdict(bound), "place": bound_place(level, bound, parts.layout)}
                for resource, bound in level.bounds.items()
            },
        }


def _name(cgroup: MeteredCgroup) -> str:
    if cgroup.container:
        return cgroup.container
    return f"{cgroup.namespace}/{cgroup.pod}" if cgroup.pod else ""


def _cpus(topology: Topology, owners: Mapping[str, CpuSet]) -> Iterator[dict[str, Any]]:
    """Every CPU with its place and its owner, in the order in which the machine is built."""
    owner_of = {cpu: owner for owner, cpus in owners.items() for cpu in cpus}
    for cpu in sorted(topology.cpus, key=lambda each: (each.socket, each.numa, each.core, each.cpu)):
        place = {"cpu": cpu.cpu, "socket": cpu.socket, "numa": cpu.numa, "core": cpu.core}
        yield {**place, "owner": owner_of.get(cpu.cpu, SHARED)}
    for number in topology.offline:
        yield {"cpu": number, "socket": None, "numa": None, "core": number, "owner": OFFLINE}
