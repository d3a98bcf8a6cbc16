"""What kubelet refuses about a whole configuration, in kubelet's words."""

import difflib
from collections.abc import Callable, Iterator
from typing import Any, Final

from nodeagent.api.duration import parse_duration, parse_nanoseconds
from nodeagent.api.errors import FieldError
from nodeagent.api.quantity import Quantity, QuantityError
from nodeagent.config.gates import KNOWN_GATES, enabled, locked_value
from nodeagent.config.schema import KubeletConfiguration
from nodeagent.config.setting import Fault, Section, quoted, rows
from nodeagent.config.validation_inert import inert_faults

INVALID_CONFIGURATION: Final = "invalid configuration"
Rule = Callable[[KubeletConfiguration], Iterator[Fault]]

RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_ENFORCEMENTS: Final = (
    "pods",
    "system-reserved",
    "system-reserved-compressible",
    "kube-reserved",
    "kube-reserved-compressible",
    "none",
)
_TOPOLOGY_POLICIES: Final = ("none", "best-effort", "restricted", "single-numa-node")
_LARGEST_ID_RANGE: Final = 1 << 32


def check_rows(section: Section) -> Iterator[FieldError]:
    """Faults of single fields, by the checks in the table."""
    for row in rows(type(section)):
        if row.setting.check is not None:
            value = value_at(section, row.attributes)
            message = row.setting.check(row.name, value)
            if message is not None:
                yield FieldError(row.name, INVALID_CONFIGURATION, value, message)


def check_rules(kubelet: KubeletConfiguration) -> Iterator[FieldError]:
    """Faults of fields together."""
    by_name = {row.name: row for row in rows(KubeletConfiguration)}
    for rule in _RULES:
        for name, message in rule(kubelet):
            value = value_at(kubelet, by_name[name].attributes) if name in by_name else None
            yield FieldError(name, INVALID_CONFIGURATION, value, message)


def value_at(section: Section, attributes: tuple[str, ...]) -> Any:
    """The value at the end of a chain of attributes; None where a section on the way is not set."""
    value: Any = section
    for attribute in attributes:
        value = getattr(value, attribute, None)
    return value


def _feature_gates(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    for name, value in kubelet.feature_gates.items():
        if name not in KNOWN_GATES:
            near = difflib.get_close_matches(name, KNOWN_GATES, n=1)
            yield (
                "featureGates",
                f"unrecognized feature gate: {name}" + (f" (did you mean {near[0]}?)" if near else ""),
            )
        elif locked_value(name) is (not value):
            words = str(value).lower(), str(not value).lower()
            yield (
                "featureGates",
                f"cannot set feature gate {name} to {words[0]}, feature is locked to {words[1]}",
            )


def _cgroups(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    if kubelet.system_cgroups and not kubelet.cgroup_root:
        yield (
            "systemCgroups",
            "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified",
        )
    if not kubelet.cgroups_per_qos:
        yield (
            "cgroupsPerQOS",
            "cgroupsPerQOS (--cgroups-per-qos) must be true: the tree of cgroups is what this agent is",
        )
    period = kubelet.cpu_cfs_quota_period
    flagged = f"cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{period}}}"
    if not enabled(kubelet.feature_gates, "CustomCPUCFSQuotaPeriod") and period != "100ms":
        yield "cpuCFSQuotaPeriod", f"{flagged} requires feature gate CustomCPUCFSQuotaPeriod"
    elif not 0.001 <= parse_duration(period) <= 1:
        yield "cpuCFSQuotaPeriod", f"{flagged} must be between 1ms and 1sec, inclusive"


def _memory(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    behavior = kubelet.memory_swap.swap_behavior
    if behavior not in ("", "LimitedSwap", "NoSwap"):
        yield (
            "memorySwap.swapBehavior",
            f'memorySwap.swapBehavior {quoted(behavior)} must be one of: "", "LimitedSwap" or "NoSwap"',
        )
    factor = kubelet.memory_throttling_factor
    if not 0 < factor <= 1:
        yield (
            "memoryThrottlingFactor",
            f"memoryThrottlingFactor {factor:g} must be greater than 0 and less than or equal to 1.0",
        )
    policy = kubelet.memory_reservation_policy
    if policy == "TieredReservation" and not enabled(kubelet.feature_gates, "MemoryQoS"):
        yield (
            "memoryReservationPolicy",
            f"memoryReservationPolicy {quoted(policy)} requires MemoryQoS feature gate to be enabled",
        )


def _enforcement(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    name, flag = "enforceNodeAllocatable", "enforceNodeAllocatable (--enforce-node-allocatable)"
    asked = kubelet.enforce_node_allocatable
    for kind in ("system-reserved", "kube-reserved"):
        if {kind, f"{kind}-compressible"} <= set(asked):
            yield name, f'both "{kind}" and "{kind}-compressible" cannot be specified together in {flag}'
    for index, value in enumerate(asked):
        kind = value.removesuffix("-compressible")
        if value in asked[:index]:
            yield name, f"duplicated enforcements {quoted(value)} in {flag}"
        elif value not in _ENFORCEMENTS:
            known = ", ".join(map(quoted, _ENFORCEMENTS[:-1]))
            yield name, f'option {quoted(value)} specified for {flag}. Valid options are {known} or "none"'
        elif value == "none" and len(asked) > 1:
            yield name, f'{flag} may not contain additional enforcements when "none" is specified'
        elif kind == "system-reserved" and not kubelet.system_reserved_cgroup:
            yield (
                "systemReservedCgroup",
                _needs_cgroup("systemReservedCgroup (--system-reserved-cgroup)", kind, flag),
            )
        elif kind == "kube-reserved" and not kubelet.kube_reserved_cgroup:
            yield (
                "kubeReservedCgroup",
                _needs_cgroup("kubeReservedCgroup (--kube-reserved-cgroup)", kind, flag),
            )


def _needs_cgroup(cgroup: str, kind: str, flag: str) -> str:
    return f'{cgroup} must be specified when "{kind}" or "{kind}-compressible" included in {flag}'


def _reservations(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    for name, flag, amounts in (
        ("kubeReserved", "--kube-reserved", kubelet.kube_reserved),
        ("systemReserved", "--system-reserved", kubelet.system_reserved),
    ):
        for resource, amount in amounts.items():
            problem = _reservation_fault(resource, amount)
            if problem:
                yield f"{name}", f"{flag} value failed to parse: {problem}"
    for resource, percentage in kubelet.qos_reserved.items():
        problem = _percentage_fault(resource, percentage)
        if problem:
            yield "qosReserved", f"--qos-reserved value failed to parse: {problem}"


def _reservation_fault(resource: str, amount: str) -> str | None:
    if resource not in RESERVABLE:
        return f"cannot reserve {quoted(resource)} resource; expected one of {', '.join(RESERVABLE)}"
    try:
        sign = Quantity.parse(amount).sign
    except QuantityError as error:
        return f"{resource} {quoted(amount)}: {error}"
    return f"resource quantity for {quoted(resource)} cannot be negative: {amount}" if sign < 0 else None


def _percentage_fault(resource: str, percentage: str) -> str | None:
    if resource != "memory":
        return f"cannot reserve {quoted(resource)} resource; expected memory"
    digits = percentage.removesuffix("%")
    if not percentage.endswith("%") or not (digits.isascii() and digits.isdigit()):
        return f"percentage expected, got {quoted(percentage)}"
    return (
        None if int(digits[:4]) <= 100 else f"percentage must be between 0 and 100, got {quoted(percentage)}"
    )


def _reserved_cpus(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    if kubelet.reserved_system_cpus and (kubelet.system_reserved_cgroup or kubelet.kube_reserved_cgroup):
        yield (
            "reservedSystemCPUs",
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
            "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
        )


def _managers(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    policy = kubelet.cpu_manager_policy
    if policy not in ("none", "static"):
        yield "cpuManagerPolicy", f'unknown policy: {quoted(policy)}; expected "none" or "static"'
    elif policy == "static" and not kubelet.reserved_system_cpus:
        yield from _static_reservation(kubelet)
    yield from _memory_manager(kubelet)
    policy, scope = kubelet.topology_manager_policy, kubelet.topology_manager_scope
    if policy not in _TOPOLOGY_POLICIES:
        known = " ".join(map(quoted, _TOPOLOGY_POLICIES))
        yield (
            "topologyManagerPolicy",
            f"topologyManagerPolicy (--topology-manager-policy) {quoted(policy)} must be one of: [{known}]",
        )
    if scope not in ("container", "pod"):
        yield (
            "topologyManagerScope",
            f"topologyManagerScope (--topology-manager-scope) {quoted(scope)} must be one of: "
            '"container", or "pod"',
        )


def _memory_manager(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    policy = kubelet.memory_manager_policy
    if policy not in ("None", "Static"):
        yield "memoryManagerPolicy", f'unknown policy: {quoted(policy)}; expected "None" or "Static"'
    elif policy == "Static" and not any("memory" in each.limits for each in kubelet.reserved_memory):
        yield (
            "reservedMemory",
            "[memorymanager] you should specify the system reserved memory; name it for each NUMA node in "
            "reservedMemory, in all as much as systemReserved, kubeReserved and evictionHard keep",
        )


def _static_reservation(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    amounts = [r["cpu"] for r in (kubelet.kube_reserved, kubelet.system_reserved) if "cpu" in r]
    if any(_reservation_fault("cpu", amount) for amount in amounts):
        return
    if not any(Quantity.parse(amount).sign > 0 for amount in amounts):
        yield (
            "cpuManagerPolicy",
            "[cpumanager] unable to determine reserved CPU resources for static policy: the static policy "
            "requires systemreserved.cpu + kubereserved.cpu to be greater than zero; set cpu in "
            "systemReserved or kubeReserved, or name CPUs in reservedSystemCPUs",
        )


def _reserved_memory(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    seen: set[tuple[int, str]] = set()
    for reservation in kubelet.reserved_memory:
        node = reservation.numa_node
        for resource, amount in reservation.limits.items():
            where = f"for NUMA node {node} and resource {quoted(resource)}"
            if resource != "memory" and not resource.startswith("hugepages-"):
                yield (
                    "reservedMemory",
                    f"the limit type {quoted(resource)} for NUMA node {node} is not supported, "
                    "only [memory hugepages-<HugePageSize>] is accepted",
                )
            if amount.is_zero:
                yield "reservedMemory", f"reserved memory may not be zero {where}"
            if (node, resource) in seen:
                yield "reservedMemory", f"the reserved memory has a duplicate value {where}"
            seen.add((node, resource))


def _shutdown(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    total, critical = kubelet.shutdown_grace_period, kubelet.shutdown_grace_period_critical_pods
    if parse_nanoseconds(critical) > parse_nanoseconds(total):
        yield (
            "shutdownGracePeriodCriticalPods",
            f"shutdownGracePeriodCriticalPods {{{critical}}} must be <= shutdownGracePeriod {{{total}}}",
        )
    for name, text in (("shutdownGracePeriod", total), ("shutdownGracePeriodCriticalPods", critical)):
        if parse_duration(text) != 0 and parse_duration(text) < 1:
            yield name, f"{name} {{{text}}} must be either zero or otherwise >= 1 sec"
    by_priority = bool(kubelet.shutdown_grace_period_by_pod_priority)
    whole = parse_duration(total) > 0 or parse_duration(critical) > 0
    if whole and not enabled(kubelet.feature_gates, "GracefulNodeShutdown"):
        yield (
            "shutdownGracePeriod",
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate "
            "GracefulNodeShutdown",
        )
    if by_priority and not enabled(kubelet.feature_gates, "GracefulNodeShutdownBasedOnPodPriority"):
        yield (
            "shutdownGracePeriodByPodPriority",
            "Specifying shutdownGracePeriodByPodPriority requires feature gate "
            "GracefulNodeShutdownBasedOnPodPriority",
        )
    elif by_priority and whole:
        yield (
            "shutdownGracePeriodByPodPriority",
            "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time",
        )


def _containers(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    name, longest = (
        "crashLoopBackOff.maxContainerRestartPeriod",
        kubelet.crash_loop_back_off.max_container_restart_period,
    )
    if longest != "5m0s" and not enabled(kubelet.feature_gates, "KubeletCrashLoopBackOffMax"):
        yield (
            name,
            "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod "
            "must not be set",
        )
    elif not 1 <= parse_duration(longest) <= 300:
        yield (
            name,
            f"CrashLoopBackOff.MaxContainerRestartPeriod (got: {parse_duration(longest):g} seconds) must "
            "be set between 1s and 300s",
        )
    endpoint = kubelet.container_runtime_endpoint
    if endpoint != "process" and not endpoint.startswith(("unix:///", "/")):
        yield (
            "containerRuntimeEndpoint",
            f'containerRuntimeEndpoint {quoted(endpoint)} must be "process" or a socket such as '
            '"unix:///run/containerd/containerd.sock"',
        )
    size = kubelet.user_namespaces.ids_per_pod if kubelet.user_namespaces else None
    if size is not None and (size <= 0 or size % 65536 or size >= _LARGEST_ID_RANGE):
        yield (
            "userNamespaces.idsPerPod",
            f"userNamespaces.idsPerPod {size} must be a multiple of 65536 and less than {_LARGEST_ID_RANGE}",
        )


def _pod_logs(kubelet: KubeletConfiguration) -> Iterator[Fault]:
    path = kubelet.pod_logs_dir
    if not path.startswith("/"):
        yield "podLogsDir", f"pod logs path {quoted(path)} must be absolute path"
    elif any(part in (".", "..", "") for part in path.split("/")[1:]) and path != "/":
        yield "podLogsDir", f"pod logs path {quoted(path)} must be normalized"
    if not path.isascii():
        yield "podLogsDir", f"pod logs path {quoted(path)} mut contains ASCII characters only"


_RULES: Final[tuple[Rule, ...]] = (
    _feature_gates,
    _cgroups,
    _memory,
    _enforcement,
    _reservations,
    _reserved_cpus,
    _managers,
    _reserved_memory,
    _shutdown,
    _containers,
    _pod_logs,
    inert_faults,
)
