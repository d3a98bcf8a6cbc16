"""Whatever a pod holds, admission gives an answer and a record, and never fails."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from nodeagent.admission.chain import Policies, admit
from nodeagent.api.decode import from_builtins
from nodeagent.api.defaults import default_pod
from nodeagent.api.pod import Pod
from tests.unit.policy_documents import policies
from tests.unit.test_pod_any import pods

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
KNOWN = policies(
    """
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - type: Container
    default: {cpu: 1, hugepages-2Mi: 2Mi}
    maxLimitRequestRatio: {memory: 2, example.com/gpu: 1}
  - {type: Pod, max: {cpu: 2}, min: {memory: 1Mi}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec: {hard: {pods: 1, cpu: 1, requests.hugepages-2Mi: 4Mi, requests.example.com/gpu: 1}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: scoped}
spec: {hard: {limits.memory: 1Gi}, scopes: [NotBestEffort, CrossNamespacePodAffinity]}
"""
)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(pods, pods)
def test_any_pod_beside_any_other(value: dict[str, Any], other: dict[str, Any]) -> None:
    asked, existing = (
        replace(pod, metadata=replace(pod.metadata, namespace="default"))
        for pod in (default_pod(from_builtins(each, Pod)) for each in (value, other))
    )
    for known in (KNOWN, Policies(quotas=KNOWN.quotas)):
        outcome = admit(asked, known, [existing], NOW)
        assert [*outcome.record.sentences()]
        assert outcome.refusal is None or outcome.refusal.message
        assert outcome.refusal is None or outcome.changed == ()
