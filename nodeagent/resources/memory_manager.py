"""Keeps the memory of single containers: the policy's decisions, made durable."""

from nodeagent.resources import memory_books, memory_checkpoint
from nodeagent.resources.checkpoint import StateFile
from nodeagent.resources.cpu_manager import ActivePods
from nodeagent.resources.errors import AllocationError
from nodeagent.resources.hints import Hint, Hints
from nodeagent.resources.memory_policy import MemoryAllocation, StaticMemoryPolicy
from nodeagent.resources.memory_state import MemoryState
from nodeagent.resources.requests import ContainerRequest, Kind, PodRequest


class MemoryManager:
    """The state and its file. Changes are made in memory and reach the file with `save`.

    Without a policy (`None`) nobody gets memory of his own, and the file says so.
    """

    def __init__(self, policy: StaticMemoryPolicy | None, file: StateFile) -> None:
        """Load the file, unless it has a problem already. Raises StateFileError; it is untouched then."""
        self.policy = policy
        self._file = file
        self._name = policy.name if policy else "None"
        loaded = memory_checkpoint.load(file, self._name)
        self._saved = loaded
        self.state = loaded or MemoryState()
        self.pinning_requests = 0
        self.pinning_errors = 0
        self.problem = ""
        """What is wrong between the stored state and this machine; empty where they agree."""
        if policy:
            self.state, self.problem = memory_books.start(policy.unused, self.state)
        self.save()

    def adapt_to_drift(self) -> bool:
        """Take over this boot's totals of the NUMA nodes, if nothing else is the problem."""
        adapted = memory_books.adapt_to_drift(self.policy.unused, self.state) if self.policy else None
        if adapted is None:
            return False
        self.state, self.problem = adapted, ""
        return True

    def save(self) -> None:
        """Write the state if it changed: books and entries in one step."""
        changed = self.state != self._saved or self._file.is_missing
        if changed and self._file.write(lambda: memory_checkpoint.encode(self._name, self.state)):
            self._saved = self.state

    def container_hints(self, pod: PodRequest, container: ContainerRequest) -> Hints:
        return self.policy.container_hints(self.state, pod, container) if self.policy else None

    def pod_hints(self, pod: PodRequest) -> Hints:
        return self.policy.pod_hints(self.state, pod) if self.policy else None

    def allocate(
        self, pod: PodRequest, container: ContainerRequest, affinity: Hint
    ) -> MemoryAllocation | None:
        """Give a container its memory; None where it has none of its own. Raises AllocationError."""
        if not self.policy:
            return None
        self.pinning_requests += container.memory != ()
        try:
            self.state, allocation = self.policy.allocate(self.state, pod, container, affinity)
        except AllocationError:
            self.pinning_errors += 1
            raise
        return allocation

    def release_pod(self, pod_uid: str) -> None:
        for container in self.state.blocks.get(pod_uid, {}):
            self.release(pod_uid, container)

    def release(self, pod_uid: str, container: str) -> None:
        self.state = self.state.release(pod_uid, container)

    def release_init(self, pod: PodRequest, starting: str) -> None:
        """Give back what finished init containers hold when the container `starting` is created."""
        for container in pod.containers:
            if container.name == starting:
                return
            if container.kind is Kind.INIT:
                self.release(pod.uid, container.name)

    def release_stale(self, active: ActivePods) -> None:
        """Give back what belongs to no container of an active pod."""
        for uid, containers in self.state.blocks.items():
            for name in containers:
                if name not in active.get(uid, ()):
                    self.release(uid, name)

    def situation(self, pod: PodRequest, container: ContainerRequest | None) -> str:
        return self.policy.situation(self.state, pod, container) if self.policy else ""
