"""A CPU state file that does not suit this machine: what differs, and what can be saved for running pods."""

from nodeagent.hardware.cpuset import NO_CPUS, CpuSet
from nodeagent.resources.cpu_policy import StaticCpuPolicy
from nodeagent.resources.cpu_state import CpuState


def cpu_differences(policy: StaticCpuPolicy, state: CpuState) -> tuple[str, ...]:
    """Say which CPUs the file and the machine do not have in common."""
    known = state.default | state.assigned
    missing, added = known - policy.initial_default, policy.initial_default - known
    said = []
    if missing:
        said.append(f"CPUs {missing} are in the file but cannot be used on this machine")
    if added:
        said.append(f"CPUs {added} of this machine are not in the file")
    return tuple(said)


def salvaged(policy: StaticCpuPolicy, state: CpuState) -> CpuState:
    """Keep every container's CPUs as far as this machine has them and no other pod does.

    What the shared pool is follows from that. Reserved CPUs that a running container has stay with it, and
    are not given away again.
    """
    usable = policy.online | policy.offline
    taken = NO_CPUS
    assignments: dict[str, dict[str, CpuSet]] = {}
    for uid, containers in state.assignments.items():
        of_pod = {name: (cpus & usable) - taken for name, cpus in containers.items()}
        assignments[uid] = {name: cpus for name, cpus in of_pod.items() if cpus}
        for cpus in of_pod.values():
            taken |= cpus
    kept = {uid: containers for uid, containers in assignments.items() if containers}
    return CpuState((policy.initial_default | state.default & policy.offline) - taken, kept)
