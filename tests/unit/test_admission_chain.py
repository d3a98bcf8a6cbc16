"""Admission as the Kubernetes documentation tells it, example by example."""

from datetime import UTC, datetime

import pytest

from nodeagent.admission.chain import Outcome, Policies, admit, admit_request
from nodeagent.admission.quota.usage import measured
from nodeagent.admission.refusal import Cause, Refusal
from nodeagent.admission.request import PODS, Operation, Request
from nodeagent.api.pod import Pod
from tests.unit.policy_documents import policies
from tests.unit.validated_pod import pod

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)

PROBLEMATIC_LIMIT_RANGE = """
apiVersion: v1
kind: LimitRange
metadata:
  name: cpu-resource-constraint
spec:
  limits:
  - default: # this section defines default limits
      cpu: 500m
    defaultRequest: # this section defines default requests
      cpu: 500m
    max: # max and min define the limit range
      cpu: "1"
    min:
      cpu: 100m
    type: Container
"""

QUOTA_PER_PRIORITY_CLASS = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ResourceQuota
  metadata: {name: pods-high}
  spec:
    hard: {cpu: "1000", memory: 200Gi, pods: "10"}
    scopeSelector:
      matchExpressions:
      - {operator: In, scopeName: PriorityClass, values: ["high"]}
- apiVersion: v1
  kind: ResourceQuota
  metadata: {name: pods-medium}
  spec:
    hard: {cpu: "10", memory: 20Gi, pods: "10"}
    scopeSelector:
      matchExpressions:
      - {operator: In, scopeName: PriorityClass, values: ["medium"]}
- apiVersion: v1
  kind: ResourceQuota
  metadata: {name: pods-low}
  spec:
    hard: {cpu: "5", memory: 10Gi, pods: "10"}
    scopeSelector:
      matchExpressions:
      - {operator: In, scopeName: PriorityClass, values: ["low"]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
"""

NO_CROSS_NAMESPACE_AFFINITY = """
apiVersion: v1
kind: ResourceQuota
metadata:
  name: disable-cross-namespace-affinity
  namespace: foo-ns
spec:
  hard:
    pods: "0"
  scopeSelector:
    matchExpressions:
    - scopeName: CrossNamespacePodAffinity
      operator: Exists
"""

CROSS_NAMESPACE_AFFINITY_IS_LIMITED = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: "ResourceQuota"
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes:
      - scopeName: CrossNamespacePodAffinity
        operator: Exists
"""


def admitted(asked: Pod, known: Policies, *existing: Pod) -> Outcome:
    return admit(asked, known, existing, NOW)


def affine_pod(namespaces: list[str], namespace: str = "foo-ns", name: str = "web") -> Pod:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaces": namespaces}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod({"affinity": affinity}, namespace=namespace, name=name)


def used(known: Policies, *existing: Pod) -> dict[str, dict[str, str]]:
    return {
        quota.metadata.name: {name: str(amount) for name, amount in sorted(quota.status.used.items())}
        for quota in measured(known.quotas, {PODS: existing}, NOW)
    }


def test_a_default_limit_below_the_request_makes_the_pod_invalid() -> None:
    asked = pod(
        None, {"resources": {"requests": {"cpu": "700m"}}}, name="example-conflict-with-limitrange-cpu"
    )

    outcome = admitted(asked, policies(PROBLEMATIC_LIMIT_RANGE))

    body = 'Invalid value: "700m": must be less than or equal to cpu limit of 500m'
    field = "spec.containers[0].resources.requests"
    assert outcome.refusal == Refusal(
        422,
        "Invalid",
        f'Pod "example-conflict-with-limitrange-cpu" is invalid: {field}: {body}',
        (Cause("FieldValueInvalid", body, field),),
    )
    # Nobody wrote the limit of 500m: the record says where it came from.
    assert (
        "cpu limit 500m of container a came from LimitRange cpu-resource-constraint"
        in outcome.record.sentences()
    )


def test_stating_both_request_and_limit_avoids_the_conflict() -> None:
    stated = {"requests": {"cpu": "700m"}, "limits": {"cpu": "700m"}}
    outcome = admitted(pod(None, {"resources": stated}), policies(PROBLEMATIC_LIMIT_RANGE))
    assert outcome.refusal is None
    assert outcome.record.defaults == ()


def test_quota_per_priority_class() -> None:
    known = policies(QUOTA_PER_PRIORITY_CLASS)
    untouched = {"cpu": "0", "memory": "0", "pods": "0"}
    assert used(known) == {"pods-high": untouched, "pods-medium": untouched, "pods-low": untouched}
    amounts = {"memory": "10Gi", "cpu": "500m"}
    resources = {"requests": amounts, "limits": amounts}

    outcome = admitted(pod({"priorityClassName": "high"}, {"resources": resources}), known)

    assert outcome.refusal is None
    assert outcome.pod.spec.priority == 1000
    assert used(known, outcome.pod) == {
        "pods-high": {"cpu": "500m", "memory": "10Gi", "pods": "1"},
        "pods-medium": untouched,
        "pods-low": untouched,
    }
    assert [quota.metadata.name for quota in outcome.changed] == ["pods-high"]


def test_quota_sees_the_priority_class_that_is_the_default() -> None:
    default = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d%s}"
    known = policies(
        "\n---\n".join(
            (
                QUOTA_PER_PRIORITY_CLASS.replace('pods: "10"', 'pods: "0"'),
                default % ("low", 5, ", globalDefault: true"),
            )
        )
    )
    outcome = admitted(pod(None, {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}), known)
    assert str(outcome.refusal) == (
        'pods "web" is forbidden: exceeded quota: pods-low, requested: pods=1, used: pods=0, limited: pods=0'
    )


def test_a_namespace_may_be_kept_from_affinity_across_namespaces() -> None:
    known = policies(NO_CROSS_NAMESPACE_AFFINITY)
    assert str(admitted(affine_pod(["bar-ns"]), known).refusal) == (
        'pods "web" is forbidden: exceeded quota: disable-cross-namespace-affinity, '
        "requested: pods=1, used: pods=0, limited: pods=0"
    )
    assert admitted(affine_pod([]), known).refusal is None
    assert admitted(affine_pod(["bar-ns"], "bar-ns"), known).refusal is None


def test_affinity_across_namespaces_may_need_a_quota_that_allows_it() -> None:
    limited = policies(CROSS_NAMESPACE_AFFINITY_IS_LIMITED)
    refusal = admitted(affine_pod(["bar-ns"]), limited).refusal
    assert refusal == Refusal(
        403,
        "Forbidden",
        'pods "web" is forbidden: insufficient quota to match these scopes: '
        "[{CrossNamespacePodAffinity Exists []}]",
    )
    assert admitted(affine_pod([]), limited).refusal is None

    one_allowed = NO_CROSS_NAMESPACE_AFFINITY.replace('"0"', '"1"')
    known = policies(f"{CROSS_NAMESPACE_AFFINITY_IS_LIMITED}---{one_allowed}")
    first = admitted(affine_pod(["bar-ns"]), known)
    assert first.refusal is None
    second = admitted(affine_pod(["bar-ns"], name="second"), known, first.pod)
    assert "exceeded quota" in str(second.refusal)
    assert admitted(affine_pod([], name="second"), known, first.pod).refusal is None


QUOTA_OF_REQUESTS = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute}
spec:
  hard: {requests.cpu: "1", limits.memory: 1Gi}
"""


def test_a_quota_of_requests_or_limits_obliges_every_container_to_state_them() -> None:
    outcome = admitted(pod({"initContainers": [{"name": "init"}]}), policies(QUOTA_OF_REQUESTS))
    assert str(outcome.refusal) == (
        'pods "web" is forbidden: failed quota: compute: '
        "must specify limits.memory for: a,init; requests.cpu for: a,init"
    )


def test_a_limit_range_states_for_containers_what_a_quota_obliges_them_to() -> None:
    limit_range = """
apiVersion: v1
kind: LimitRange
metadata: {name: defaults}
spec:
  limits:
  - {type: Container, defaultRequest: {cpu: 100m}, default: {memory: 128Mi}}
"""
    known = policies(f"{limit_range}---{QUOTA_OF_REQUESTS}")
    outcome = admitted(pod(), known)
    assert outcome.refusal is None
    assert used(known, outcome.pod) == {"compute": {"limits.memory": "128Mi", "requests.cpu": "100m"}}


EVERYTHING_IS_WRONG = """
apiVersion: v1
kind: LimitRange
metadata: {name: small}
spec:
  limits:
  - {type: Container, max: {cpu: 100m}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: none}
spec: {hard: {pods: "0"}}
"""


@pytest.mark.parametrize(
    ("spec", "cpu", "message"),
    [
        (
            {"priorityClassName": "nobody", "restartPolicy": "Sometimes"},
            "1",
            "no PriorityClass with name nobody",
        ),
        ({"restartPolicy": "Sometimes"}, "1", 'spec.restartPolicy: Unsupported value: "Sometimes"'),
        ({}, "1", "maximum cpu usage per Container is 100m, but limit is 1"),
        ({}, "50m", "exceeded quota: none"),
    ],
)
def test_plugins_are_asked_in_order_and_the_first_refusal_stands(
    spec: dict[str, str], cpu: str, message: str
) -> None:
    known = policies(EVERYTHING_IS_WRONG)
    resources = {"limits": {"cpu": cpu}}
    outcome = admitted(pod(dict(spec), {"resources": resources}), known)
    assert message in str(outcome.refusal)
    assert outcome.changed == ()


def test_a_pod_is_not_counted_against_itself() -> None:
    known = policies("{apiVersion: v1, kind: ResourceQuota, metadata: {name: one}, spec: {hard: {pods: 1}}}")
    running = pod(uid="1")
    assert admitted(running, known, running).refusal is None
    assert admitted(pod(uid="2"), known, running).refusal is None
    assert admitted(pod(name="other"), known, pod(namespace="elsewhere")).refusal is None
    assert admitted(pod(name="other", uid="2"), known, running).refusal is not None


def test_the_record_tells_what_was_compared() -> None:
    known = policies(f"{PROBLEMATIC_LIMIT_RANGE}---{QUOTA_PER_PRIORITY_CLASS}")
    resources = {"requests": {"cpu": "200m", "memory": "1Gi"}}
    outcome = admitted(pod({"priorityClassName": "high"}, {"resources": resources}), known)
    assert [*outcome.record.sentences()] == [
        "priority 1000, PreemptLowerPriority, from PriorityClass high",
        "cpu limit 500m of container a came from LimitRange cpu-resource-constraint",
        "LimitRange cpu-resource-constraint: min cpu 100m for container a, "
        "which requests 200m and is limited to 500m: kept",
        "LimitRange cpu-resource-constraint: max cpu 1 for container a, "
        "which requests 200m and is limited to 500m: kept",
        "ResourceQuota pods-medium: [{PriorityClass In [medium]}] does not select the object",
        "ResourceQuota pods-low: [{PriorityClass In [low]}] does not select the object",
        "ResourceQuota pods-high: cpu 200m requested, 0 of 1k used; "
        "memory 1Gi requested, 0 of 200Gi used; pods 1 requested, 0 of 10 used",
    ]


def test_a_store_goes_by_the_status_that_it_keeps() -> None:
    """Quotas carry their status from one request to the next; a dry run changes nothing."""
    known = policies(QUOTA_OF_REQUESTS)
    unmeasured = admit_request(Request(PODS, pod()), known, NOW)
    assert unmeasured.refusal is None, "no status.hard yet: the quota is not in force"

    amounts = {"cpu": "600m", "memory": "1Mi"}
    asked = pod(None, {"resources": {"requests": amounts, "limits": amounts}})
    known = Policies(quotas=measured(known.quotas, {}, NOW))
    assert admit_request(Request(PODS, asked, dry_run=True), known, NOW).changed == ()

    first = admit_request(Request(PODS, asked), known, NOW)
    assert first.refusal is None
    second = admit_request(Request(PODS, asked), Policies(quotas=first.changed), NOW)
    assert str(second.refusal) == (
        'pods "web" is forbidden: exceeded quota: compute, '
        "requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    )


def test_an_update_keeps_the_priority_and_fills_nothing_in() -> None:
    known = policies(PROBLEMATIC_LIMIT_RANGE)
    old = pod({"priority": 7, "preemptionPolicy": "Never"})
    outcome = admit_request(Request(PODS, pod(), Operation.UPDATE, old), known, NOW)
    assert outcome.refusal is None
    assert (outcome.pod.spec.priority, outcome.pod.spec.preemption_policy) == (7, "Never")
    assert outcome.pod.spec.containers[0].resources.requests == {}
