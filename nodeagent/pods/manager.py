"""All pods of the node: which workers there are, and what the runtime says to whom."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec

from nodeagent.api.pod import Pod
from nodeagent.pods.lifecycle import has_ended
from nodeagent.pods.record import CONTENT_HASH, KIND, Failure, PodRecord, decode
from nodeagent.pods.services import Services
from nodeagent.pods.status import terminated_state
from nodeagent.pods.team_quotas import QuotaPod
from nodeagent.pods.worker import PodWorker
from nodeagent.runtime.spec import ContainerRecord
from nodeagent.store import Store

logger = logging.getLogger(__name__)


RESTART_SECONDS = 1.0


class PodManager:
    """Holds one worker a pod, and matches them with the pods that should be."""

    def __init__(self, services: Services) -> None:
        self.workers: dict[str, PodWorker] = {}
        self._services = services
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # New pods whose name is still held by a pod on its way out.
        self._waiting: dict[str, PodRecord] = {}

    def restore(self, records: Iterable[PodRecord]) -> None:
        """Take up the pods that an earlier agent left."""
        for record in records:
            self._begin(record)

    def set_desired(self, desired: Mapping[str, PodRecord], keeps: Callable[[str], bool]) -> None:
        """Begin what is new and end what is no longer wanted; `keeps` tells whose pods stay."""
        for uid, worker in self.workers.items():
            wanted = desired.get(uid)
            if wanted is None and keeps(worker.record.source):
                continue
            # A manifest that fixes its UID stays the same pod by name only.
            if wanted is None or _content(wanted.pod) != _content(worker.pod):
                worker.delete()
        self._waiting = {
            uid: record
            for uid, record in desired.items()
            if uid not in self.workers or self.workers[uid].is_deleting
        }
        self._begin_waiting()

    def delete(self, pod_uid: str, grace_seconds: float) -> None:
        """End and forget a pod; one that is gone already is no error."""
        worker = self.workers.get(pod_uid)
        if worker is not None:
            worker.delete(grace_seconds)

    def evict(self, pod_uid: str, failure: Failure, grace_seconds: float) -> None:
        """Evict a pod; one that is gone already is no error."""
        worker = self.workers.get(pod_uid)
        if worker is not None:
            worker.evict(failure, grace_seconds)

    def pods(self) -> list[Pod]:
        """Return all pods with their status."""
        return [worker.pod for worker in self.workers.values()]

    def active_pods(self) -> list[Pod]:
        """Return the pods that hold resources of the node."""
        return [worker.pod for worker in self.workers.values() if worker.holds_resources]

    def admitted_pods(self) -> list[Pod]:
        """Return the pods that were let in, those at their end included: what quotas count."""
        return [worker.pod for worker in self.workers.values() if worker.record.admitted]

    def rivals_of(self, pod: Pod) -> list[Pod]:
        """Return the pods whose resources a newcomer cannot have; one that has just finished is none."""
        return [
            worker.pod
            for worker in self.workers.values()
            if worker.holds_resources
            and worker.pod.metadata.uid != pod.metadata.uid
            and not worker.is_finished
        ]

    def is_leaving(self, pod_uid: str) -> bool:
        """Say whether the pod is about to give back what it holds."""
        worker = self.workers.get(pod_uid)
        return worker is not None and (worker.is_stopping or worker.record.is_over)

    def is_nominated(self, pod_uid: str) -> bool:
        """Say whether the pod waits for room that others make for it."""
        worker = self.workers.get(pod_uid)
        failure = worker.record.failure if worker is not None and worker.waits else None
        return failure is not None and failure.nominated

    def quota_pods(self) -> list[QuotaPod]:
        """Return the pods that elastic quotas count: those that have what they ask for, and who waits."""
        return [
            QuotaPod(worker.pod, worker.holds_resources, worker.is_stopping or worker.record.is_over)
            for worker in self.workers.values()
            if worker.holds_resources or worker.waits
        ]

    def container_changed(self, record: ContainerRecord) -> None:
        """Take in a change the runtime reports."""
        before = self._services.records.get(record.spec.container_id)
        self._services.records.update(record)
        if before is not None and not has_ended(before) and has_ended(record):
            self._report_end(record)
        self.wake(record.spec.pod_uid)

    def wake(self, pod_uid: str) -> None:
        """Let one pod's worker look again."""
        worker = self.workers.get(pod_uid)
        if worker is not None:
            worker.wake()

    def wake_all(self) -> None:
        """Let every worker look again."""
        for worker in self.workers.values():
            worker.wake()

    async def close(self) -> None:
        """Leave all pods as they are and stop working on them."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _report_end(self, record: ContainerRecord) -> None:
        worker = self.workers.get(record.spec.pod_uid)
        if worker is None:
            return
        name = record.spec.container_name
        is_init = any(container.name == name for container in worker.pod.spec.init_containers)
        ended = terminated_state(record)
        self._services.observer.container_ended(
            "init_container" if is_init else "container", ended.exit_code, ended.reason or ""
        )
        if record.oom_killed:
            self._services.events.pod(
                worker.pod, "OOMKilling", f"Container {name} was killed: out of memory", warning=True
            )

    def _begin_waiting(self) -> None:
        held = {_full_name(worker.pod) for worker in self.workers.values()}
        for uid, record in list(self._waiting.items()):
            if _full_name(record.pod) not in held and uid not in self.workers:
                del self._waiting[uid]
                self._begin(record)

    def _begin(self, record: PodRecord) -> None:
        worker = PodWorker(record, self._services)
        self.workers[record.uid] = worker
        task = asyncio.create_task(worker.run(), name=f"pod {'/'.join(_full_name(record.pod))}")
        self._tasks[record.uid] = task
        task.add_done_callback(lambda task: self._ended(record.uid, task))

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        del self._tasks[uid]
        worker = self.workers.pop(uid)
        error = task.exception()
        if error is not None:
            # A fault of ours in one worker must not leave its pod without one.
            logger.error("pod %s: worker failed, beginning it again", uid, exc_info=error)
            self.workers[uid] = worker
            asyncio.get_running_loop().call_later(RESTART_SECONDS, self._begin_again, worker)
            return
        self._begin_waiting()

    def _begin_again(self, failed: PodWorker) -> None:
        self._begin(failed.record)
        if failed.is_deleting:
            self.workers[failed.record.uid].delete()


def stored_records(store: Store) -> list[PodRecord]:
    """Read every pod that the store knows; one that cannot be read is reported and left out."""
    records = []
    for body in store.objects(KIND):
        try:
            records.append(decode(body))
        except msgspec.DecodeError as error:
            logger.error("%s: a stored pod cannot be read and is left out: %s", store.path, error)
    return records


def _content(pod: Pod) -> str | None:
    return pod.metadata.annotations.get(CONTENT_HASH)


def _full_name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name
