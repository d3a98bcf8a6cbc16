"""What the kernel's OOM killer did, told to those it concerns: the pod, or the node."""

import logging
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from nodeagent.api.pod import Pod
from nodeagent.pods.events import EventRecorder
from nodeagent.runtime.spec import ContainerRecord
from nodeagent.stats.kernel_log import KernelLog, OomKill

logger = logging.getLogger(__name__)


class Scope(StrEnum):
    """Whose memory had run out."""

    SYSTEM = "system"
    PODS = "pods"
    """Of all pods together, or of a QoS class."""
    POD = "pod"
    OTHER = "other"


class Containers(Protocol):
    """The known containers: `nodeagent.pods.containers.ContainerRecords`."""

    def everything(self) -> Iterable[ContainerRecord]: ...


class OomKillReporter:
    """Turns kills into events and counts."""

    def __init__(
        self,
        kubepods: str,
        containers: Containers,
        pods: Callable[[], Iterable[Pod]],
        events: EventRecorder,
        count: Callable[[Scope], None],
    ) -> None:
        self._kubepods = kubepods
        self._containers = containers
        self._pods = pods
        self._events = events
        self._count = count
        self._log: KernelLog | None = None

    def watch(self, path: Path) -> None:
        """Follow the kernel's log; without the right to, the pods' own counters tell of their kills alone."""
        try:
            self._log = KernelLog(path, self.killed)
        except OSError as error:
            logger.warning("%s cannot be read (%s): kills by the kernel are seen in pods only", path, error)

    def close(self) -> None:
        """Stop following."""
        if self._log is not None:
            self._log.close()

    def killed(self, kill: OomKill) -> None:
        """Count a kill, and tell the pod or the node."""
        record = self._record_of(kill.cgroup)
        scope = self._scope(kill.limit, record)
        self._count(scope)
        victim = f"victim process: {kill.process}, pid: {kill.pid}"
        if scope is Scope.SYSTEM:
            # kubelet's words.
            self._events.node("SystemOOM", f"System OOM encountered, {victim}", warning=True)
        elif scope is Scope.PODS:
            self._events.node("PodsOOM", f"Pods reached the limit of {kill.limit}, {victim}", warning=True)
        pod = self._pod_of(record)
        if pod is not None and record is not None:
            place = f"at the limit of {kill.limit}" if kill.limit is not None else "on the whole machine"
            whose = f"Process {kill.process} (pid {kill.pid}) of container {record.spec.container_name}"
            self._events.pod(pod, "OOMKilling", f"{whose} was killed: out of memory {place}", warning=True)

    def _record_of(self, cgroup: str) -> ContainerRecord | None:
        """Return the container whose leaf it is, or above which it made cgroups of its own."""
        for record in self._containers.everything():
            if f"{cgroup}/".startswith(f"{record.spec.cgroup}/"):
                return record
        return None

    def _pod_of(self, record: ContainerRecord | None) -> Pod | None:
        if record is None:
            return None
        return next((pod for pod in self._pods() if pod.metadata.uid == record.spec.pod_uid), None)

    def _scope(self, limit: str | None, record: ContainerRecord | None) -> Scope:
        if limit is None:
            return Scope.SYSTEM
        if record is not None and f"{limit}/".startswith(f"{record.spec.pod_cgroup}/"):
            return Scope.POD
        return Scope.PODS if f"{limit}/".startswith(f"{self._kubepods}/") else Scope.OTHER
