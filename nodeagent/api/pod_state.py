"""A pod in one line: the words kubectl shows in READY, STATUS and RESTARTS."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from nodeagent.api.ages import age, moment
from nodeagent.api.pod import ContainerState, ContainerStatus, Pod
from nodeagent.api.resources import is_restartable_init

_INITIALIZING = "PodInitializing"
_TERMINAL = ("Failed", "Succeeded")


@dataclass(frozen=True, slots=True)
class PodState:
    """What a table says of a pod."""

    ready: str
    status: str
    restarts: str


def pod_state(pod: Pod, now: datetime) -> PodState:
    """Sum a pod's containers up as kubectl does."""
    sidecars = {c.name for c in pod.spec.init_containers if is_restartable_init(c)}
    init, regular = pod.status.init_container_statuses, pod.status.container_statuses
    blocked = _blocked_init(pod, sidecars)
    ready = [c for c in init if c.name in sidecars and c.started and c.ready]
    counted: Iterable[ContainerStatus] = init
    reason = blocked or pod.status.reason or pod.status.phase or "Unknown"
    if blocked is None or _is_true(pod, "Initialized"):
        ready += [c for c in regular if c.ready and c.state.running]
        counted = [*(c for c in init if c.name in sidecars), *regular]
        reason = _regular_reason(pod)
    total = len(pod.spec.containers) + len(sidecars)
    return PodState(f"{len(ready)}/{total}", _with_deletion(pod, reason), _restarts(counted, now))


def _blocked_init(pod: Pod, sidecars: set[str]) -> str | None:
    """The first init container that holds the pod up, in words; None when all are through."""
    for number, container in enumerate(pod.status.init_container_statuses):
        state = container.state
        if state.terminated and state.terminated.exit_code == 0:
            continue
        if container.name in sidecars and container.started:
            continue
        if state.terminated:
            return f"Init:{_terminated_reason(state)}"
        if state.waiting and state.waiting.reason not in (None, "", _INITIALIZING):
            return f"Init:{state.waiting.reason}"
        return f"Init:{number}/{len(pod.spec.init_containers)}"
    return None


def _regular_reason(pod: Pod) -> str:
    status = pod.status
    if status.phase == "Failed" and status.reason:
        # Evicted, OutOfcpu: why the pod failed says more than how its containers ended.
        return status.reason
    reason = status.reason or status.phase or "Unknown"
    running = False
    for container in reversed(status.container_statuses):
        state = container.state
        if state.waiting and state.waiting.reason:
            reason = state.waiting.reason
        elif state.terminated:
            reason = _terminated_reason(state)
        elif container.ready and state.running:
            running = True
    if reason == "Completed" and running:
        return "Running" if _is_true(pod, "Ready") else "NotReady"
    return reason


def _terminated_reason(state: ContainerState) -> str:
    assert state.terminated is not None
    ended = state.terminated
    return ended.reason or (f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}")


def _with_deletion(pod: Pod, reason: str) -> str:
    leaving = pod.metadata.deletion_timestamp and pod.status.phase not in _TERMINAL
    return "Terminating" if leaving else reason


def _restarts(containers: Iterable[ContainerStatus], now: datetime) -> str:
    found = list(containers)
    count = sum(container.restart_count for container in found)
    ends = [c.last_state.terminated.finished_at for c in found if c.last_state.terminated]
    last = max((end for end in map(moment, ends) if end), default=None)
    return f"{count} ({age(last, now)} ago)" if count and last else str(count)


def _is_true(pod: Pod, condition: str) -> bool:
    return any(c.type == condition and c.status == "True" for c in pod.status.conditions)
