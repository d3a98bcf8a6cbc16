"""Exclusive CPUs as cpuset partitions, so that host processes leave them too: what to write, in which order.

Beyond kubelet, whose exclusivity is among pods only. A leaf becomes a remote partition (Linux 6.7): its CPUs
have to stand in `cpuset.cpus.exclusive` of the leaf and of every cgroup above it except the root.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet

PARTITION_FILE = "cpuset.cpus.partition"
EXCLUSIVE_FILE = "cpuset.cpus.exclusive"


HOW_TO_PERMIT = (
    "the agent needs CAP_SYS_ADMIN for it: systemctl edit nodeagent.service, [Service], "
    "CapabilityBoundingSet=CAP_SYS_ADMIN"
)


class Partition(StrEnum):
    """What a container's leaf is: a plain member, CPUs of its own, or those without load balancing too."""

    MEMBER = "member"
    ROOT = "root"
    ISOLATED = "isolated"


class Write(NamedTuple):
    """One value for one file of one cgroup."""

    path: str
    file: str
    value: str


def partition_writes(
    before: Mapping[str, CpuSet], after: Mapping[str, CpuSet], partition: Partition
) -> tuple[Write, ...]:
    """Return the writes that turn one set of partitions into another.

    Both map leaves (paths relative to the cgroup root) to their exclusive CPUs. What goes is taken down from
    the leaves up before what comes is built from the top down: no state in between is refused.
    """
    old, new = _levels(before), _levels(after)
    writes = []
    for leaf, cpus in before.items():
        if after.get(leaf) != cpus:
            writes += [Write(leaf, PARTITION_FILE, Partition.MEMBER), _exclusive(leaf, NO_CPUS)]
    for path in sorted(old, key=_depth, reverse=True):
        if kept := old[path] & new.get(path, NO_CPUS):
            if kept != old[path]:
                writes.append(_exclusive(path, kept))
        else:
            writes.append(_exclusive(path, NO_CPUS))
    for path in sorted(new, key=_depth):
        if new[path] != old.get(path, NO_CPUS) & new[path]:
            writes.append(_exclusive(path, new[path]))
    for leaf, cpus in after.items():
        if before.get(leaf) != cpus:
            writes += [_exclusive(leaf, cpus), Write(leaf, PARTITION_FILE, partition)]
    return tuple(writes)


def partition_problem(found: str, wanted: Partition) -> str:
    """Say why a partition is not in force; `found` is what its file reads. Empty where it is."""
    state, _, reason = found.strip().partition(" invalid")
    if state == wanted and not reason and " invalid" not in found:
        return ""
    if " invalid" in found:
        why = reason.strip(" ()") or "the kernel gives no reason"
        if "not permitted" in why:
            why += f"; {HOW_TO_PERMIT}"
        return f"the partition is not in force: {why}"
    return f"{PARTITION_FILE} reads {state!r}, expected {str(wanted)!r}"


def _levels(leaves: Mapping[str, CpuSet]) -> dict[str, CpuSet]:
    """Return what every cgroup above the leaves must have exclusively: what the leaves below it have."""
    levels: dict[str, CpuSet] = {}
    for leaf, cpus in leaves.items():
        parts = leaf.split("/")
        for depth in range(1, len(parts)):
            path = "/".join(parts[:depth])
            levels[path] = levels.get(path, NO_CPUS) | cpus
    return levels


def _exclusive(path: str, cpus: CpuSet) -> Write:
    """An empty value has to be a line, for a write of no bytes at all may not arrive."""
    return Write(path, EXCLUSIVE_FILE, str(cpus) or "\n")


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path
