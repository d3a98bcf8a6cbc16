"""What the agent counts and times as it works, under kubelet's names.

The rooms below do not know this one: the agent hands them the methods of these objects as plain callables.
"""

from collections.abc import Iterator, Sequence

from prometheus_client.metrics import Histogram
from prometheus_client.metrics_core import Metric

# Go's default buckets; prometheus-client's differ.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_POD_START_SECONDS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900),
    *(1200, 1800, 2700, 3600),
)
_RUNTIME_SECONDS = tuple(0.005 * 2.5**step for step in range(14))
_ADMISSION_MILLISECONDS = tuple(0.05 * 2**step for step in range(15))
_OPERATION = ("operation_type",)


class Counter:
    """A number that only grows, a series a combination of label values, under exactly its name."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str] = ()) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0}

    def increase(self, *label_values: str, by: float = 1) -> None:
        """Count; the label values come in the order of the labels. `by=0` makes the series exist."""
        if len(label_values) != len(self._labels):
            raise ValueError(f"{self._name} has the labels {self._labels}, not {len(label_values)} of them")
        self._values[label_values] = self._values.get(label_values, 0) + by

    def collect(self) -> Iterator[Metric]:
        """Give the family; safe in another thread than `increase`."""
        family = Metric(self._name, self._documentation, "counter")
        for label_values, value in sorted(self._values.copy().items()):
            family.add_sample(self._name, dict(zip(self._labels, label_values, strict=True)), value)
        yield family


def _histogram(
    name: str, documentation: str, labels: Sequence[str] = (), buckets: Sequence[float] = _SECONDS
) -> Histogram:
    return Histogram(name, documentation, labels, registry=None, buckets=buckets)


class Instruments:
    """All counters and histograms of `/metrics` and `/metrics/probes`."""

    def __init__(self) -> None:
        self.pod_worker_duration = _histogram(
            "kubelet_pod_worker_duration_seconds", "Time to sync one pod, by operation type.", _OPERATION
        )
        self.pod_start_duration = _histogram(
            "kubelet_pod_start_duration_seconds",
            "Time from first seeing a pod to its running.",
            buckets=_POD_START_SECONDS,
        )
        self.pleg_relist_duration = _histogram(
            "kubelet_pleg_relist_duration_seconds", "Time to list all containers of the runtime."
        )
        self.pleg_relist_interval = _histogram(
            "kubelet_pleg_relist_interval_seconds", "Time between two listings of the runtime's containers."
        )
        self.cgroup_manager_duration = _histogram(
            "kubelet_cgroup_manager_duration_seconds",
            "Time of cgroup operations: create, update, destroy.",
            _OPERATION,
        )
        self._describe_runtime()
        self._describe_pods()
        self._describe_evictions()
        self._describe_resource_managers()
        self._describe_probes()

    def _describe_runtime(self) -> None:
        self.runtime_operations = Counter(
            "kubelet_runtime_operations_total", "Runtime operations begun.", _OPERATION
        )
        self.runtime_operations_errors = Counter(
            "kubelet_runtime_operations_errors_total", "Runtime operations that failed.", _OPERATION
        )
        self.runtime_operations_duration = _histogram(
            "kubelet_runtime_operations_duration_seconds",
            "Time of runtime operations.",
            _OPERATION,
            _RUNTIME_SECONDS,
        )
        self.started_containers = Counter(
            "kubelet_started_containers_total", "Containers started.", ("container_type",)
        )
        self.started_containers_errors = Counter(
            "kubelet_started_containers_errors_total",
            "Containers that could not be started.",
            ("container_type", "code"),
        )
        self.terminated_containers = Counter(
            "kubelet_terminated_containers_total",
            "Containers that ended.",
            ("container_type", "exit_code", "reason"),
        )

    def _describe_pods(self) -> None:
        self.started_pods = Counter("kubelet_started_pods_total", "Pods started.")
        self.restarted_pods = Counter(
            "kubelet_restarted_pods_total", "Pods deleted and created again under the same UID.", ("static",)
        )
        self.orphaned_runtime_pods = Counter(
            "kubelet_orphaned_runtime_pods_total", "Pods that only the runtime knew of."
        )
        self.admission_rejections = Counter(
            "kubelet_admission_rejections_total", "Pods that the node did not admit.", ("reason",)
        )

    def _describe_evictions(self) -> None:
        self.evictions = Counter(
            "kubelet_evictions", "Pods evicted, by the signal that called for it.", ("eviction_signal",)
        )
        self.eviction_stats_age = _histogram(
            "kubelet_eviction_stats_age_seconds",
            "Age of the measurements at the moment of an eviction.",
            ("eviction_signal",),
        )
        self.crossing_to_dead = _histogram(
            "nodeagent_eviction_crossing_to_dead_seconds",
            "Time from the crossing of a hard threshold to the end of the evicted pod's last process.",
            ("eviction_signal",),
        )
        self.oom_kills = Counter(
            "nodeagent_oom_kills_total",
            "Processes that the kernel killed, by whose memory had run out: system, pods, pod, other.",
            ("scope",),
        )
        self.preemptions = Counter(
            "kubelet_preemptions",
            "Pods that made room for one of higher priority, by resource.",
            ("preemption_signal",),
        )

    def _describe_resource_managers(self) -> None:
        self.cpu_pinning_requests = Counter(
            "kubelet_cpu_manager_pinning_requests_total", "Containers that asked for exclusive CPUs."
        )
        self.cpu_pinning_errors = Counter(
            "kubelet_cpu_manager_pinning_errors_total", "Containers that did not get their exclusive CPUs."
        )
        self.memory_pinning_requests = Counter(
            "kubelet_memory_manager_pinning_requests_total", "Containers that asked for memory of one place."
        )
        self.memory_pinning_errors = Counter(
            "kubelet_memory_manager_pinning_errors_total", "Containers that did not get their memory there."
        )
        self.topology_admission_requests = Counter(
            "kubelet_topology_manager_admission_requests_total", "Pods whose resources had to be aligned."
        )
        self.topology_admission_errors = Counter(
            "kubelet_topology_manager_admission_errors_total", "Pods whose resources could not be aligned."
        )
        self.topology_admission_duration = _histogram(
            "kubelet_topology_manager_admission_duration_ms",
            "Time to align one pod's resources, in milliseconds.",
            buckets=_ADMISSION_MILLISECONDS,
        )
        aligned = ("scope", "boundary")
        self.aligned_compute_resources = Counter(
            "kubelet_container_aligned_compute_resources_count", "Containers and pods aligned.", aligned
        )
        self.aligned_compute_resources_failures = Counter(
            "kubelet_container_aligned_compute_resources_failure_count",
            "Containers and pods that could not be aligned.",
            aligned,
        )

    def _describe_probes(self) -> None:
        pod = ("container", "pod", "namespace")
        self.probes = Counter("prober_probe_total", "Probes done.", ("probe_type", "result", *pod, "pod_uid"))
        self.probe_duration = _histogram(
            "prober_probe_duration_seconds", "Time of probes.", ("probe_type", *pod)
        )

    def collect(self) -> Iterator[Metric]:
        """Give the families of `/metrics`."""
        apart = (self.probes, self.probe_duration)
        for instrument in vars(self).values():
            if instrument not in apart:
                yield from instrument.collect()

    def collect_probes(self) -> Iterator[Metric]:
        """Give the families of `/metrics/probes`."""
        yield from self.probes.collect()
        yield from self.probe_duration.collect()
