"""The node explained: what it has and keeps, what is left for pods, and how far eviction is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.api.typed import decode_hook
from nodeagent.cli.amounts import amount_text
from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError
from nodeagent.cli.decisions import FetchedDecision
from nodeagent.cli.explain_eviction import eviction_table, read_evictions
from nodeagent.cli.get import node_status
from nodeagent.cli.live_limits import LiveLimits, limit_sentences, limits_data, read_limits
from nodeagent.cli.objects import Fetched, fetch_nodes, fetch_pods
from nodeagent.config import KubeletConfiguration
from nodeagent.eviction.configured import configured_thresholds
from nodeagent.eviction.signals import Observations, is_counted, observe
from nodeagent.eviction.thresholds import Threshold
from nodeagent.scheduling.fit import amounts, total_requests
from nodeagent.stats.summary import Summary

T = TypeVar("T")
INDENT = "  "
_OVER = ("Succeeded", "Failed")
_RESERVING_SIGNALS = {"memory": "memory.available", "ephemeral-storage": "nodefs.available"}


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """What is known of the node; `kubelet` is its configuration."""

    node: Fetched[Node]
    kubelet: KubeletConfiguration
    pods: Sequence[Pod]
    observations: Observations
    evictions: Sequence[FetchedDecision]
    limits: LiveLimits


def read_node(client: AgentClient, cgroup_root: Path, proc_root: Path) -> ExplainedNode:
    """Ask the agent, and read the levels above the pods."""
    nodes = fetch_nodes(client)
    if not nodes:
        raise CommandError("the server knows of no node; is it a nodeagent?")
    kubelet = _converted(client.get("configz").get("kubeletconfig"), KubeletConfiguration)
    return ExplainedNode(
        node=nodes[0],
        kubelet=kubelet,
        pods=[pod.value for pod in fetch_pods(client) if pod.value.status.phase not in _OVER],
        observations=observe(_converted(client.get("stats", "summary"), Summary)),
        evictions=read_evictions(client, None),
        limits=read_limits(client, None, cgroup_root, proc_root),
    )


def node_text(explained: ExplainedNode, now: datetime) -> str:
    """Everything as sentences."""
    return "\n".join(_lines(explained, now))


def node_data(explained: ExplainedNode) -> dict[str, Any]:
    """Everything as data."""
    return {
        "node": explained.node.raw,
        "resources": [
            {"resource": share.resource, "capacity": share.capacity, "kept": share.kept}
            | {"allocatable": share.allocatable, "requested": share.requested}
            for share in _shares(explained)
        ],
        "thresholds": [_threshold_data(each, explained.observations) for each in _thresholds(explained)],
        "limits": limits_data(explained.limits),
        "evictions": [decision.raw for decision in explained.evictions],
    }


@dataclass(frozen=True, slots=True)
class _Share:
    """One resource: cpu in millicores, every other in its base unit."""

    resource: str
    capacity: int
    allocatable: int
    requested: int

    @property
    def kept(self) -> int:
        return self.capacity - self.allocatable


def _shares(explained: ExplainedNode) -> Iterator[_Share]:
    status = explained.node.value.status
    capacity, allocatable = amounts(status.capacity), amounts(status.allocatable)
    requested = {**total_requests(explained.pods), "pods": len(explained.pods)}
    for resource, whole in sorted(capacity.items()):
        yield _Share(resource, whole, allocatable.get(resource, 0), requested.get(resource, 0))


def _lines(explained: ExplainedNode, now: datetime) -> Iterator[str]:
    node = explained.node.value
    yield f"Node {node.metadata.name} is {node_status(node).replace(',', ', ')}."
    for condition in node.status.conditions:
        if (condition.status == "True") != (condition.type == "Ready"):
            yield f"{INDENT}{condition.type} since {condition.last_transition_time}: {condition.message}"
    yield "Resources"
    for share in _shares(explained):
        yield INDENT + _share_sentence(share, explained.kubelet)
    yield "Eviction"
    for threshold in _thresholds(explained):
        yield INDENT + _threshold_sentence(threshold, explained.observations)
    if explained.limits.levels:
        yield "Limits"
    for level in explained.limits.levels:
        yield f"{INDENT}{level.path}"
        yield from (f"{INDENT * 2}{sentence}" for sentence in limit_sentences(level, explained.limits.layout))
    if explained.evictions:
        yield "Evictions ('nodeagent explain eviction ID' tells all about one)"
        yield eviction_table(explained.evictions, now)


def _share_sentence(share: _Share, kubelet: KubeletConfiguration) -> str:
    whole, kept, usable, requested, left = (
        amount_text(share.resource, amount)
        for amount in (
            share.capacity,
            share.kept,
            share.allocatable,
            share.requested,
            share.allocatable - share.requested,
        )
    )
    reasons = ", ".join(_reservations(share.resource, kubelet))
    because = f" ({reasons})" if share.kept and reasons else ""
    return (
        f"{share.resource}: {whole}, less {kept} kept from pods{because}, leaves {usable}; "
        f"pods request {requested}, so that {left} are left"
    )


def _reservations(resource: str, kubelet: KubeletConfiguration) -> Iterator[str]:
    reserved = {
        "systemReserved": kubelet.system_reserved.get(resource),
        "kubeReserved": kubelet.kube_reserved.get(resource),
    }
    yield from (f"{name} {amount}" for name, amount in reserved.items() if amount)
    signal = _RESERVING_SIGNALS.get(resource, "")
    if signal in kubelet.eviction_hard:
        yield f"evictionHard {signal} {kubelet.eviction_hard[signal]}"


def _thresholds(explained: ExplainedNode) -> tuple[Threshold, ...]:
    return configured_thresholds(explained.kubelet)


def _threshold_sentence(threshold: Threshold, observations: Observations) -> str:
    observed = observations.get(threshold.signal)
    if observed is None:
        return f"{threshold.signal}: not known now"
    resource = "" if is_counted(threshold.signal) else "memory"
    limit = threshold.value.of(observed.capacity).value()
    left, whole, low = (
        amount_text(resource, amount) for amount in (observed.available, observed.capacity, limit)
    )
    if threshold.is_hard:
        deed = "pods are killed at once"
    else:
        deed = f"for {threshold.grace_period_seconds:g} s pods are asked to end"
    margin = observed.available - limit
    distance = f"{amount_text(resource, abs(margin))} {'away' if margin >= 0 else 'beyond that'}"
    return f"{threshold.signal}: {left} of {whole} left; below {low} {deed}, which is {distance}"


def _threshold_data(threshold: Threshold, observations: Observations) -> dict[str, Any]:
    data: dict[str, Any] = {
        "signal": threshold.signal.value,
        "hard": threshold.is_hard,
        "gracePeriodSeconds": threshold.grace_period_seconds,
    }
    observed = observations.get(threshold.signal)
    if observed is not None:
        limit = threshold.value.of(observed.capacity).value()
        data |= {"threshold": limit, "available": observed.available, "capacity": observed.capacity}
    return data


def _converted(answer: Any, wanted: type[T]) -> T:
    try:
        return msgspec.convert(answer, wanted, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise CommandError(
            f"the server's answer is not a {wanted.__name__} as this version knows it: {error}"
        ) from error
