"""What admission costs: run with `pytest -m bench -s tests/bench/test_admission_cost.py`."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from nodeagent.admission.chain import Policies, admit, admit_request
from nodeagent.admission.quota.usage import measured
from nodeagent.admission.request import PODS, Request
from nodeagent.api.decode import decode_documents
from nodeagent.api.defaults import default_pod
from nodeagent.api.pod import Pod
from tests.unit.policy_documents import policies

pytestmark = pytest.mark.bench

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
GOAL_PER_SECOND = 1500
PODS_OF_A_NODE = 110

POLICIES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - type: Container
    default: {cpu: 500m, memory: 512Mi}
    defaultRequest: {cpu: 100m, memory: 128Mi}
    max: {cpu: 2, memory: 2Gi}
    min: {cpu: 10m, memory: 16Mi}
  - {type: Pod, max: {cpu: 4, memory: 4Gi}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute}
spec:
  hard: {pods: 10k, requests.cpu: 10k, requests.memory: 10Ti, limits.cpu: 10k, limits.memory: 10Ti}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: high}
spec:
  hard: {pods: 10k}
  scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}
"""


def document(name: str) -> bytes:
    """A pod of three containers, two of which leave their resources to the LimitRange."""
    amounts = {"cpu": "100m", "memory": "64Mi"}
    web = {
        "name": "web",
        "image": "web:1",
        "resources": {"requests": amounts, "limits": amounts},
        "ports": [{"containerPort": 80}],
        "env": [{"name": "MODE", "value": "fast"}],
    }
    spec = {
        "priorityClassName": "high",
        "containers": [web, {"name": "helper", "image": "helper:1"}],
        "initContainers": [{"name": "init", "image": "init:1"}],
    }
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).encode()


def microseconds(work: Callable[[], object], repetitions: int) -> float:
    """Return the first decile: what the work costs where nobody else has the processor."""
    taken = []
    for _ in range(repetitions):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1e6)
    return sorted(taken)[repetitions // 10]


def report(title: str, cost_microseconds: float) -> float:
    rate = 1e6 / cost_microseconds
    print(f"\n{title}: {cost_microseconds:.0f} us, {rate:.0f} a second")
    return rate


def read(name: str) -> Pod:
    (pod,) = decode_documents(document(name), "bench")
    return default_pod(pod)


def test_a_full_admission() -> None:
    """JSON to a decision: decode, default, priority, LimitRange, validation, quota by its stored status."""
    known = policies(POLICIES)
    stored = Policies(known.priority_classes, known.limit_ranges, measured(known.quotas, {}, NOW))

    def full() -> None:
        outcome = admit_request(Request(PODS, read("web")), stored, NOW)
        assert outcome.refusal is None

    assert report("full admission", microseconds(full, 2000)) > GOAL_PER_SECOND


def test_admission_beside_a_full_node() -> None:
    """Quotas reckoned anew from the pods of a full node, as for manifests."""
    known = policies(POLICIES)
    pod = admit(read("web"), known, [], NOW).pod
    others = [
        replace(pod, metadata=replace(pod.metadata, name=f"other-{number}"))
        for number in range(PODS_OF_A_NODE)
    ]
    assert admit(pod, known, others, NOW).refusal is None
    report(f"beside {PODS_OF_A_NODE} pods", microseconds(lambda: admit(pod, known, others, NOW), 200))
