"""What is watched for running out: the signals, the resource and the node condition behind each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nodeagent.api.quantity import BINARY_SI, DECIMAL_SI, Quantity
from nodeagent.stats.hot import HotSample
from nodeagent.stats.summary import FsStats, MemoryStats, Summary


class Signal(StrEnum):
    """An eviction signal, by the name that a KubeletConfiguration gives it."""

    MEMORY_AVAILABLE = "memory.available"
    ALLOCATABLE_MEMORY_AVAILABLE = "allocatableMemory.available"
    NODEFS_AVAILABLE = "nodefs.available"
    NODEFS_INODES_FREE = "nodefs.inodesFree"
    IMAGEFS_AVAILABLE = "imagefs.available"
    IMAGEFS_INODES_FREE = "imagefs.inodesFree"
    CONTAINERFS_AVAILABLE = "containerfs.available"
    CONTAINERFS_INODES_FREE = "containerfs.inodesFree"
    PID_AVAILABLE = "pid.available"
    ALLOCATABLE_PIDS_AVAILABLE = "allocatablePids.available"
    MEMORY_UNSTALLED = "memoryPressure.full"
    IO_UNSTALLED = "ioPressure.full"


OWN_SIGNALS = frozenset((Signal.ALLOCATABLE_PIDS_AVAILABLE, Signal.MEMORY_UNSTALLED, Signal.IO_UNSTALLED))
"""What kubelet has no signal for; only an AgentConfiguration can give them thresholds."""
PRESSURES = frozenset((Signal.MEMORY_UNSTALLED, Signal.IO_UNSTALLED))
"""Shares of time, in percent: what is left of it when all tasks of the node waited for the rest."""


class Filesystem(StrEnum):
    """A filesystem that is watched, each with two signals."""

    NODEFS = "nodefs"
    IMAGEFS = "imagefs"
    CONTAINERFS = "containerfs"

    @property
    def available(self) -> Signal:
        return Signal(f"{self.value}.available")

    @property
    def inodes_free(self) -> Signal:
        return Signal(f"{self.value}.inodesFree")


class Resource(StrEnum):
    """What is scarce, by the name that events and messages use. The order is that of urgency."""

    MEMORY = "memory"
    PIDS = "pids"
    INODES = "inodes"
    EPHEMERAL_STORAGE = "ephemeral-storage"
    IO = "io"


class Condition(StrEnum):
    """A node condition that pressure raises."""

    MEMORY_PRESSURE = "MemoryPressure"
    DISK_PRESSURE = "DiskPressure"
    PID_PRESSURE = "PIDPressure"


RESOURCES: Mapping[Signal, Resource] = {
    Signal.MEMORY_AVAILABLE: Resource.MEMORY,
    Signal.ALLOCATABLE_MEMORY_AVAILABLE: Resource.MEMORY,
    Signal.NODEFS_AVAILABLE: Resource.EPHEMERAL_STORAGE,
    Signal.NODEFS_INODES_FREE: Resource.INODES,
    Signal.IMAGEFS_AVAILABLE: Resource.EPHEMERAL_STORAGE,
    Signal.IMAGEFS_INODES_FREE: Resource.INODES,
    Signal.CONTAINERFS_AVAILABLE: Resource.EPHEMERAL_STORAGE,
    Signal.CONTAINERFS_INODES_FREE: Resource.INODES,
    Signal.PID_AVAILABLE: Resource.PIDS,
    Signal.ALLOCATABLE_PIDS_AVAILABLE: Resource.PIDS,
    Signal.MEMORY_UNSTALLED: Resource.MEMORY,
    Signal.IO_UNSTALLED: Resource.IO,
}
CONDITIONS: Mapping[Resource, Condition] = {
    Resource.MEMORY: Condition.MEMORY_PRESSURE,
    Resource.PIDS: Condition.PID_PRESSURE,
    Resource.INODES: Condition.DISK_PRESSURE,
    Resource.EPHEMERAL_STORAGE: Condition.DISK_PRESSURE,
    Resource.IO: Condition.DISK_PRESSURE,
}
WHOLE_PERCENT = 100
_URGENCY = {resource: place for place, resource in enumerate(Resource)}


def urgency(signal: Signal) -> int:
    """Return the place of a signal when several act at once; memory is first."""
    return _URGENCY[RESOURCES[signal]]


def is_counted(signal: Signal) -> bool:
    """Tell whether a signal counts things (inodes, processes, percent of time) rather than bytes."""
    return signal in PRESSURES or RESOURCES[signal] in (Resource.INODES, Resource.PIDS)


def quantity_of(signal: Signal, amount: int) -> Quantity:
    """Return an amount of a signal as messages spell it."""
    return Quantity.of(amount, DECIMAL_SI if is_counted(signal) else BINARY_SI)


@dataclass(frozen=True, slots=True)
class Observation:
    """What is left of a resource, of how much, and when that was measured (None: it was not said)."""

    available: int
    capacity: int
    time: datetime | None = None


Observations = Mapping[Signal, Observation]


def observe(summary: Summary) -> Observations:
    """Read every signal out of a summary; a signal whose source is unknown is absent."""
    node = summary.node
    found: dict[Signal, Observation] = {}
    _add_memory(found, Signal.MEMORY_AVAILABLE, node.memory)
    for container in node.system_containers:
        if container.name == "pods":
            _add_memory(found, Signal.ALLOCATABLE_MEMORY_AVAILABLE, container.memory)
    _add_filesystem(found, Filesystem.NODEFS, node.fs)
    if node.runtime is not None:
        _add_filesystem(found, Filesystem.IMAGEFS, node.runtime.image_fs)
        _add_filesystem(found, Filesystem.CONTAINERFS, node.runtime.container_fs)
    limits = node.rlimit
    if limits is not None and limits.max_pid is not None and limits.current_processes is not None:
        left = limits.max_pid - limits.current_processes
        # The thresholds of percentages are of what the kernel allows, not of what is left of it.
        found[Signal.PID_AVAILABLE] = Observation(left, limits.max_pid, limits.time)
    return found


def observe_hot(sample: HotSample, time: datetime, filesystems: Sequence[Filesystem] = ()) -> Observations:
    """Read the signals out of a hot sample whose filesystems are, in order, those named.

    The node's memory is what kubelet's measure or the kernel's estimate says, whichever is less: kubelet's
    knows nothing of slab, page tables and socket buffers, and the OOM killer comes for those too.
    """
    found: dict[Signal, Observation] = {}
    if (memory := sample.node_memory) is not None:
        kernel = sample.kernel_available_bytes
        left = memory.available_bytes if kernel is None else min(memory.available_bytes, kernel)
        found[Signal.MEMORY_AVAILABLE] = Observation(left, memory.capacity_bytes, time)
    if (pods := sample.pods_memory) is not None:
        found[Signal.ALLOCATABLE_MEMORY_AVAILABLE] = Observation(
            pods.available_bytes, pods.capacity_bytes, time
        )
    if (tasks := sample.processes) is not None:
        found[Signal.PID_AVAILABLE] = Observation(tasks.maximum - tasks.current, tasks.maximum, time)
    if (tasks := sample.pods_processes) is not None:
        found[Signal.ALLOCATABLE_PIDS_AVAILABLE] = Observation(
            tasks.maximum - tasks.current, tasks.maximum, time
        )
    for signal, stalled in (
        (Signal.MEMORY_UNSTALLED, sample.memory_stalled_percent),
        (Signal.IO_UNSTALLED, sample.io_stalled_percent),
    ):
        if stalled is not None:
            found[signal] = Observation(int(WHOLE_PERCENT - stalled), WHOLE_PERCENT, time)
    for filesystem, figures in zip(filesystems, sample.filesystems, strict=False):
        if figures is not None:
            found[filesystem.available] = Observation(figures.available_bytes, figures.capacity_bytes, time)
            found[filesystem.inodes_free] = Observation(figures.inodes_free, figures.inodes, time)
    return found


def _add_memory(found: dict[Signal, Observation], signal: Signal, memory: MemoryStats | None) -> None:
    if memory is None or memory.available_bytes is None or memory.working_set_bytes is None:
        return
    capacity = memory.available_bytes + memory.working_set_bytes
    found[signal] = Observation(memory.available_bytes, capacity, memory.time)


def _add_filesystem(
    found: dict[Signal, Observation], filesystem: Filesystem, figures: FsStats | None
) -> None:
    if figures is None:
        return
    if figures.available_bytes is not None and figures.capacity_bytes is not None:
        found[filesystem.available] = Observation(
            figures.available_bytes, figures.capacity_bytes, figures.time
        )
    if figures.inodes_free is not None and figures.inodes is not None:
        found[filesystem.inodes_free] = Observation(figures.inodes_free, figures.inodes, figures.time)
