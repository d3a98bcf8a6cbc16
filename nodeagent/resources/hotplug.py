"""What CPUs that went offline or came back mean for the containers that own them."""

from collections.abc import Iterator
from dataclasses import dataclass

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet
from nodeagent.resources.cpu_state import CpuState


@dataclass(frozen=True, slots=True)
class Displacement:
    """A container whose own CPUs changed: it owns `cpus`, and `missing` of them are offline now."""

    pod_uid: str
    container: str
    cpus: CpuSet
    missing: CpuSet

    def __str__(self) -> str:
        if not self.missing:
            return f"all of container {self.container}'s own CPUs are online again: it runs on {self.cpus}"
        left = self.cpus - self.missing
        runs_on = f"on {left}" if left else "in the shared pool"
        return (
            f"CPUs {self.missing} of container {self.container} are offline: it runs {runs_on} "
            f"until they return"
        )


def displacements(owned: CpuState, before: CpuState, after: CpuState) -> Iterator[Displacement]:
    """Compare what containers own with what they could use before and can use after."""
    for uid, containers in owned.assignments.items():
        for name, cpus in containers.items():
            now = after.cpus_of(uid, name) or NO_CPUS
            if before.cpus_of(uid, name) != now:
                yield Displacement(uid, name, cpus, cpus - now)
