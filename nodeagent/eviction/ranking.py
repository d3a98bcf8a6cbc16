"""Who is evicted first: kubelet's order, with the figures that it came from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeagent.api.pod import Pod, Volume
from nodeagent.api.qos import pod_priority
from nodeagent.api.quantity import ZERO, Quantity
from nodeagent.api.resources import (
    EPHEMERAL_STORAGE,
    MEMORY,
    aggregate_requests,
    amount,
    pod_level_limits,
    pod_level_requests,
)
from nodeagent.eviction.signals import RESOURCES, Resource, Signal
from nodeagent.stats.summary import FsStats, PodStats

StatsByUid = Mapping[str, PodStats]


@dataclass(frozen=True, slots=True)
class Filesystems:
    """How the node's disks are divided: images apart from the rest, and writable layers apart from images."""

    dedicated_imagefs: bool = False
    split_containerfs: bool = False


UNDIVIDED = Filesystems()
"""One filesystem for everything: a node without a container runtime that keeps images."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that could be evicted, with what decides its place."""

    pod: Pod
    stats: PodStats | None
    usage: int
    request: Quantity
    exceeds_request: bool
    priority: int


def rank(
    signal: Signal, pods: Iterable[Pod], stats: StatsByUid, filesystems: Filesystems
) -> tuple[Candidate, ...]:
    """Return the pods in the order in which they are to be evicted; equals stay as they came."""
    candidates = [_candidate(signal, pod, stats.get(pod.metadata.uid), filesystems) for pod in pods]
    if RESOURCES[signal] in (Resource.PIDS, Resource.IO):
        return tuple(sorted(candidates, key=_by_priority_first))
    return tuple(sorted(candidates, key=_by_excess_first))


def request_of(pod: Pod, resource: str) -> Quantity:
    """Return what a pod asks for; its overhead counts only beside a request."""
    if pod_level_requests(pod) or pod_level_limits(pod):
        request = amount(pod_level_requests(pod), resource)
    else:
        request = amount(aggregate_requests(pod), resource)
    return request if request.is_zero else request + amount(pod.spec.overhead, resource)


def memory_usage(stats: PodStats) -> int:
    """Return the pod's working set in bytes."""
    return (stats.memory.working_set_bytes or 0) if stats.memory is not None else 0


def process_count(stats: PodStats) -> int:
    """Return how many processes the pod has."""
    return (stats.process_stats.process_count or 0) if stats.process_stats is not None else 0


def io_stall(stats: PodStats) -> int:
    """Return the share of the last minute in which all tasks of the pod waited for a disk, in percent."""
    return int(stats.io.psi.full.avg60) if stats.io is not None and stats.io.psi is not None else 0


def _candidate(signal: Signal, pod: Pod, stats: PodStats | None, filesystems: Filesystems) -> Candidate:
    match RESOURCES[signal]:
        case Resource.MEMORY:
            usage, request = memory_usage(stats) if stats else 0, request_of(pod, MEMORY)
            exceeds = Quantity.of(usage) > request
        case Resource.PIDS:
            usage, request, exceeds = process_count(stats) if stats else 0, ZERO, False
        case Resource.IO:
            usage, request, exceeds = io_stall(stats) if stats else 0, ZERO, False
        case Resource.EPHEMERAL_STORAGE:
            usage, request = disk_usage(signal, pod, stats, filesystems), request_of(pod, EPHEMERAL_STORAGE)
            exceeds = Quantity.of(usage) > request
        case Resource.INODES:
            # There are no requests of inodes. The original still subtracts that of bytes in the last step.
            usage, request = disk_usage(signal, pod, stats, filesystems), request_of(pod, EPHEMERAL_STORAGE)
            exceeds = usage > 0
    return Candidate(pod, stats, usage, request, exceeds, pod_priority(pod))


def _by_excess_first(candidate: Candidate) -> tuple[bool, bool, int, int]:
    if candidate.stats is None:
        return (False, False, candidate.priority, 0)
    short_of_request = candidate.request - Quantity.of(candidate.usage)
    return (True, not candidate.exceeds_request, candidate.priority, short_of_request.nanos)


def _by_priority_first(candidate: Candidate) -> tuple[int, bool, int]:
    return (candidate.priority, candidate.stats is not None, -candidate.usage)


def disk_usage(signal: Signal, pod: Pod, stats: PodStats | None, filesystems: Filesystems) -> int:
    """Return the bytes or inodes that a pod uses of the filesystem that a signal watches."""
    if stats is None:
        return 0
    parts: list[FsStats | None] = []
    rootfs, logs_and_volumes = _counted(signal, filesystems)
    if rootfs:
        parts += [container.rootfs for container in stats.containers]
    if logs_and_volumes:
        parts += [container.logs for container in stats.containers]
        local = {volume.name for volume in pod.spec.volumes if _is_local(volume)}
        parts += [volume for volume in stats.volumes if volume.name in local]
    inodes = RESOURCES[signal] is Resource.INODES
    return sum((part.inodes_used if inodes else part.used_bytes) or 0 for part in parts if part is not None)


def _counted(signal: Signal, filesystems: Filesystems) -> tuple[bool, bool]:
    """Tell whether root filesystems, and whether logs and local volumes, lie on a signal's filesystem."""
    if not filesystems.dedicated_imagefs:
        return True, True
    of_images = signal in (Signal.IMAGEFS_AVAILABLE, Signal.IMAGEFS_INODES_FREE)
    if filesystems.split_containerfs:
        return not of_images, not of_images
    of_nodefs = signal in (Signal.NODEFS_AVAILABLE, Signal.NODEFS_INODES_FREE)
    return not of_nodefs, of_nodefs


def _is_local(volume: Volume) -> bool:
    if volume.empty_dir is not None:
        return volume.empty_dir.medium != "Memory"
    return any(source is not None for source in (volume.host_path, volume.config_map, volume.git_repo))
