"""The amounts that kubelet computes for a cgroup, before they are spelled as files."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from nodeagent.api.pod import Container, Pod
from nodeagent.api.qos import QOSClass, is_critical, qos_class
from nodeagent.api.quantity import Quantity, ResourceList
from nodeagent.api.resources import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    add_to,
    amount,
    is_restartable_init,
    pod_level_limits,
    pod_limits,
    pod_requests,
)
from nodeagent.cgroup.conversions import MIN_SHARES, milli_to_quota_usec, milli_to_shares
from nodeagent.cgroup.settings import CgroupSettings

UNLIMITED = -1
PIDS = "pid"


@dataclass(frozen=True, slots=True)
class Limits:
    """One cgroup's amounts; None is left at the kernel's default. A quota of -1 is unlimited, of 0 none.

    `unified` holds files that need no conversion.
    """

    cpu_shares: int | None = None
    cpu_quota_usec: int | None = None
    cpu_period_usec: int | None = None
    memory_bytes: int | None = None
    pids: int | None = None
    hugepages_bytes: Mapping[int, int] = field(default_factory=dict)
    unified: Mapping[str, str] = field(default_factory=dict)


def limits_of(resources: ResourceList) -> Limits:
    """Return the amounts of a plain resource list: node allocatable, a reserved cgroup."""
    return Limits(
        cpu_shares=milli_to_shares(resources[CPU].milli_value()) if CPU in resources else None,
        memory_bytes=resources[MEMORY].value() if MEMORY in resources else None,
        pids=resources[PIDS].value() if PIDS in resources else None,
        hugepages_bytes=hugepages_bytes(resources),
    )


def reserved_limits(reserved: ResourceList, settings: CgroupSettings, compressible_only: bool) -> Limits:
    """Return the amounts of the cgroup that a reservation is enforced on."""
    enforced = (CPU,) if compressible_only else (CPU, MEMORY, PIDS)
    limits = limits_of({name: reserved[name] for name in enforced if name in reserved})
    if settings.memory_qos and limits.memory_bytes is not None:
        return replace(limits, unified={"memory.min": str(limits.memory_bytes)})
    return limits


def limits_of_pod(pod: Pod, settings: CgroupSettings, exclusive_cpus: bool = False) -> Limits:
    """Return the amounts of a pod's slice. A limit that not every container has does not bound the pod."""
    qos = qos_class(pod)
    requests, limits = pod_requests(pod), pod_limits(pod)
    unified = {}
    request = amount(requests, MEMORY).value()
    if settings.memory_qos and settings.memory_reservation and request > 0:
        unified[_protection(qos)] = str(request)
    if qos is QOSClass.BEST_EFFORT:
        bounded: frozenset[str] = frozenset()
        shares = MIN_SHARES
    else:
        bounded = frozenset((CPU, MEMORY)) if qos is QOSClass.GUARANTEED else _declared_by_all(pod)
        shares = milli_to_shares(amount(requests, CPU).milli_value())
    quota = milli_to_quota_usec(amount(limits, CPU).milli_value(), settings.cpu_period_usec)
    return Limits(
        cpu_shares=shares,
        cpu_quota_usec=None if CPU not in bounded else _quota(quota, settings, exclusive_cpus),
        cpu_period_usec=settings.cpu_period_usec if CPU in bounded else None,
        memory_bytes=amount(limits, MEMORY).value() if MEMORY in bounded else None,
        pids=settings.pod_pids_limit if settings.pod_pids_limit > 0 else None,
        hugepages_bytes=hugepages_bytes(requests),
        unified=unified,
    )


@dataclass(frozen=True, slots=True)
class TierLimits:
    """The amounts that follow from which pods there are: of all pods, and of the two lower classes."""

    kubepods: Limits
    burstable: Limits
    best_effort: Limits


def tier_limits(pods: Iterable[Pod], settings: CgroupSettings) -> TierLimits:
    """Return what the QoS levels get, from the pods that are active."""
    memory = dict.fromkeys(QOSClass, 0)
    burstable_cpu_milli = 0
    for pod in pods:
        qos, requests = qos_class(pod), pod_requests(pod)
        memory[qos] += amount(requests, MEMORY).value()
        if qos is QOSClass.BURSTABLE:
            burstable_cpu_milli += amount(requests, CPU).milli_value()
    kubepods: dict[str, str] = {}
    burstable: dict[str, str] = {}
    if settings.memory_qos:
        kept = memory if settings.memory_reservation else dict.fromkeys(QOSClass, 0)
        kubepods["memory.min"] = str(kept[QOSClass.GUARANTEED] + kept[QOSClass.BURSTABLE])
        burstable["memory.low"] = str(kept[QOSClass.BURSTABLE])
    burstable_bytes, best_effort_bytes = _left_to_lower_classes(memory, settings)
    return TierLimits(
        Limits(unified=kubepods),
        Limits(milli_to_shares(burstable_cpu_milli), memory_bytes=burstable_bytes, unified=burstable),
        Limits(MIN_SHARES, memory_bytes=best_effort_bytes),
    )


def _left_to_lower_classes(
    memory: Mapping[QOSClass, int], settings: CgroupSettings
) -> tuple[int | None, int | None]:
    """Return memory limits of Burstable and BestEffort under QOSReserved, which none has otherwise."""
    percent, allocatable = settings.qos_reserved_memory_percent, settings.allocatable_memory_bytes
    if percent is None or allocatable == 0:
        return None, None
    burstable = allocatable - memory[QOSClass.GUARANTEED] * percent // 100
    best_effort = burstable - memory[QOSClass.BURSTABLE] * percent // 100
    # kubelet writes negative limits here when pods request more than there is; nothing is left, so 0.
    return max(burstable, 0), max(best_effort, 0)


def limits_of_container(
    pod: Pod, container: Container, settings: CgroupSettings, exclusive_cpus: bool = False
) -> Limits:
    """Return the amounts of one container. Where it has no limit of its own, the pod-level one counts."""
    own = container.resources
    limits = pod_level_limits(pod) | {name: limit for name, limit in own.limits.items() if not limit.is_zero}
    return _runtime_limits(
        own.requests.get(CPU),
        limits,
        settings,
        exclusive_cpus,
        hugepages={size: total for size, total in hugepages_bytes(limits).items() if total},
        unified=_memory_qos(pod, container, settings) | swap_values(pod, container, settings),
    )


def limits_of_sandbox(pod: Pod, settings: CgroupSettings, exclusive_cpus: bool = False) -> Limits:
    """Return what a CRI runtime is told about the pod as a whole."""
    requests, limits = pod_requests(pod, overhead=False), pod_limits(pod, overhead=False)
    return _runtime_limits(requests.get(CPU), limits, settings, exclusive_cpus)


def limits_of_overhead(pod: Pod, settings: CgroupSettings) -> Limits:
    """Return what a CRI runtime is told about the pod's overhead, which exclusive CPUs do not touch."""
    overhead = pod.spec.overhead
    return _runtime_limits(overhead.get(CPU), overhead, settings, exclusive_cpus=False)


def has_limited_swap(pod: Pod, container: Container, settings: CgroupSettings) -> bool:
    """Tell whether a container gets a share of the swap; all others get none."""
    requests, limits = container.resources.requests, container.resources.limits
    request, limit = amount(requests, MEMORY), amount(limits, MEMORY)
    return (
        settings.limited_swap
        and settings.swap_controller
        and not is_critical(pod)
        and qos_class(pod) is QOSClass.BURSTABLE
        and not (request.is_zero and limit.is_zero)
        and request != limit
    )


def swap_share_bytes(request_bytes: int, memory_bytes: int, swap_bytes: int) -> int:
    """Return the part of the swap that a container's memory request is of the node's memory."""
    if memory_bytes == 0:
        raise ValueError("total node memory is 0")
    if request_bytes > memory_bytes:
        raise ValueError(f"container request {request_bytes} is larger than total node memory {memory_bytes}")
    return int(request_bytes / memory_bytes * swap_bytes)


def swap_values(pod: Pod, container: Container, settings: CgroupSettings) -> dict[str, str]:
    """Return memory.swap.max, where the kernel has it."""
    if not settings.swap_controller:
        return {}
    share = 0
    request = amount(container.resources.requests, MEMORY).value()
    # A request beyond the node, which admission refuses, gets no swap either.
    if has_limited_swap(pod, container, settings) and request <= settings.memory_capacity_bytes:
        share = swap_share_bytes(request, settings.memory_capacity_bytes, settings.swap_capacity_bytes)
    return {"memory.swap.max": str(share)}


def hugepages_bytes(resources: ResourceList) -> dict[int, int]:
    """Return the huge pages of a resource list: page size -> bytes."""
    return {
        Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX)).value(): total.value()
        for name, total in resources.items()
        if name.startswith(HUGEPAGES_PREFIX)
    }


def _runtime_limits(
    cpu_request: Quantity | None,
    limits: ResourceList,
    settings: CgroupSettings,
    exclusive_cpus: bool,
    hugepages: Mapping[int, int] | None = None,
    unified: Mapping[str, str] | None = None,
) -> Limits:
    cpu_limit = amount(limits, CPU).milli_value()
    period = settings.cpu_period_usec if settings.cpu_quota else 0
    quota = milli_to_quota_usec(cpu_limit, period) if settings.cpu_quota else 0
    group_kill = {} if settings.single_process_oom_kill else {"memory.oom.group": "1"}
    return Limits(
        cpu_shares=milli_to_shares(cpu_limit if cpu_request is None else cpu_request.milli_value()),
        cpu_quota_usec=UNLIMITED if exclusive_cpus and settings.cpu_quota else quota,
        cpu_period_usec=period,
        memory_bytes=amount(limits, MEMORY).value(),
        hugepages_bytes=hugepages or {},
        unified={**group_kill, **(unified or {})},
    )


def _memory_qos(pod: Pod, container: Container, settings: CgroupSettings) -> dict[str, str]:
    if not settings.memory_qos:
        return {}
    request = amount(container.resources.requests, MEMORY).value()
    limit = amount(container.resources.limits, MEMORY).value()
    if settings.memory_reservation and request > 0:
        values = {_protection(qos_class(pod)): str(request)}
    else:
        values = {"memory.min": "0", "memory.low": "0"}
    if request != limit:
        bound = limit or settings.allocatable_memory_bytes
        throttled = math.floor(request + (bound - request) * settings.memory_throttling_factor)
        high = throttled // settings.page_size_bytes * settings.page_size_bytes
        if high > request:
            values["memory.high"] = str(high)
    return values


def _protection(qos: QOSClass) -> str:
    return "memory.min" if qos is QOSClass.GUARANTEED else "memory.low"


def _quota(quota_usec: int, settings: CgroupSettings, exclusive_cpus: bool) -> int:
    return quota_usec if settings.cpu_quota and not exclusive_cpus else UNLIMITED


def _declared_by_all(pod: Pod) -> frozenset[str]:
    """Return which of cpu and memory every container limits, or the pod itself."""
    lists: list[ResourceList] = [container.resources.limits for container in pod.spec.containers]
    lists.extend(_cumulative_init_limits(pod.spec.init_containers))
    of_pod = pod_level_limits(pod)
    return frozenset(
        name
        for name in (CPU, MEMORY)
        if not amount(of_pod, name).is_zero or all(not amount(limits, name).is_zero for limits in lists)
    )


def _cumulative_init_limits(init_containers: Iterable[Container]) -> list[ResourceList]:
    """Return each init container's limits with those of the sidecars before it, which are up by then."""
    sidecars: dict[str, Quantity] = {}
    found: list[ResourceList] = []
    for container in init_containers:
        beside = dict(sidecars)
        add_to(beside, container.resources.limits)
        if is_restartable_init(container):
            sidecars = beside
        found.append(beside)
    return found
