"""`/metrics/resource`: CPU and memory of the node, the live pods and their containers, for metrics-server."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.metrics_core import Metric

from nodeagent.metrics.exposition import Labels
from nodeagent.metrics.scrape import (
    Measured,
    Scrape,
    Value,
    measure_cgroups,
    measure_node,
    node_as_cgroup,
    of_cpu,
    of_memory,
    seconds,
)

_Family = tuple[str, str, str, Callable[[Measured], Value]]


def resource_families(scrape: Scrape) -> Iterator[Metric]:
    """Read the kernel and give the families; values carry the time at which they were true."""
    node = measure_node(scrape)
    measured = list(measure_cgroups(scrape))
    groups: tuple[tuple[str, Sequence[Measured]], ...] = (
        ("node", (node_as_cgroup(node),)),
        ("pod", [each for each in measured if each.cgroup.pod and not each.cgroup.container]),
        ("container", [each for each in measured if each.cgroup.container]),
    )
    time = scrape.time.timestamp()
    for subject, members in groups:
        labelled = [(each, _labels(each)) for each in members]
        for suffix, kind, documentation, get in _families(subject):
            metric = Metric(f"{subject}_{suffix}", documentation, kind)
            for each, labels in labelled:
                value = get(each)
                if value is not None:
                    metric.add_sample(metric.name, labels, value, time if "start" not in suffix else None)
            yield metric
    yield from _errors(node.memory is None or node.cpu is None)


def _families(subject: str) -> Iterator[_Family]:
    yield (
        "cpu_usage_seconds_total",
        "counter",
        f"CPU time used by the {subject}.",
        of_cpu(lambda cpu: seconds(cpu.usage_microseconds)),
    )
    yield (
        "memory_working_set_bytes",
        "gauge",
        f"Memory of the {subject} less its idle page cache.",
        of_memory(lambda memory: memory.working_set_bytes),
    )
    yield (
        "swap_usage_bytes",
        "gauge",
        f"Swap used by the {subject}.",
        of_memory(lambda memory: memory.swap_bytes),
    )
    if subject == "container":
        yield (
            "swap_limit_bytes",
            "gauge",
            "Swap that the container may use.",
            of_memory(lambda memory: memory.swap_limit_bytes),
        )
        yield (
            "start_time_seconds",
            "gauge",
            "Start of the container, in seconds of the epoch.",
            lambda measured: measured.cgroup.started_at_seconds,
        )


def _labels(measured: Measured) -> Labels:
    cgroup = measured.cgroup
    if not cgroup.pod:
        return Labels()
    of_pod = Labels(pod=cgroup.pod, namespace=cgroup.namespace)
    return Labels(of_pod, container=cgroup.container) if cgroup.container else of_pod


def _errors(failed: bool) -> Iterator[Metric]:
    for name in ("resource_scrape_error", "scrape_error"):
        metric = Metric(name, "1 if the node's own figures could not be read.", "gauge")
        metric.add_sample(name, {}, int(failed))
        yield metric
