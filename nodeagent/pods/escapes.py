"""Processes that left their pod: outside its cgroups nothing limits, counts or ends them."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nodeagent.api.pod import Pod
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.lifecycle import has_ended
from nodeagent.runtime.spec import ContainerRecord

# Of one container; a bomb would not be walked through to its end.
MOST_PROCESSES = 1000
_NAME = re.compile(r"^Name:\t(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Escape:
    """A process of a container that runs outside its pod's slice."""

    record: ContainerRecord
    pid: int
    process: str
    cgroup: str

    def __str__(self) -> str:
        return (
            f"Process {self.process} (pid {self.pid}) of container {self.record.spec.container_name} runs in "
            f"/{self.cgroup}, outside its pod: no limit of the pod holds for it, and it outlives the pod"
        )


def find_escapes(proc_root: Path, running: Iterable[ContainerRecord]) -> list[Escape]:
    """Look at each container's first process and its descendants; who has lost its parent is not seen.

    It takes a while: call it in a thread.
    """
    return [escape for record in running for escape in _escapes_of(proc_root, record)]


async def report_escapes(
    proc_root: Path, records: Iterable[ContainerRecord], pods: Iterable[Pod], events: EventRecorder
) -> None:
    """Tell each pod which of its processes run elsewhere."""
    running = [record for record in records if not has_ended(record)]
    by_uid = {pod.metadata.uid: pod for pod in pods}
    for escape in await asyncio.to_thread(find_escapes, proc_root, running):
        pod = by_uid.get(escape.record.spec.pod_uid)
        if pod is not None:
            events.pod(pod, "ProcessEscaped", str(escape), warning=True)


def _escapes_of(proc_root: Path, record: ContainerRecord) -> Iterator[Escape]:
    found = [record.pid]
    for pid in found:
        directory = proc_root / str(pid)
        cgroup = _text(directory / "cgroup").removeprefix("0::/").rstrip("\n")
        if cgroup and not f"{cgroup}/".startswith(f"{record.spec.pod_cgroup}/"):
            name = _NAME.search(_text(directory / "status"))
            yield Escape(record, pid, name[1] if name else "?", cgroup)
        if len(found) < MOST_PROCESSES:
            found += map(int, _text(directory / f"task/{pid}/children").split())


def _text(path: Path) -> str:
    """Return a file's text; a process that has ended has none."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
