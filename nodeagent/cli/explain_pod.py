"""A pod explained: why it is here or not, where, within which limits, and what befell it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nodeagent.api.ages import age
from nodeagent.api.pod import ContainerStatus, Pod
from nodeagent.api.qos import pod_priority, qos_class
from nodeagent.cli.amounts import comparison_sentence
from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError
from nodeagent.cli.decisions import FetchedDecision, fetch_decisions
from nodeagent.cli.explain_eviction import eviction_text
from nodeagent.cli.live_limits import LiveLimits, limit_sentences, limits_data, read_limits
from nodeagent.cli.objects import Fetched, fetch_pods, goes_by
from nodeagent.pods.decisions import AdmissionRecord
from nodeagent.stats.live_tree import LiveCgroup

INDENT = "  "


@dataclass(frozen=True, slots=True)
class ExplainedPod:
    """What is known of one pod. `pod` is None when it has gone and only decisions are left."""

    namespace: str
    name: str
    pod: Fetched[Pod] | None
    decisions: Sequence[FetchedDecision]
    limits: LiveLimits


def read_pod(
    client: AgentClient, namespace: str, name: str, cgroup_root: Path, proc_root: Path
) -> ExplainedPod:
    """Ask the agent, and read the pod's cgroups. Raises CommandError when nothing is known of the pod."""
    pod = next((p for p in fetch_pods(client, namespace) if goes_by(p.value, name)), None)
    name = pod.value.metadata.name if pod else name
    decisions = fetch_decisions(client, pod=f"{namespace}/{name}")
    if pod is None and not decisions:
        raise CommandError(
            f"pod {namespace}/{name} is not here, and no decision about it is remembered; "
            "'nodeagent get pods -A' lists the pods"
        )
    limits = read_limits(client, pod.value, cgroup_root, proc_root) if pod else LiveLimits()
    return ExplainedPod(namespace, name, pod, decisions, limits)


def pod_text(explained: ExplainedPod, now: datetime) -> str:
    """Everything as sentences."""
    return "\n".join(_lines(explained, now))


def pod_data(explained: ExplainedPod) -> dict[str, Any]:
    """Everything as data."""
    limits = explained.limits
    data: dict[str, Any] = {"namespace": explained.namespace, "name": explained.name}
    if explained.pod is not None:
        data["pod"] = explained.pod.raw
    data["limits"] = limits_data(limits)
    if limits.oom_kills is not None:
        data["oomKills"] = limits.oom_kills
    return data | {"decisions": [decision.raw for decision in explained.decisions]}


def _lines(explained: ExplainedPod, now: datetime) -> Iterator[str]:
    pod = explained.pod.value if explained.pod else None
    name = f"{explained.namespace}/{explained.name}"
    if pod is None:
        yield f"Pod {name} is not on this node now."
    else:
        yield (
            f"Pod {name} (uid {pod.metadata.uid}) is {qos_class(pod)}, has priority {pod_priority(pod)} "
            f"and is {pod.status.phase}."
        )
        if pod.status.reason:
            yield f"{INDENT}{pod.status.reason}: {(pod.status.message or '').strip()}"
    yield from _section("Admission", _admission(explained, now))
    if pod is not None:
        yield from _section("Placement", _placement(explained.limits, pod))
        yield from _section("Limits", _limits(explained.limits, pod))
        yield from _section("Restarts", _restarts(pod, now))
        yield from _section("OOM kills", _oom_kills(explained.limits, pod, now))
    yield from _section("Evictions", _evictions(explained.decisions))


def _section(title: str, sentences: Iterator[str]) -> Iterator[str]:
    lines = [f"{INDENT}{line}" for sentence in sentences for line in sentence.splitlines()]
    if lines:
        yield from (title, *lines)


def _admission(explained: ExplainedPod, now: datetime) -> Iterator[str]:
    records = [each.value.admission for each in explained.decisions if each.value.admission is not None]
    if explained.pod is not None:
        uid = explained.pod.value.metadata.uid
        records = [record for record in records if record.uid == uid]
    if not records:
        yield "No record of it is left."
        return
    latest, *earlier = records
    yield from _verdict(latest, now)
    yield from latest.policy
    yield from (comparison_sentence(comparison) for comparison in latest.comparisons)
    yield from latest.failures
    yield from latest.preemption
    yield from latest.resources
    for record in earlier:
        yield f"before: {next(_verdict(record, now))}"


def _verdict(record: AdmissionRecord, now: datetime) -> Iterator[str]:
    when = _moment(record.decided_at, now)
    if record.admitted:
        yield f"admitted {when}"
        return
    often = ""
    if record.first_decided_at is not None:
        often = f", {record.times} times since {_moment(record.first_decided_at, now)}"
    yield f"refused {when}{often}: {record.reason}: {record.message.strip()}"


def _placement(limits: LiveLimits, pod: Pod) -> Iterator[str]:
    if not limits.levels:
        yield "It has no cgroup on this machine now."
    for level in limits.levels:
        cpus = level.values.get("cpuset.cpus.effective")
        memory = level.values.get("cpuset.mems")
        if level.kind != "container" or not cpus:
            continue
        nodes = f" and on the memory of NUMA nodes {memory}" if memory else ""
        yield f"{_who(level, limits, pod)} runs on the CPUs {cpus}{nodes}"


def _limits(limits: LiveLimits, pod: Pod) -> Iterator[str]:
    for level in limits.levels:
        yield f"{_who(level, limits, pod)} ({level.path})"
        yield from (f"{INDENT}{sentence}" for sentence in limit_sentences(level, limits.layout))


def _restarts(pod: Pod, now: datetime) -> Iterator[str]:
    for status in _statuses(pod):
        ended, waiting = status.last_state.terminated, status.state.waiting
        if status.restart_count:
            yield f"container {status.name} was restarted {_times(status.restart_count)}"
        if ended is not None:
            when = ended.finished_at or "at an unknown time"
            how = f"exit code {ended.exit_code} ({ended.reason or 'no reason'})"
            yield f"container {status.name} ended last {when} with {how}"
        if waiting is not None and waiting.message:
            yield f"container {status.name} waits, {waiting.reason}: {waiting.message}"


def _oom_kills(limits: LiveLimits, pod: Pod, now: datetime) -> Iterator[str]:
    if limits.oom_kills:
        yield f"the kernel has killed processes of this pod for want of memory {_times(limits.oom_kills)}"
    for status in _statuses(pod):
        for state in (status.state, status.last_state):
            ended = state.terminated
            if ended is not None and ended.reason == "OOMKilled":
                yield f"container {status.name} was killed {ended.finished_at or ''}, OOMKilled"


def _evictions(decisions: Sequence[FetchedDecision]) -> Iterator[str]:
    for decision in decisions:
        if decision.value.eviction is not None:
            yield f"{decision.value.id}: {eviction_text(decision)}"


def _statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _who(level: LiveCgroup, limits: LiveLimits, pod: Pod) -> str:
    if level.kind == "pod":
        return "the pod"
    identifier = limits.layout.container_id_of(level.path) or level.path.rpartition("/")[2]
    for status in _statuses(pod):
        if status.container_id and status.container_id.endswith(identifier):
            return f"container {status.name}"
    return f"container {identifier[:13]}"


def _moment(when: datetime, now: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ} ({age(when, now)} ago)"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
