"""Who has which CPUs: the value that the CPU manager's state file holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet

Assignments = Mapping[str, Mapping[str, CpuSet]]
"""Pod UID -> container -> CPUs."""


@dataclass(frozen=True, slots=True)
class CpuState:
    """The shared pool (`default`) and the CPUs that belong to single containers."""

    default: CpuSet = NO_CPUS
    assignments: Assignments = field(default_factory=dict)

    @property
    def assigned(self) -> CpuSet:
        mask = 0
        for containers in self.assignments.values():
            for cpus in containers.values():
                mask |= cpus.mask
        return CpuSet(mask)

    @property
    def known(self) -> CpuSet:
        """Every CPU that the state speaks of."""
        return self.default | self.assigned

    def without(self, cpus: CpuSet) -> "CpuState":
        """Return the state as if these CPUs were not there."""
        if not cpus:
            return self
        return CpuState(
            self.default - cpus,
            {
                uid: {name: own - cpus for name, own in containers.items()}
                for uid, containers in self.assignments.items()
            },
        )

    def cpus_of(self, pod_uid: str, container: str) -> CpuSet | None:
        """Return the container's own CPUs, or None where it runs in the shared pool."""
        return self.assignments.get(pod_uid, {}).get(container)

    def assign(self, pod_uid: str, container: str, cpus: CpuSet) -> "CpuState":
        """Give `cpus` to a container and take them out of the shared pool."""
        of_pod = {**self.assignments.get(pod_uid, {}), container: cpus}
        return CpuState(self.default - cpus, {**self.assignments, pod_uid: of_pod})

    def release(self, pod_uid: str, container: str) -> "CpuState":
        """Give a container's CPUs back, except those that other containers of the same pod still have."""
        cpus = self.cpus_of(pod_uid, container)
        if cpus is None:
            return self
        others = {name: kept for name, kept in self.assignments[pod_uid].items() if name != container}
        for kept in others.values():
            cpus -= kept
        rest = {uid: containers for uid, containers in self.assignments.items() if uid != pod_uid}
        if others:
            rest[pod_uid] = others
        return CpuState(self.default | cpus, rest)
