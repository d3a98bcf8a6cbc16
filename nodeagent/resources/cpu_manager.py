"""Keeps the exclusive CPUs of the node: the policy's decisions, made durable."""

from collections.abc import Mapping
from pathlib import Path

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet
from nodeagent.resources import cpu_checkpoint
from nodeagent.resources.checkpoint import write_atomically
from nodeagent.resources.cpu_policy import CpuAllocation, StaticCpuPolicy
from nodeagent.resources.cpu_state import CpuState
from nodeagent.resources.hints import Hint, Hints
from nodeagent.resources.requests import ContainerRequest, Kind, PodRequest

ContainerIds = Mapping[str, tuple[str, str]]
ActivePods = Mapping[str, frozenset[str]]
"""Pod UID -> the names of its containers, for every pod that may hold resources."""


class CpuManager:
    """The state and its file. Changes are made in memory and reach the file with `save`.

    Without a policy (`none`) nobody gets CPUs of his own, and the file says so.
    """

    def __init__(
        self, policy: StaticCpuPolicy | None, directory: Path, container_ids: ContainerIds | None = None
    ) -> None:
        """Load the state file. Raises StateFileError; the file is untouched then."""
        self.policy = policy
        self._path = directory / cpu_checkpoint.FILE_NAME
        self._name = policy.name if policy else "none"
        loaded = cpu_checkpoint.load(self._path, self._name, container_ids or {})
        self._saved = loaded
        self.state = loaded or CpuState()
        self._reusable: tuple[str, CpuSet] = ("", NO_CPUS)
        self.problem = ""
        """What is wrong between the stored state and this machine; empty where they agree."""
        if policy:
            self.state, self.problem = policy.start(self.state)
        self.save()

    def save(self) -> None:
        """Write the state if it changed: default set and entries in one step."""
        if self.state != self._saved:
            write_atomically(self._path, cpu_checkpoint.encode(self._name, self.state))
            self._saved = self.state

    def reusable(self, pod_uid: str) -> CpuSet:
        """Return the CPUs of the pod's finished init containers that its next container may have."""
        return self._reusable[1] if self._reusable[0] == pod_uid else NO_CPUS

    def container_hints(self, pod: PodRequest, container: ContainerRequest) -> Hints:
        if not self.policy:
            return None
        return self.policy.container_hints(self.state, self.reusable(pod.uid), pod, container)

    def pod_hints(self, pod: PodRequest) -> Hints:
        return self.policy.pod_hints(self.state, self.reusable(pod.uid), pod) if self.policy else None

    def allocate(self, pod: PodRequest, container: ContainerRequest, affinity: Hint) -> CpuAllocation | None:
        """Give a container its CPUs; None where it shares. Raises what the policy raises."""
        if not self.policy:
            return None
        reusable = self.reusable(pod.uid)
        self.state, allocation = self.policy.allocate(self.state, reusable, pod, container, affinity.mask)
        if allocation:
            reusable = (
                reusable | allocation.cpus if container.kind is Kind.INIT else reusable - allocation.cpus
            )
            self._reusable = (pod.uid, reusable)
        return allocation

    def release(self, pod_uid: str, container: str) -> None:
        self.state = self.state.release(pod_uid, container)

    def release_stale(self, active: ActivePods) -> None:
        """Give back what belongs to no container of an active pod."""
        for uid, containers in self.state.assignments.items():
            for name in containers:
                if name not in active.get(uid, ()):
                    self.release(uid, name)

    def situation(self, pod: PodRequest, container: ContainerRequest | None) -> str:
        return self.policy.situation(self.state, pod, container) if self.policy else ""
