"""Pods of the API: what it wants run here; it is told in turn how all pods of the node stand."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import structs

from nodeagent.api.meta import parse_time
from nodeagent.api.pod import Pod
from nodeagent.api.qos import is_static
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.kinds import ELASTIC_QUOTA, LIMIT_RANGE, NODE, POD, PRIORITY_CLASS, RESOURCE_QUOTA
from nodeagent.cluster.reports import MIRROR_ANNOTATION
from nodeagent.pods.record import API_SOURCE, CONTENT_HASH, PodRecord
from nodeagent.pods.worker import PodWorker
from nodeagent.store import Change

FINISHED = ("Succeeded", "Failed")
_FOLLOWED = {
    kind.resource for kind in (ELASTIC_QUOTA, LIMIT_RANGE, NODE, POD, PRIORITY_CLASS, RESOURCE_QUOTA)
}


class ClusterPods:
    """Follows the API's pods; the mirrors of static pods, which it makes itself, are none of them."""

    def __init__(self, cluster: Cluster, node_name: str) -> None:
        self.changed = asyncio.Event()
        """Set when there may be something to begin, to end, or to judge by other policies."""
        self._cluster = cluster
        self._node_name = node_name
        self._pods = {pod.metadata.uid: pod for pod in cluster.reports.pods() if not _is_mirror(pod)}
        cluster.listeners.append(self._note)

    def desired(self, workers: Mapping[str, PodWorker]) -> dict[str, PodRecord]:
        """Return the pods that should be here by UID; none is begun while the node is cordoned."""
        cordoned = self._cluster.reports.is_cordoned(self._node_name)
        return {
            uid: PodRecord(pod=self._bound(pod), source=API_SOURCE, created=_created(pod))
            for uid, pod in self._pods.items()
            if pod.metadata.deletion_timestamp is None
            and pod.spec.node_name in (None, "", self._node_name)
            and not pod.spec.scheduling_gates
            and (uid in workers or (pod.status.phase not in FINISHED and not cordoned))
        }

    def leaving(self, workers: Mapping[str, PodWorker]) -> Iterator[tuple[str, float]]:
        """Yield the UIDs of running pods that the API deletes, with their grace periods in seconds.

        A pod that is deleted before anything of it ran is gone at once.
        """
        for uid, worker in workers.items():
            if worker.record.source == API_SOURCE:
                pod = self._pods.get(uid)
                if pod is None:
                    yield uid, 0
                elif pod.metadata.deletion_timestamp is not None:
                    yield uid, pod.metadata.deletion_grace_period_seconds or 0
        never_ran = [
            pod
            for uid, pod in self._pods.items()
            if pod.metadata.deletion_timestamp is not None and uid not in workers
        ]
        for pod in never_ran:
            self.gone(pod)

    def keeps(self, manifests: Callable[[str], bool]) -> Callable[[str], bool]:
        """Return who keeps pods that are not desired: manifests may, the API never does."""
        return lambda source: source != API_SOURCE and manifests(source)

    def publish(self, pod: Pod) -> None:
        """Tell the API how a pod stands; a static pod appears there as its mirror."""
        if is_static(pod):
            self._cluster.reports.publish_mirror(_mirror(pod))
        else:
            self._cluster.reports.report(self._bound(pod))

    def gone(self, pod: Pod) -> None:
        """Tell the API that a pod has come to its end here."""
        meta = pod.metadata
        self._cluster.reports.withdraw(POD, meta.namespace, meta.name, meta.uid)

    def begin(self, pods: Iterable[Pod]) -> None:
        """After a start: say how the pods stand that there are, and withdraw the mirrors of others."""
        present = {pod.metadata.uid: pod for pod in pods}
        for mirror in self._cluster.reports.pods():
            if _is_mirror(mirror) and mirror.metadata.uid not in present:
                self.gone(mirror)
        for pod in present.values():
            self.publish(pod)

    def _bound(self, pod: Pod) -> Pod:
        return structs.replace(pod, spec=structs.replace(pod.spec, node_name=self._node_name))

    def _note(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.key.resource not in _FOLLOWED:
                continue
            if change.key.resource != POD.resource:
                self.changed.set()
                continue
            pod = self._cluster.reports.decoded_pod(change.body)
            uid = pod.metadata.uid
            if _is_mirror(pod):
                continue
            before = self._pods.pop(uid, None)
            if change.type != "DELETED":
                self._pods[uid] = pod
            if change.type == "DELETED" or before is None or before.metadata != pod.metadata:
                self.changed.set()


def _is_mirror(pod: Pod) -> bool:
    return MIRROR_ANNOTATION in pod.metadata.annotations


def _mirror(pod: Pod) -> Pod:
    meta = pod.metadata
    content_hash = meta.annotations.get(CONTENT_HASH, meta.uid)
    annotations = {**meta.annotations, MIRROR_ANNOTATION: content_hash}
    return structs.replace(pod, metadata=structs.replace(meta, annotations=annotations))


def _created(pod: Pod) -> datetime:
    return parse_time(pod.metadata.creation_timestamp or "")
