"""`/metrics` and its small relations: what kubelet says of itself."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from nodeagent import __version__
from nodeagent.admission.elastic_quota.group import Group
from nodeagent.eviction.pace import Headroom
from nodeagent.metrics.scrape import Number, Scrape

# The release whose behaviour this is; alerts compare its major and minor part over a cluster.
KUBERNETES_VERSION = "v1.36.2"
_MILLI = 1000
_NANO = 1_000_000_000


def kubelet_families(scrape: Scrape) -> Iterator[Metric]:
    """Give what the agent counted, and what its state is."""
    yield from _state_families(scrape)
    yield from scrape.instruments.collect()
    yield from _process_collector(scrape).collect()


def probe_families(scrape: Scrape) -> Iterator[Metric]:
    """Give `/metrics/probes`."""
    yield from scrape.instruments.collect_probes()
    for family in _process_collector(scrape).collect():
        if family.name == "process_start_time_seconds":
            yield family


def health_families(healthy: Mapping[str, bool], counts: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    """Give `/metrics/slis`: each check's last result, and how often it had which (by name and status)."""
    yield _gauge(
        "kubernetes_healthcheck",
        "1 if the check succeeded the last time.",
        (({"name": name, "type": "healthz"}, int(success)) for name, success in healthy.items()),
    )
    total = Metric("kubernetes_healthchecks_total", "Results of the checks.", "counter")
    for (name, status), count in counts.items():
        total.add_sample(total.name, {"name": name, "status": status, "type": "healthz"}, count)
    yield total


def _state_families(scrape: Scrape) -> Iterator[Metric]:
    state = scrape.state
    exclusive = state.exclusive_cpus_per_numa
    yield _gauge("kubelet_node_name", "The node's name.", [({"node": scrape.node.metadata.name}, 1)])
    yield _gauge("kubernetes_build_info", "What runs.", [(_build(), 1)])
    yield _gauge("kubelet_cgroup_version", "The cgroup hierarchy's version.", [({}, 2)])
    yield _gauge("kubelet_running_pods", "Pods with a running container.", [({}, state.running_pods)])
    yield _gauge(
        "kubelet_running_containers",
        "Containers, by state.",
        (({"container_state": key}, count) for key, count in state.containers.items()),
    )
    yield _gauge("kubelet_desired_pods", "Pods that should run.", _by_static(state.desired_pods))
    yield _gauge("kubelet_active_pods", "Pods that hold resources.", _by_static(state.active_pods))
    yield _gauge("kubelet_mirror_pods", "Mirror pods; without an API server none.", [({}, 0)])
    yield _gauge(
        "kubelet_working_pods",
        "Pods that are worked on, by phase of life and by why they exist.",
        (
            ({"lifecycle": lifecycle, "config": config, "static": _static(static)}, count)
            for (lifecycle, config, static), count in state.working_pods.items()
        ),
    )
    yield _gauge(
        "kubelet_cpu_manager_shared_pool_size_millicores",
        "CPUs that no container has to itself.",
        [({}, state.shared_pool_cpus * _MILLI)],
    )
    yield _gauge(
        "kubelet_cpu_manager_exclusive_cpu_allocation_count",
        "CPUs that containers have to themselves.",
        [({}, sum(exclusive.values()))],
    )
    yield _gauge(
        "kubelet_cpu_manager_allocation_per_numa",
        "CPUs that containers have to themselves, by NUMA node.",
        (({"numa_node": str(numa)}, count) for numa, count in exclusive.items()),
    )
    yield from _headroom_families(state.headrooms)
    yield _quota_family(state.quota_groups)


def _headroom_families(headrooms: Sequence[Headroom]) -> Iterator[Metric]:
    labels = [
        {"eviction_signal": str(each.threshold.signal), "kind": "hard" if each.threshold.is_hard else "soft"}
        for each in headrooms
    ]
    yield _gauge(
        "nodeagent_eviction_headroom",
        "What is left above a threshold: bytes, inodes, processes or percent of time; negative once crossed.",
        zip(labels, (each.left for each in headrooms), strict=True),
    )
    yield _gauge(
        "nodeagent_eviction_predicted_seconds",
        "After how long the recent rate crosses a threshold.",
        zip(labels, (each.seconds for each in headrooms), strict=True),
    )


def _quota_family(groups: Sequence[Group]) -> Metric:
    """Show each group by resource and type, as kube_resourcequota is laid out; cpu in cores."""
    return _gauge(
        "nodeagent_elastic_quota",
        "Elastic quota groups: what is guaranteed (min), allowed (max, runtime), asked for and used.",
        (
            (
                {"quota": group.name, "parent": group.parent, "resource": resource, "type": kind},
                amount.nanos / _NANO,
            )
            for group in groups
            for kind, amounts in (
                ("min", group.min),
                ("max", group.max),
                ("runtime", group.runtime or {}),
                ("request", group.all.request),
                ("used", group.all.used),
            )
            for resource, amount in amounts.items()
        ),
    )


def _gauge(name: str, documentation: str, rows: Iterable[tuple[dict[str, str], Number]]) -> Metric:
    metric = Metric(name, documentation, "gauge")
    for labels, value in rows:
        metric.add_sample(name, labels, value)
    return metric


def _by_static(counts: Mapping[bool, int]) -> Iterator[tuple[dict[str, str], Number]]:
    for static in (False, True):
        yield {"static": _static(static)}, counts.get(static, 0)


def _static(static: bool) -> str:
    return "true" if static else ""


def _build() -> dict[str, str]:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    version = f"{KUBERNETES_VERSION}+nodeagent.{__version__}"
    return {"git_version": version, "major": major, "minor": minor}


def _process_collector(scrape: Scrape) -> ProcessCollector:
    return ProcessCollector(proc=str(scrape.proc_root), registry=None)
