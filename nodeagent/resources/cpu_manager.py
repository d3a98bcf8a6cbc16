"""Keeps the exclusive CPUs of the node: the policy's decisions, made durable."""

from collections.abc import Mapping

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet
from nodeagent.resources import cpu_checkpoint
from nodeagent.resources.checkpoint import StateFile
from nodeagent.resources.cpu_policy import CpuAllocation, StaticCpuPolicy
from nodeagent.resources.cpu_state import CpuState
from nodeagent.resources.errors import AllocationError
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
        self, policy: StaticCpuPolicy | None, file: StateFile, container_ids: ContainerIds | None = None
    ) -> None:
        """Load the file, unless it has a problem already. Raises StateFileError; it is untouched then."""
        self.policy = policy
        self._file = file
        self._name = policy.name if policy else "none"
        loaded, is_current = cpu_checkpoint.load(file, self._name, container_ids or {})
        # The container ids of the old layout are good for this start only.
        self._saved = loaded if is_current else None
        self.state = loaded or CpuState()
        self._reusable: tuple[str, CpuSet] = ("", NO_CPUS)
        self._absent = self.state.known & policy.offline if policy else NO_CPUS
        self.pinning_requests = 0
        self.pinning_errors = 0
        self.problem = ""
        """What is wrong between the stored state and this machine; empty where they agree."""
        if policy:
            self.state, self.problem = policy.start(self.state, self._absent)
        self.save()

    @property
    def visible(self) -> CpuState:
        """The state without CPUs that are offline for now; what is owned does not change with that."""
        return self.state.without(self._absent)

    @property
    def takes_whole_cores(self) -> bool:
        """Whether the option full-pcpus-only is on."""
        return self.policy is not None and self.policy.takes_whole_cores

    def try_policy(self, policy: StaticCpuPolicy) -> None:
        """Go over to a policy under which the stored state is right, if it is one."""
        _, problem = policy.start(self.state, self._absent)
        if not problem:
            self.policy, self.problem = policy, ""

    def adapt(self, policy: StaticCpuPolicy) -> None:
        """Go on with the same machine after CPUs went or came. New CPUs join the shared pool."""
        self.policy = policy
        new = policy.initial_default - self.state.known
        self.state = CpuState(self.state.default | new, self.state.assignments)
        self._absent = self.state.known - policy.online

    def save(self) -> None:
        """Write the state if it changed or is gone: default set and entries in one step."""
        changed = self.state != self._saved or self._file.is_missing
        if changed and self._file.write(lambda: cpu_checkpoint.encode(self._name, self.state)):
            self._saved = self.state

    def reusable(self, pod_uid: str) -> CpuSet:
        """Return the CPUs of the pod's finished init containers that its next container may have."""
        return self._reusable[1] if self._reusable[0] == pod_uid else NO_CPUS

    def container_hints(self, pod: PodRequest, container: ContainerRequest) -> Hints:
        if not self.policy:
            return None
        return self.policy.container_hints(self.visible, self.reusable(pod.uid), pod, container)

    def pod_hints(self, pod: PodRequest) -> Hints:
        return self.policy.pod_hints(self.visible, self.reusable(pod.uid), pod) if self.policy else None

    def allocate(self, pod: PodRequest, container: ContainerRequest, affinity: Hint) -> CpuAllocation | None:
        """Give a container its CPUs; None where it shares. Raises what the policy raises."""
        if not self.policy:
            return None
        reusable = self.reusable(pod.uid)
        self.pinning_requests += container.cpus > 0
        try:
            allocation = self.policy.allocate(self.visible, reusable, pod, container, affinity.mask)
        except AllocationError:
            self.pinning_errors += 1
            raise
        if allocation:
            if not allocation.kept:
                self.state = self.state.assign(pod.uid, container.name, allocation.cpus)
            reusable = (
                reusable | allocation.cpus if container.kind is Kind.INIT else reusable - allocation.cpus
            )
            self._reusable = (pod.uid, reusable)
        return allocation

    def forget_reusable(self) -> None:
        """Begin with a pod: what its init containers leave is noted while it is admitted."""
        self._reusable = ("", NO_CPUS)

    def adopt(self, pod_uid: str, container: str, cpus: CpuSet) -> None:
        """Enter CPUs that a running container has."""
        self.state = self.state.assign(pod_uid, container, cpus)

    def release_pod(self, pod_uid: str) -> None:
        for container in self.state.assignments.get(pod_uid, {}):
            self.release(pod_uid, container)

    def release(self, pod_uid: str, container: str) -> None:
        self.state = self.state.release(pod_uid, container)

    def release_stale(self, active: ActivePods) -> None:
        """Give back what belongs to no container of an active pod."""
        for uid, containers in self.state.assignments.items():
            for name in containers:
                if name not in active.get(uid, ()):
                    self.release(uid, name)

    def situation(self, pod: PodRequest, container: ContainerRequest | None) -> str:
        return self.policy.situation(self.visible, pod, container) if self.policy else ""
