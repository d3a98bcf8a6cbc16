"""Every cgroup's files and their texts. Nothing else computes a value that is written.

A level is always given whole, with the kernel's own defaults where nothing is asked for: so a limit
that is taken back is undone, and a foreign write is seen, by the same comparison.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nodeagent.api.pod import Container, Pod
from nodeagent.api.qos import QOSClass
from nodeagent.api.quantity import ResourceList
from nodeagent.cgroup.conversions import DEFAULT_PERIOD_USEC, container_weight, linear_weight
from nodeagent.cgroup.limits import (
    Limits,
    limits_of,
    limits_of_container,
    limits_of_pod,
    reserved_limits,
    tier_limits,
)
from nodeagent.cgroup.settings import CgroupSettings
from nodeagent.hardware.cpuset import CpuSet

Values = Mapping[str, str]
"""File name -> text, in an order in which they can be written."""

UNBOUNDED_HUGEPAGES = 1 << 62
# Beyond these the kernel refuses a value, wraps it or reads it back as "max"; no machine has as much.
LARGEST_PIDS = 1 << 22
LARGEST_BYTES = 1 << 62
LARGEST_QUOTA_USEC = (1 << 44) - 1
_MAX = "max"
_HUGEPAGE_UNITS = {"GB": 1 << 30, "MB": 1 << 20, "KB": 1 << 10}
_UNPROTECTED = {"memory.min": "0", "memory.low": "0", "memory.high": _MAX}


def node_values(allocatable: ResourceList, pods: Iterable[Pod], settings: CgroupSettings) -> Values:
    """Return the values of kubepods: node allocatable, and what the active pods need protected.

    Never a cpu.max: reserved CPU is kept by weight, as kubelet keeps it. Huge pages are bounded by their
    pool alone, also as with kubelet, whose QoS manager lifts the limit it wrote at start.
    """
    protected = tier_limits(pods, settings).kubepods.unified
    limits = replace(limits_of(allocatable), unified=protected)
    return _level(limits) | _unbounded_hugepages(settings)


def qos_values(qos: QOSClass, pods: Iterable[Pod], settings: CgroupSettings) -> Values:
    """Return the values of the Burstable or BestEffort slice, which follow the sum of requests."""
    tiers = tier_limits(pods, settings)
    limits = {QOSClass.BURSTABLE: tiers.burstable, QOSClass.BEST_EFFORT: tiers.best_effort}[qos]
    return _level(limits) | _unbounded_hugepages(settings)


def pod_values(pod: Pod, settings: CgroupSettings, *, exclusive_cpus: bool = False) -> Values:
    """Return the values of a pod's slice; `exclusive_cpus` tells whether any of its containers has some."""
    limits = limits_of_pod(pod, settings, exclusive_cpus)
    hugepages = {_hugetlb(size): str(limits.hugepages_bytes.get(size, 0)) for size in settings.hugepage_sizes}
    return _level(limits) | hugepages


def container_values(
    pod: Pod,
    container: Container,
    settings: CgroupSettings,
    *,
    cpus: CpuSet | None = None,
    mems: CpuSet | None = None,
    exclusive: bool = False,
) -> Values:
    """Return the values of a container's leaf; without `cpus` or `mems` that file is left alone.

    pids.max is the pod's business: the leaf keeps what the host gives every scope (DefaultTasksMax=).
    """
    limits = limits_of_container(pod, container, settings, exclusive)
    values: dict[str, str] = {}
    if mems:
        values["cpuset.mems"] = str(mems)
    if cpus:
        values["cpuset.cpus"] = str(cpus)
    values["cpu.weight"] = str(container_weight(limits.cpu_shares or 0))
    values["cpu.max"] = _cpu_max(limits)
    # Swap and group kill go before memory.max, which may act the moment it is written.
    values |= {**_UNPROTECTED, "memory.oom.group": "0", **_unified(limits)}
    values["memory.max"] = _or_max(limits.memory_bytes or None, LARGEST_BYTES)
    if limits_of_pod(pod, settings).hugepages_bytes:
        values |= {
            _hugetlb(size): str(limits.hugepages_bytes.get(size, 0)) for size in settings.hugepage_sizes
        }
    return values


def reserved_values(
    reserved: ResourceList, settings: CgroupSettings, *, compressible_only: bool = False
) -> Values:
    """Return the values of a cgroup that a reservation is enforced on: only those, the cgroup is not ours."""
    limits = reserved_limits(reserved, settings, compressible_only)
    values: dict[str, str] = {}
    if limits.cpu_shares is not None:
        values["cpu.weight"] = str(linear_weight(limits.cpu_shares))
    values |= _unified(limits)
    if limits.memory_bytes is not None:
        values["memory.max"] = str(limits.memory_bytes)
    if limits.pids is not None:
        values["pids.max"] = _or_max(limits.pids, LARGEST_PIDS)
    return values


def hugepage_size_bytes(file: str) -> int:
    """Return the page size that a hugetlb file is about."""
    size = file.split(".")[1]
    return int(size[:-2]) * _HUGEPAGE_UNITS[size[-2:]]


def _level(limits: Limits) -> dict[str, str]:
    weight = {} if limits.cpu_shares is None else {"cpu.weight": str(linear_weight(limits.cpu_shares))}
    return {
        **weight,
        "cpu.max": _cpu_max(limits),
        **_UNPROTECTED,
        **_unified(limits),
        "memory.max": _or_max(limits.memory_bytes, LARGEST_BYTES),
        "pids.max": _or_max(limits.pids, LARGEST_PIDS),
    }


def _cpu_max(limits: Limits) -> str:
    quota, period = limits.cpu_quota_usec or 0, limits.cpu_period_usec or 0
    bound = _or_max(quota if quota > 0 else None, LARGEST_QUOTA_USEC)
    return f"{bound} {period or DEFAULT_PERIOD_USEC}"


def _unified(limits: Limits) -> dict[str, str]:
    return {file: _or_max(int(text), LARGEST_BYTES) for file, text in limits.unified.items()}


def _or_max(amount: int | None, largest: int) -> str:
    return _MAX if amount is None or amount > largest else str(amount)


def _unbounded_hugepages(settings: CgroupSettings) -> dict[str, str]:
    return {_hugetlb(size): str(UNBOUNDED_HUGEPAGES) for size in settings.hugepage_sizes}


def _hugetlb(page_size_bytes: int) -> str:
    """Return the kernel's file name: hugetlb.2MB.max."""
    for suffix, unit in _HUGEPAGE_UNITS.items():
        if page_size_bytes >= unit:
            return f"hugetlb.{page_size_bytes // unit}{suffix}.max"
    raise ValueError(f"no huge page has {page_size_bytes} bytes")
