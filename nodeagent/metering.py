"""Counts what the pods room does under kubelet's metric names."""

from collections.abc import Iterable

from nodeagent.eviction.record import EvictionRecord
from nodeagent.eviction.thresholds import Threshold
from nodeagent.metrics.instruments import Counter, Instruments
from nodeagent.pods.oom_kills import Scope
from nodeagent.resources.managers import ResourceManagers


class Meter:
    """Implements `pods.observer.PodObserver` on the agent's instruments."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._counted: dict[Counter, int] = {}

    def begin(self, thresholds: Iterable[Threshold]) -> None:
        """Show at zero what may be counted: a series that begins at 1 hides its first event from rate()."""
        for threshold in thresholds:
            self._instruments.evictions.increase(str(threshold.signal), by=0)
        for scope in Scope:
            self._instruments.oom_kills.increase(scope, by=0)

    def pod_started(self, seconds: float) -> None:
        self._instruments.started_pods.increase()
        self._instruments.pod_start_duration.observe(seconds)

    def pod_synced(self, operation: str, seconds: float) -> None:
        self._instruments.pod_worker_duration.labels(operation).observe(seconds)

    def pod_refused(self, reason: str) -> None:
        self._instruments.admission_rejections.increase(reason)

    def pod_preempted(self, resource: str) -> None:
        """Count a pod that made room, by what the other one lacked."""
        self._instruments.preemptions.increase(resource)

    def container_started(self, container_type: str) -> None:
        self._instruments.started_containers.increase(container_type)

    def container_not_started(self, container_type: str, code: str) -> None:
        self._instruments.started_containers_errors.increase(container_type, code)

    def container_ended(self, container_type: str, exit_code: int, reason: str) -> None:
        self._instruments.terminated_containers.increase(container_type, str(exit_code), reason)

    def pod_placed(self, managers: ResourceManagers, seconds: float) -> None:
        """Take over the resource managers' own counts after an admission that took so long."""
        instruments = self._instruments
        instruments.topology_admission_duration.observe(seconds * 1000)
        totals = (
            (instruments.cpu_pinning_requests, managers.cpu_pinning[0]),
            (instruments.cpu_pinning_errors, managers.cpu_pinning[1]),
            (instruments.memory_pinning_requests, managers.memory_pinning[0]),
            (instruments.memory_pinning_errors, managers.memory_pinning[1]),
            (instruments.topology_admission_requests, managers.topology_admission_requests),
            (instruments.topology_admission_errors, managers.topology_admission_errors),
        )
        for counter, total in totals:
            counter.increase(by=total - self._counted.get(counter, 0))
            self._counted[counter] = total

        for counter_of, counts in (
            (instruments.aligned_compute_resources, managers.aligned),
            (instruments.aligned_compute_resources_failures, managers.misaligned),
        ):
            for label, number in counts.items():
                counter_of.increase(*label, by=number)
            counts.clear()

    def oom_killed(self, scope: str) -> None:
        """Count what the kernel's OOM killer did."""
        self._instruments.oom_kills.increase(scope)

    def pod_dead(self, record: EvictionRecord) -> None:
        """Take the time that an immediate eviction took, when its pod is dead."""
        if record.pressure is not None and record.pressure.hard and record.seconds_to_dead is not None:
            self._instruments.crossing_to_dead.labels(record.cause).observe(record.seconds_to_dead)

    def pod_evicted(self, record: EvictionRecord) -> None:
        """Count an eviction when it is decided."""
        self._instruments.evictions.increase(record.cause)
        if record.stats_age_seconds is not None:
            self._instruments.eviction_stats_age.labels(record.cause).observe(record.stats_age_seconds)
