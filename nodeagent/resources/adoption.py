"""Pods that run already keep what they have, whatever became of the files, the settings or the machine."""

from nodeagent.resources.cpu_manager import CpuManager
from nodeagent.resources.cpu_policy import CpuAllocation
from nodeagent.resources.device_manager import DeviceManager
from nodeagent.resources.errors import AllocationError
from nodeagent.resources.hints import Hint
from nodeagent.resources.memory_manager import MemoryManager
from nodeagent.resources.memory_policy import MemoryAllocation
from nodeagent.resources.pod_admission import ContainerDecision, PodDecision
from nodeagent.resources.requests import ContainerRequest, Kind, PodRequest
from nodeagent.resources.settings import LiveContainer


def adopt(
    pod: PodRequest, live: dict[tuple[str, str], LiveContainer], cpus: CpuManager, memory: MemoryManager
) -> None:
    """Enter what running containers of the pod have and the state does not know. Takes them out of `live`."""
    for container in pod.containers:
        seen = live.pop((pod.uid, container.name), None)
        if seen is None:
            continue
        policy = cpus.policy
        if (
            policy
            and container.cpus
            and cpus.state.cpus_of(pod.uid, container.name) is None
            and len(seen.cpus) == container.cpus
            and seen.cpus <= policy.free(cpus.visible)
        ):
            cpus.adopt(pod.uid, container.name, seen.cpus)
        if seen.mems:
            try:
                memory.allocate(pod, container, Hint(seen.mems.mask, False))
            except AllocationError:
                # It has no room where it runs now: the admission will find it another place, or say so.
                continue


def kept(
    pod: PodRequest, cpus: CpuManager, memory: MemoryManager, devices: DeviceManager
) -> PodDecision | None:
    """Return the admission of a pod that holds all it asks for; None where there is something to decide."""
    decisions = []
    for container in pod.containers:
        allocations = _held(pod, container, cpus, memory, devices)
        if allocations is None:
            return None
        decisions.append(ContainerDecision(container.name, allocations=allocations))
    if not any(decision.allocations for decision in decisions):
        return None
    return PodDecision(True, tuple(decisions))


def _held(
    pod: PodRequest,
    container: ContainerRequest,
    cpus: CpuManager,
    memory: MemoryManager,
    devices: DeviceManager,
) -> tuple[object, ...] | None:
    held: list[object] = []
    if cpus.policy and container.cpus:
        own = cpus.state.cpus_of(pod.uid, container.name)
        if own is None or len(own) != container.cpus:
            return None
        held.append(CpuAllocation(container.cpus, own, kept=True))
    # Finished init containers have given their memory back.
    if memory.policy and container.memory and container.kind is not Kind.INIT:
        blocks = memory.state.blocks_of(pod.uid, container.name)
        if blocks is None:
            return None
        held.append(MemoryAllocation(blocks, kept=True))
    if devices.needs(container):
        devices_held = devices.kept(pod.uid, container)
        if devices_held is None:
            return None
        held.append(devices_held)
    return tuple(held)
