"""A pod's status as Kubernetes defines it, computed from its containers' records."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from nodeagent.api.meta import format_time
from nodeagent.api.pod import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
)
from nodeagent.api.qos import qos_class
from nodeagent.api.resources import is_restartable_init
from nodeagent.pods.lifecycle import Plan, Waiting, has_ended, never_started
from nodeagent.runtime.spec import ContainerRecord

# 128 + SIGKILL: what kubelet reports for a container whose end nobody saw.
UNKNOWN_EXIT_CODE = 137
DISRUPTION_TARGET = "DisruptionTarget"


def terminated_state(record: ContainerRecord) -> ContainerStateTerminated:
    """Render an attempt that is over."""
    exit_code = record.exit_code
    message = record.message
    if never_started(record):
        reason = "StartError"
    elif exit_code is None:
        reason, message = "ContainerStatusUnknown", "The exit of the container was not seen"
    elif record.oom_killed:
        reason = "OOMKilled"
    else:
        reason = "Completed" if exit_code == 0 else "Error"
    return ContainerStateTerminated(
        exit_code=UNKNOWN_EXIT_CODE if exit_code is None else exit_code,
        signal=record.signal or None,
        reason=reason,
        message=message or None,
        started_at=record.started_at,
        finished_at=record.finished_at,
        container_id=_identifier(record),
    )


def container_status(
    container: Container, records: Iterable[ContainerRecord], waiting: Waiting | None
) -> ContainerStatus:
    """Render one container from all its attempts; `waiting` says why it does not run, if it should."""
    attempts = sorted(
        (record for record in records if record.spec.container_name == container.name),
        key=lambda record: record.spec.attempt,
    )
    newest = attempts[-1] if attempts else None
    older = attempts[-2] if len(attempts) > 1 else None
    last_terminated = older
    if newest is None:
        reason = waiting or Waiting("ContainerCreating")
        state = _waiting_state(reason)
    elif not has_ended(newest):
        state = ContainerState(running=ContainerStateRunning(started_at=newest.started_at))
    elif waiting is not None:
        state = _waiting_state(waiting)
        last_terminated = newest
    else:
        state = ContainerState(terminated=terminated_state(newest))
    running = state.running is not None
    return ContainerStatus(
        name=container.name,
        state=state,
        last_state=ContainerState(terminated=terminated_state(last_terminated))
        if last_terminated is not None and has_ended(last_terminated)
        else ContainerState(),
        ready=running,
        started=running,
        restart_count=newest.spec.attempt if newest else 0,
        image=container.image or "",
        image_id="",
        container_id=_identifier(newest) if newest else None,
        resources=container.resources,
    )


def pod_status(
    pod: Pod,
    records: Iterable[ContainerRecord],
    plan: Plan,
    *,
    start_time: datetime,
    now: datetime,
    host_ip: str,
) -> PodStatus:
    """Render the status of a pod that was admitted."""
    records = tuple(records)
    apps = tuple(container_status(c, records, plan.waiting.get(c.name)) for c in pod.spec.containers)
    inits = tuple(
        _init_status(c, container_status(c, records, plan.waiting.get(c.name)))
        for c in pod.spec.init_containers
    )
    phase = plan.outcome or _phase(apps, plan)
    return PodStatus(
        phase=phase,
        qos_class=str(qos_class(pod)),
        start_time=format_time(start_time),
        host_ip=host_ip,
        pod_ip=host_ip if pod.spec.host_network else None,
        pod_ips=(PodIP(ip=host_ip),) if pod.spec.host_network else (),
        container_statuses=apps,
        init_container_statuses=inits,
        conditions=_conditions(pod, apps, inits, plan, phase, now),
    )


def failed(
    status: PodStatus, before: PodStatus, reason: str, message: str, is_disruption: bool, now: datetime
) -> PodStatus:
    """Render a pod that was refused or evicted."""
    conditions = status.conditions
    if is_disruption:
        known = {each.type: each for each in before.conditions}.get(DISRUPTION_TARGET)
        disrupted = condition(DISRUPTION_TARGET, "True", "TerminationByKubelet", message, known, now)
        conditions = (*conditions, disrupted)
    return msgspec.structs.replace(
        status, phase="Failed", reason=reason, message=message, conditions=conditions
    )


def unscheduled(pod: Pod, message: str, node_name: str | None, now: datetime) -> PodStatus:
    """Render a pod that waits for room; `node_name` is the node on which others make it."""
    known = {each.type: each for each in pod.status.conditions}.get("PodScheduled")
    scheduled = condition("PodScheduled", "False", "Unschedulable", message, known, now)
    return PodStatus(
        phase="Pending",
        qos_class=str(qos_class(pod)),
        conditions=(scheduled,),
        nominated_node_name=node_name,
    )


def _init_status(container: Container, status: ContainerStatus) -> ContainerStatus:
    if is_restartable_init(container):
        return status
    state = status.state
    completed = state is not None and state.terminated is not None and state.terminated.exit_code == 0
    return msgspec.structs.replace(status, ready=completed)


def _phase(apps: tuple[ContainerStatus, ...], plan: Plan) -> str:
    never_ran = [
        status
        for status in apps
        if status.state and status.state.waiting and not status.last_state.terminated
    ]
    if not plan.initialized or never_ran:
        return "Pending"
    return "Running"


def _conditions(
    pod: Pod,
    apps: tuple[ContainerStatus, ...],
    inits: tuple[ContainerStatus, ...],
    plan: Plan,
    phase: str,
    now: datetime,
) -> tuple[PodCondition, ...]:
    over = phase in ("Succeeded", "Failed")
    begun = any(status.container_id for status in (*apps, *inits))
    unready = [status.name for status in apps if not status.ready]
    wanted = {
        "PodReadyToStartContainers": ("True" if begun and not over else "False", "", ""),
        "Initialized": _initialized(inits, plan, over),
        "Ready": _readiness(unready, phase),
        "ContainersReady": _readiness(unready, phase),
        "PodScheduled": ("True", "", ""),
    }
    known: Mapping[str, PodCondition] = {condition.type: condition for condition in pod.status.conditions}
    return tuple(
        condition(kind, status, reason, message, known.get(kind), now)
        for kind, (status, reason, message) in wanted.items()
    )


def condition(
    kind: str, status: str, reason: str, message: str, before: PodCondition | None, now: datetime
) -> PodCondition:
    """Return a condition whose transition time moves only when its status does."""
    changed = before is None or before.status != status
    return PodCondition(
        type=kind,
        status=status,
        reason=reason or None,
        message=message or None,
        last_transition_time=format_time(now) if changed or before is None else before.last_transition_time,
    )


def _initialized(inits: tuple[ContainerStatus, ...], plan: Plan, over: bool) -> tuple[str, str, str]:
    if plan.initialized:
        return ("True", "PodCompleted", "") if over and plan.outcome == "Succeeded" else ("True", "", "")
    incomplete = " ".join(status.name for status in inits if not status.ready)
    return "False", "ContainersNotInitialized", f"containers with incomplete status: [{incomplete}]"


def _readiness(unready: list[str], phase: str) -> tuple[str, str, str]:
    if phase == "Succeeded":
        return "False", "PodCompleted", ""
    if phase == "Failed":
        return "False", "PodFailed", ""
    if unready:
        return "False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return "True", "", ""


def _waiting_state(waiting: Waiting) -> ContainerState:
    return ContainerState(
        waiting=ContainerStateWaiting(reason=waiting.reason, message=waiting.message or None)
    )


def _identifier(record: ContainerRecord) -> str:
    return f"nodeagent://{record.spec.container_id}"
