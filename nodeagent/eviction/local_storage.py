"""Pods that use more local storage than their own limits allow: each goes, whatever the node has left."""

from dataclasses import dataclass
from enum import StrEnum

from nodeagent.api.pod import Pod
from nodeagent.api.quantity import BINARY_SI, ZERO, Quantity
from nodeagent.api.resources import EPHEMERAL_STORAGE, amount, pod_limits
from nodeagent.eviction.messages import (
    Message,
    container_over_storage_limit,
    empty_dir_over_limit,
    pod_over_storage_limit,
)
from nodeagent.stats.summary import FsStats, PodStats


class StorageLimit(StrEnum):
    """Which limit was exceeded, by the name that the metric of evictions gives it."""

    EMPTY_DIR = "emptydirfs.limit"
    POD = "ephemeralpodfs.limit"
    CONTAINER = "ephemeralcontainerfs.limit"


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that a pod exceeds."""

    limit: StorageLimit
    message: Message


def has_storage_limits(pod: Pod) -> bool:
    """Tell whether a pod's disk usage must be measured at all."""
    return any(_limited_volumes(pod)) or EPHEMERAL_STORAGE in pod_limits(pod)


def find_excess(pod: Pod, stats: PodStats, *, dedicated_imagefs: bool) -> Excess | None:
    """Return the first limit that a pod exceeds: of an emptyDir, of the pod, of a container."""
    return (
        _empty_dir_excess(pod, stats)
        or _pod_excess(pod, stats)
        or _container_excess(pod, stats, dedicated_imagefs)
    )


def _empty_dir_excess(pod: Pod, stats: PodStats) -> Excess | None:
    used = {volume.name: volume.used_bytes for volume in stats.volumes if volume.used_bytes is not None}
    for name, limit in _limited_volumes(pod):
        if name in used and Quantity.of(used[name]) > limit:
            return Excess(StorageLimit.EMPTY_DIR, empty_dir_over_limit(name, limit))
    return None


def _pod_excess(pod: Pod, stats: PodStats) -> Excess | None:
    limit = pod_limits(pod).get(EPHEMERAL_STORAGE)
    if limit is None or _used(stats.ephemeral_storage) <= limit:
        return None
    return Excess(StorageLimit.POD, pod_over_storage_limit(limit))


def _container_excess(pod: Pod, stats: PodStats, dedicated_imagefs: bool) -> Excess | None:
    limits = {
        container.name: amount(container.resources.limits, EPHEMERAL_STORAGE)
        for container in (*pod.spec.init_containers, *pod.spec.containers)
    }
    for container in stats.containers:
        limit = limits.get(container.name, ZERO)
        used = _used(container.logs)
        if not dedicated_imagefs:
            used += _used(container.rootfs)
        if not limit.is_zero and used > limit:
            return Excess(StorageLimit.CONTAINER, container_over_storage_limit(container.name, limit))
    return None


def _limited_volumes(pod: Pod) -> list[tuple[str, Quantity]]:
    return [
        (volume.name, volume.empty_dir.size_limit)
        for volume in pod.spec.volumes
        if volume.empty_dir is not None
        and volume.empty_dir.size_limit is not None
        and volume.empty_dir.size_limit.sign > 0
    ]


def _used(figures: FsStats | None) -> Quantity:
    return Quantity.of((figures.used_bytes or 0) if figures is not None else 0, BINARY_SI)
