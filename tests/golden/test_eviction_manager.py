"""Rounds of kubelet's eviction manager, replayed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from nodeagent.api.decode import decode_hook
from nodeagent.api.pod import Pod
from nodeagent.eviction.admission import refuse
from nodeagent.eviction.manager import (
    Eviction,
    Policy,
    Reclaim,
    State,
    choose,
    is_resolved,
    reclaims,
    synchronise,
)
from nodeagent.eviction.messages import attempting_to_reclaim
from nodeagent.eviction.ranking import Filesystems
from nodeagent.eviction.signals import RESOURCES, observe
from nodeagent.eviction.thresholds import parse_thresholds
from nodeagent.stats.summary import PodStats, Summary

Case = dict[str, Any]


@dataclass
class Replay:
    """What the agent's own loop does with the manager, with the data's figures in place of the node's."""

    policy: Policy
    pods: Mapping[str, Pod]
    state: State = field(default_factory=State)
    now: float = 0.0

    def step(self, step: Case) -> Case:
        self.now += step["advanceSeconds"]
        summary = decode_summary(step["summary"])
        observations, stats = observe(summary), by_uid(summary)
        active = [self.pods[name] for name in step["activePods"]]
        outcome = synchronise(self.policy, self.state, observations, self.now, active, stats)
        self.state = outcome.state
        evictions, events, freed = list(outcome.over_limit), [], ()
        if outcome.acting:
            acting = outcome.acting[0]
            signal = acting.signal
            events.append(node_event(attempting_to_reclaim(RESOURCES[signal])))
            freed = reclaims(signal, self.policy.filesystems)
            after = decode_summary(step["summaryAfterReclaim"]) if freed else summary
            if not (freed and is_resolved(self.policy, observe(after))):
                choice = choose(self.policy, acting, observations[signal], active, stats)
                evictions += [choice.eviction] if choice.eviction else []
        events += [pod_event(eviction) for eviction in evictions]
        result = {
            "nodeConditions": sorted(self.state.conditions),
            "thresholdsMet": sorted(str(threshold) for threshold in self.state.met),
            "evicted": [eviction.pod.metadata.name for eviction in evictions],
            "admit": {name: self.admit(pod) for name, pod in PROBES.items()},
        }
        if events:
            result["events"] = events
        if evictions:
            result["kills"] = [kill(eviction) for eviction in evictions]
        if freed:
            result |= {"imageGC": Reclaim.IMAGES in freed, "containerGC": Reclaim.CONTAINERS in freed}
        return result

    def admit(self, pod: Pod) -> Any:
        refusal = refuse(self.policy, pod, self.state.conditions)
        return True if refusal is None else str(refusal)


def probe(**spec: Any) -> Pod:
    container = {"name": "c", "resources": spec.pop("resources", {})}
    return msgspec.convert({"spec": {"containers": [container], **spec}}, Pod, dec_hook=decode_hook)


PROBES = {
    "bestEffort": probe(),
    "bestEffortTolerates": probe(
        tolerations=[
            {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
        ]
    ),
    "burstable": probe(resources={"requests": {"memory": "1Mi"}}),
    "critical": probe(priority=2_000_000_000),
}


def decode_summary(document: Case) -> Summary:
    return msgspec.convert({"pods": [], **document}, Summary)


def by_uid(summary: Summary) -> dict[str, PodStats]:
    return {stats.pod_ref.uid: stats for stats in summary.pods}


def node_event(message: str) -> Case:
    return {"object": "node", "type": "Warning", "reason": "EvictionThresholdMet", "message": message}


def pod_event(eviction: Eviction) -> Case:
    event: Case = {
        "object": f"pod/{eviction.pod.metadata.name}",
        "type": "Warning",
        "reason": "Evicted",
        "message": eviction.message.text,
    }
    if eviction.message.annotations:
        event["annotations"] = dict(eviction.message.annotations)
    return event


def kill(eviction: Eviction) -> Case:
    message = eviction.message.text
    found: Case = {
        "pod": eviction.pod.metadata.name,
        "gracePeriodOverride": eviction.grace_seconds,
        "phase": "Failed",
        "reason": "Evicted",
        "message": message,
    }
    if eviction.disruption:
        found["condition"] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "TerminationByKubelet",
            "message": message,
        }
    return found


def replay(case: Case) -> None:
    policy = Policy(
        thresholds=parse_thresholds(
            enforce_node_allocatable=case["enforceNodeAllocatable"],
            eviction_hard=case["evictionHard"],
            eviction_soft=case["evictionSoft"],
            eviction_soft_grace_period=case["evictionSoftGracePeriod"],
            eviction_minimum_reclaim=case["evictionMinimumReclaim"],
        ),
        pressure_transition_period_seconds=case["pressureTransitionPeriodSeconds"],
        max_pod_grace_period_seconds=case["maxPodGracePeriodSeconds"],
        local_storage_isolation=case["localStorageCapacityIsolation"],
        filesystems=Filesystems(case["dedicatedImageFs"], case["splitContainerFs"]),
        evict_static_pods=False,
    )
    pods = msgspec.convert(case["pods"], list[Pod], dec_hook=decode_hook)
    node = Replay(policy, {pod.metadata.name: pod for pod in pods})
    for step in case["steps"]:
        assert node.step(step) in (step.get("resultOneOf") or [step["result"]])


@pytest.mark.golden("eviction_manager.json", "sequences")
def test_sequences(case: Case) -> None:
    replay(case)


@pytest.mark.golden("eviction_manager.json", "nondeterministic")
def test_nondeterministic(case: Case) -> None:
    replay(case)
