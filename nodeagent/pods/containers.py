"""What the runtime last said of every container, by pod."""

from collections import defaultdict

from nodeagent.runtime.process import ProcessRuntime
from nodeagent.runtime.spec import ContainerRecord


class ContainerRecords:
    """What the runtime last said of every container, by pod."""

    def __init__(self) -> None:
        self._by_pod: dict[str, dict[str, ContainerRecord]] = defaultdict(dict)

    def update(self, record: ContainerRecord) -> None:
        """Take in what the runtime says; news over one connection may be older than over another."""
        known = self.get(record.spec.container_id)
        if known is not None and known.state == "exited" and record.state != "exited":
            return
        self._by_pod[record.spec.pod_uid][record.spec.container_id] = record

    def get(self, container_id: str) -> ContainerRecord | None:
        """Return one container's record."""
        return next((found[container_id] for found in self._by_pod.values() if container_id in found), None)

    def of(self, pod_uid: str) -> tuple[ContainerRecord, ...]:
        """Return the records of one pod."""
        return tuple(self._by_pod.get(pod_uid, {}).values())

    def forget(self, pod_uid: str) -> None:
        """Drop a pod."""
        self._by_pod.pop(pod_uid, None)

    def pod_uids(self) -> set[str]:
        """Return the pods of which there are records."""
        return set(self._by_pod)

    def everything(self) -> tuple[ContainerRecord, ...]:
        """Return the records of all pods."""
        return tuple(record for records in self._by_pod.values() for record in records.values())


async def forget_pod(runtime: ProcessRuntime, records: ContainerRecords, pod_uid: str) -> None:
    """Let the runtime and the agent forget a pod's containers."""
    for record in records.of(pod_uid):
        await runtime.forget(record.spec.container_id)
    records.forget(pod_uid)
