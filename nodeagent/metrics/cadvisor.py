"""`/metrics/cadvisor`: cAdvisor's families for the node, kubepods, QoS slices, pods and their containers.

The tree is not walked: only what the agent manages has series, and what is over has none.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric

from nodeagent.metrics.exposition import Labels
from nodeagent.metrics.machine import machine_families
from nodeagent.metrics.network import Interface, read_interfaces
from nodeagent.metrics.scrape import (
    Measured,
    Number,
    Scrape,
    Value,
    measure_cgroups,
    measure_node,
    node_as_cgroup,
    of_cpu,
    of_memory,
    seconds,
)
from nodeagent.stats.kernel_files import Pressure

# Dashboards take a series without an image for a slice's.
PROCESS_IMAGE = "nodeagent/process"

# Of one cgroup: what the extra labels say, and the value.
Extras = dict[str, str]
Values = Callable[[Measured], Iterable[tuple[Extras, Value]]]


@dataclass(frozen=True, slots=True)
class _Family:
    name: str
    type: str
    documentation: str
    values: Values


@dataclass(frozen=True, slots=True)
class _Subject:
    """A cgroup with its labels, which most of its series share."""

    measured: Measured
    labels: Labels


def cadvisor_families(scrape: Scrape) -> Iterator[Metric]:
    """Read the kernel and give the families one by one."""
    node = measure_node(scrape)
    measured = (node_as_cgroup(node), *measure_cgroups(scrape))
    subjects = [_Subject(each, cgroup_labels(each)) for each in measured]
    for family in _FAMILIES:
        yield _collect(family, subjects)
    yield from _network_families(read_interfaces(scrape.proc_root), subjects[0].labels)
    yield _last_seen(subjects, scrape.time.timestamp())
    yield from machine_families(scrape, node)


def cgroup_labels(measured: Measured) -> Labels:
    """The six labels of every series, empty where they say nothing."""
    cgroup = measured.cgroup
    return Labels(
        id=f"/{cgroup.path}",
        name=cgroup.container_id,
        image=(cgroup.image or PROCESS_IMAGE) if cgroup.container else "",
        container=cgroup.container,
        pod=cgroup.pod,
        namespace=cgroup.namespace,
    )


def _collect(family: _Family, subjects: Sequence[_Subject]) -> Metric:
    metric = Metric(family.name, family.documentation, family.type)
    for subject in subjects:
        for extras, value in family.values(subject.measured):
            if value is not None:
                labels = Labels(subject.labels, **extras) if extras else subject.labels
                metric.add_sample(family.name, labels, value)
    return metric


def _network_families(interfaces: Sequence[Interface], labels: Labels) -> Iterator[Metric]:
    # Pods share the node's network: the traffic of one of them cannot be told.
    for direction in ("receive", "transmit"):
        for field in ("bytes", "packets", "packets_dropped", "errors"):
            name = f"container_network_{direction}_{field}_total"
            words = field.replace("_", " ")
            metric = Metric(name, f"Network {direction} {words}, by interface.", "counter")
            for interface in interfaces:
                traffic = getattr(interface, direction)
                value = getattr(traffic, field.removeprefix("packets_"))
                metric.add_sample(name, Labels(labels, interface=interface.name), value)
            yield metric


def _last_seen(subjects: Sequence[_Subject], now: float) -> Metric:
    metric = Metric("container_last_seen", "When the cgroup was last read, in seconds of the epoch.", "gauge")
    for subject in subjects:
        if subject.measured.cgroup.pod:
            metric.add_sample(metric.name, subject.labels, int(now))
    return metric


def _plain(get: Callable[[Measured], Value]) -> Values:
    return lambda measured: (({}, get(measured)),)


def _counter(name: str, documentation: str, get: Callable[[Measured], Value]) -> _Family:
    return _Family(name, "counter", documentation, _plain(get))


def _gauge(name: str, documentation: str, get: Callable[[Measured], Value]) -> _Family:
    return _Family(name, "gauge", documentation, _plain(get))


def _under_quota(get: Callable[..., Value]) -> Callable[[Measured], Value]:
    # A cgroup without a quota cannot be throttled, and has no such series in cAdvisor.
    return lambda measured: None if measured.cpu_quota_microseconds is None else of_cpu(get)(measured)


def _memory_failures(measured: Measured) -> Iterable[tuple[Extras, Value]]:
    memory = measured.sample.memory
    if memory is not None:
        for kind, value in (("pgfault", memory.page_faults), ("pgmajfault", memory.major_page_faults)):
            for scope in ("container", "hierarchy"):
                yield {"failure_type": kind, "scope": scope}, value


def _waited(pressure: Pressure | None, line: str) -> Value:
    figures = getattr(pressure, line) if pressure else None
    return seconds(figures.total_microseconds) if figures else None


def _pressure_families() -> Iterator[_Family]:
    pressures: dict[str, Callable[[Measured], Pressure | None]] = {
        "cpu": lambda measured: measured.sample.cpu.pressure if measured.sample.cpu else None,
        "memory": lambda measured: measured.sample.memory.pressure if measured.sample.memory else None,
        "io": lambda measured: measured.sample.io_pressure,
    }
    for resource, pressure_of in pressures.items():
        for verb, line, who in (("waiting", "some", "some tasks"), ("stalled", "full", "all tasks")):
            yield _counter(
                f"container_pressure_{resource}_{verb}_seconds_total",
                f"Time in which {who} waited for {resource}.",
                lambda measured, of=pressure_of, line=line: _waited(of(measured), line),  # type: ignore[misc]
            )


def _of_pods(get: Callable[[Measured], Value]) -> Callable[[Measured], Value]:
    # kube-prometheus drops these of every other cgroup.
    return lambda measured: get(measured) if measured.cgroup.pod else None


def _limit(get: Callable[..., Value]) -> Callable[[Measured], Value]:
    """A limit as cAdvisor writes it: zero is none."""
    return _of_pods(of_memory(lambda memory: get(memory) or 0))


def _oom_kills(measured: Measured) -> Number | None:
    memory = measured.sample.memory
    return memory.events.get("oom_kill", 0) if memory and memory.events is not None else None


_FAMILIES = (
    _Family(
        "container_cpu_usage_seconds_total",
        "counter",
        "CPU time used.",
        lambda measured: (({"cpu": "total"}, of_cpu(lambda cpu: seconds(cpu.usage_microseconds))(measured)),),
    ),
    _counter(
        "container_cpu_user_seconds_total",
        "CPU time used in user mode.",
        of_cpu(lambda cpu: seconds(cpu.user_microseconds)),
    ),
    _counter(
        "container_cpu_system_seconds_total",
        "CPU time used in the kernel.",
        of_cpu(lambda cpu: seconds(cpu.system_microseconds)),
    ),
    _counter(
        "container_cpu_cfs_periods_total",
        "Quota periods that have passed.",
        _under_quota(lambda cpu: cpu.periods),
    ),
    _counter(
        "container_cpu_cfs_throttled_periods_total",
        "Quota periods in which tasks were held back.",
        _under_quota(lambda cpu: cpu.throttled_periods),
    ),
    _counter(
        "container_cpu_cfs_throttled_seconds_total",
        "Time for which tasks were held back by the quota.",
        _under_quota(lambda cpu: seconds(cpu.throttled_microseconds)),
    ),
    _gauge(
        "container_memory_working_set_bytes",
        "Memory less the idle page cache.",
        of_memory(lambda memory: memory.working_set_bytes),
    ),
    _gauge(
        "container_memory_usage_bytes", "All memory charged.", of_memory(lambda memory: memory.usage_bytes)
    ),
    _gauge("container_memory_rss", "Anonymous memory.", of_memory(lambda memory: memory.anon_bytes)),
    _gauge("container_memory_cache", "Page cache and tmpfs.", of_memory(lambda memory: memory.file_bytes)),
    _gauge("container_memory_swap", "Swap used, in bytes.", of_memory(lambda memory: memory.swap_bytes)),
    _gauge(
        "container_memory_mapped_file",
        "Mapped page cache.",
        of_memory(lambda memory: memory.mapped_file_bytes),
    ),
    _gauge(
        "container_memory_kernel_usage",
        "Memory of the kernel's, in bytes.",
        of_memory(lambda memory: memory.kernel_bytes),
    ),
    _gauge(
        "container_memory_total_active_file_bytes",
        "Page cache in use.",
        of_memory(lambda memory: memory.active_file_bytes),
    ),
    _gauge(
        "container_memory_total_inactive_file_bytes",
        "Idle page cache.",
        of_memory(lambda memory: memory.inactive_file_bytes),
    ),
    _gauge(
        "container_memory_max_usage_bytes",
        "Most memory ever charged.",
        of_memory(lambda memory: memory.peak_bytes),
    ),
    _counter(
        "container_memory_failcnt",
        "Times that the memory limit was hit.",
        of_memory(lambda memory: (memory.events or {}).get("max", 0)),
    ),
    _Family("container_memory_failures_total", "counter", "Page faults.", _memory_failures),
    _counter("container_oom_events_total", "Processes killed for lack of memory.", _oom_kills),
    *_pressure_families(),
    _gauge("container_threads", "Tasks.", _of_pods(lambda measured: measured.sample.tasks)),
    _gauge(
        "container_threads_max",
        "Most tasks allowed; 0 is no limit.",
        _of_pods(lambda measured: measured.sample.tasks_limit or 0),
    ),
    _gauge(
        "container_spec_cpu_period",
        "Period of the CPU quota, in microseconds.",
        _of_pods(lambda measured: measured.cpu_period_microseconds),
    ),
    _gauge(
        "container_spec_cpu_quota",
        "CPU quota of a period, in microseconds.",
        _of_pods(lambda measured: measured.cpu_quota_microseconds),
    ),
    _gauge(
        "container_spec_memory_limit_bytes",
        "Memory limit; 0 is none.",
        _limit(lambda memory: memory.limit_bytes),
    ),
    _gauge(
        "container_spec_memory_swap_limit_bytes",
        "Swap limit; 0 is none.",
        _limit(lambda memory: memory.swap_limit_bytes),
    ),
    _gauge(
        "container_start_time_seconds",
        "Start, in seconds of the epoch.",
        _of_pods(lambda measured: measured.cgroup.started_at_seconds),
    ),
)
