"""What the node and its pods use, as kubelet's summary: in full for the curious, in haste for eviction."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from nodeagent.api.meta import parse_time
from nodeagent.api.pod import Pod
from nodeagent.cgroup.files import CgroupTree
from nodeagent.clock import Clock
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.launch import pod_log_directory
from nodeagent.pods.lifecycle import has_ended
from nodeagent.runtime.spec import ContainerRecord
from nodeagent.stats.cgroup import CgroupSample, read_cgroup, read_in_haste
from nodeagent.stats.filesystem import DirectoryUsage, read_directory, read_filesystem
from nodeagent.stats.node import read_node
from nodeagent.stats.pod_usage import PodUsageReader
from nodeagent.stats.summary import PodReference, PodStats, Summary
from nodeagent.stats.summary_builder import (
    ContainerUsage,
    CpuRates,
    NodeUsage,
    PodUsage,
    build_summary,
)

_Read = Callable[[CgroupTree, str], CgroupSample | None]
# What the summary calls the cgroup of all pods.
PODS = "pods"
KUBELET = "kubelet"


class UsageReader:
    """Measures; only the size of logs is measured apart, by `measure_logs`, since that may take long."""

    def __init__(
        self,
        node_name: str,
        cgroups: PodCgroups,
        records: ContainerRecords,
        clock: Clock,
        *,
        proc_root: Path,
        storage: Path,
        log_directory: Path,
        own_cgroup: str | None,
    ) -> None:
        self._node_name = node_name
        self._cgroups = cgroups
        self._records = records
        self._clock = clock
        self._proc_root = proc_root
        self._storage = storage
        self._log_directory = log_directory
        self._own_cgroup = own_cgroup
        self._started = clock.now()
        self._logs: dict[str, dict[str, DirectoryUsage]] = {}
        self._whole_pods = PodUsageReader(cgroups.tree)
        self._rates, self._hasty_rates = CpuRates(), CpuRates()

    def in_full(self, pods: Sequence[Pod]) -> Summary:
        """Measure everything; many pods take a while, so call it in a thread."""
        return build_summary(
            self._node(read_cgroup), [self._pod(pod, read_cgroup) for pod in pods], self._rates
        )

    def in_haste(self, pods: Sequence[Pod]) -> Summary:
        """Measure the pods' memory and tasks now; sizes on disk are those last measured."""
        return build_summary(
            self._node(read_in_haste), [self._pod(pod, read_in_haste) for pod in pods], self._hasty_rates
        )

    def pods_in_haste(self, pods: Sequence[Pod]) -> tuple[PodStats, ...]:
        """Measure only the pods, and each as a whole: an eviction waits for it."""
        paths = {pod.metadata.uid: self._cgroups.slice(pod) for pod in pods}
        found = (self._whole_pods.read(_reference(pod), paths[pod.metadata.uid]) for pod in pods)
        return tuple(stats for stats in found if stats is not None)

    def running_containers(self, pods: Sequence[Pod]) -> dict[str, set[tuple[str, int]]]:
        """Return the names and attempts of the running containers of each pod, by its UID."""
        return {
            pod.metadata.uid: {
                (record.spec.container_name, record.spec.attempt)
                for record in self._records.of(pod.metadata.uid)
                if not has_ended(record)
            }
            for pod in pods
        }

    async def measure_logs(self, pods: Sequence[Pod]) -> None:
        """Measure the logs of these pods, beside the loop; let go of the files of all others."""
        self._whole_pods.keep_only({self._cgroups.slice(pod) for pod in pods})
        self._logs = await asyncio.to_thread(self._read_logs, list(pods))

    def _read_logs(self, pods: Sequence[Pod]) -> dict[str, dict[str, DirectoryUsage]]:
        found: dict[str, dict[str, DirectoryUsage]] = {}
        for pod in pods:
            directory = pod_log_directory(pod, self._log_directory)
            names = [c.name for c in (*pod.spec.init_containers, *pod.spec.containers)]
            usages = {name: read_directory(directory / name) for name in names}
            found[pod.metadata.uid] = {name: usage for name, usage in usages.items() if usage is not None}
        return found

    def _node(self, read: _Read) -> NodeUsage:
        tree = self._cgroups.tree
        filesystem = read_filesystem(self._storage)
        named = {PODS: self._cgroups.layout.kubepods, KUBELET: self._own_cgroup}
        samples = {name: read(tree, path) for name, path in named.items() if path}
        return NodeUsage(
            name=self._node_name,
            sample=read_node(self._proc_root, tree, self._clock.now()),
            system_containers={name: sample for name, sample in samples.items() if sample is not None},
            nodefs=filesystem,
            imagefs=filesystem,
            containerfs=filesystem,
            started_at=self._started,
        )

    def _pod(self, pod: Pod, read: _Read) -> PodUsage:
        meta, tree = pod.metadata, self._cgroups.tree
        logs = self._logs.get(meta.uid, {})
        live = [record for record in self._records.of(meta.uid) if not has_ended(record)]
        return PodUsage(
            reference=_reference(pod),
            cgroup=read(tree, self._cgroups.slice(pod)),
            containers=[
                ContainerUsage(
                    record.spec.container_name,
                    read(tree, record.spec.cgroup),
                    started_at=_started(record),
                    logs=logs.get(record.spec.container_name),
                )
                for record in live
            ],
            started_at=parse_time(pod.status.start_time) if pod.status.start_time else None,
        )


def _reference(pod: Pod) -> PodReference:
    meta = pod.metadata
    return PodReference(name=meta.name, namespace=meta.namespace, uid=meta.uid)


def _started(record: ContainerRecord) -> datetime | None:
    return parse_time(record.started_at) if record.started_at else None
