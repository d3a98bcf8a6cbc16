"""What every pod's worker shares, and the answer that it may get at the node's door."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodeagent.api.pod import Pod
from nodeagent.clock import Clock
from nodeagent.pods.cgroups import PodCgroups
from nodeagent.pods.containers import ContainerRecords
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.launch import LaunchSettings
from nodeagent.pods.observer import PodObserver
from nodeagent.resources.device_manager import Device
from nodeagent.runtime.process import ProcessRuntime
from nodeagent.store import Store


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod may not run here now."""

    reason: str
    message: str
    # Others are ending to make room for it.
    nominated: bool = False


@dataclass(frozen=True, slots=True)
class Services:
    """What every worker shares."""

    clock: Clock
    runtime: ProcessRuntime
    cgroups: PodCgroups
    store: Store
    events: EventRecorder
    launch: LaunchSettings
    memory_capacity_bytes: int
    longest_backoff_seconds: float
    admit: Callable[[Pod], Pod | Refusal]
    starting: Callable[[Pod, str], None]
    release: Callable[[str], None]
    may_return: Callable[[], bool]
    records: ContainerRecords
    observer: PodObserver
    # Told how a pod stands whenever that has changed, and when it is gone.
    publish: Callable[[Pod], None] = lambda pod: None
    gone: Callable[[Pod], None] = lambda pod: None
    devices_of: Callable[[str, str], Sequence[Device]] = lambda pod_uid, container: ()
