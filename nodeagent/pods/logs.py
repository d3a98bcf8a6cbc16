"""Where the log of a pod's container lies."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.lifecycle import has_ended


@dataclass(frozen=True, slots=True)
class ContainerLog:
    """A log, and whether more of it may come."""

    path: str
    is_running: Callable[[], bool]


def find_log(
    records: ContainerRecords, pod_uid: str, container: str, *, previous: bool
) -> ContainerLog | None:
    """Return the log of the latest attempt, or of the one before it; None where there is none."""
    attempts = [each for each in records.of(pod_uid) if each.spec.container_name == container]
    if not attempts:
        return None
    latest = max(attempts, key=lambda each: each.spec.attempt).spec
    if previous:
        before = Path(latest.log_path).with_name(f"{latest.attempt - 1}.log")
        return ContainerLog(str(before), lambda: False) if before.is_file() else None

    def is_running() -> bool:
        record = records.get(latest.container_id)
        return record is not None and not has_ended(record)

    return ContainerLog(latest.log_path, is_running)
