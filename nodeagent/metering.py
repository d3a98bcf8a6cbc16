"""Counts what the pods room does under kubelet's metric names."""

from nodeagent.eviction.record import EvictionRecord
from nodeagent.metrics.instruments import Instruments


class Meter:
    """Implements `pods.observer.PodObserver` on the agent's instruments."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments

    def pod_started(self, seconds: float) -> None:
        self._instruments.started_pods.increase()
        self._instruments.pod_start_duration.observe(seconds)

    def pod_synced(self, operation: str, seconds: float) -> None:
        self._instruments.pod_worker_duration.labels(operation).observe(seconds)

    def pod_refused(self, reason: str) -> None:
        self._instruments.admission_rejections.increase(reason)

    def container_started(self, container_type: str) -> None:
        self._instruments.started_containers.increase(container_type)

    def container_not_started(self, container_type: str, code: str) -> None:
        self._instruments.started_containers_errors.increase(container_type, code)

    def container_ended(self, container_type: str, exit_code: int, reason: str) -> None:
        self._instruments.terminated_containers.increase(container_type, str(exit_code), reason)

    def pod_evicted(self, record: EvictionRecord) -> None:
        """Count an eviction when it is decided."""
        self._instruments.evictions.increase(record.cause)
        if record.stats_age_seconds is not None:
            self._instruments.eviction_stats_age.labels(record.cause).observe(record.stats_age_seconds)
