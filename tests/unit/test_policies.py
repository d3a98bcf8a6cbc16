"""What becomes of a policy that somebody writes: taken in, or refused in the API server's words."""

import pytest

from nodeagent.admission.policies import Policies
from nodeagent.admission.refusal import Cause
from tests.unit.policy_documents import documents, policies, taken_in

QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q%s}, spec: {hard: {%s}}}"
CLASS = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d%s}"


def refused(text: str) -> str:
    """Return the message that the last document of `text` is refused with."""
    known, refusals = taken_in(text)
    assert len(refusals) == 1
    assert len(known.quotas) + len(known.limit_ranges) + len(known.priority_classes) == (
        len(Policies().priority_classes) + len(documents(text)) - 1
    )
    return str(refusals[0])


def test_policies_without_a_namespace_are_for_the_default_one() -> None:
    known = policies(
        QUOTA % ("", "pods: 1")
        + "\n---\n"
        + QUOTA % (", namespace: other", "pods: 2")
        + "\n---\n{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: []}}"
    )
    assert [str(quota.spec.hard["pods"]) for quota in known.quotas_of("default")] == ["1"]
    assert [str(quota.spec.hard["pods"]) for quota in known.quotas_of("other")] == ["2"]
    assert len(known.limit_ranges_of("default")) == 1


def test_an_invalid_policy_is_refused_with_every_cause() -> None:
    _, (refusal,) = taken_in(QUOTA % ("", "pods: 1500m, nonsense: 1"))
    assert (refusal.code, refusal.reason) == (422, "Invalid")
    first = "must be an integer"
    second = "must be a standard resource type or fully qualified"
    third = "must be a standard resource for quota"
    assert refusal.message == (
        f'ResourceQuota "q" is invalid: [spec.hard[pods]: Invalid value: "1500m": {first}, '
        f'spec.hard[nonsense]: Invalid value: "nonsense": {second}, '
        f'spec.hard[nonsense]: Invalid value: "nonsense": {third}]'
    )
    assert refusal.causes[0] == Cause(
        "FieldValueInvalid", f'Invalid value: "1500m": {first}', "spec.hard[pods]"
    )
    assert len(refusal.causes) == 3


def test_a_policy_with_thousands_of_faults_is_cut_short() -> None:
    nonsense = ", ".join(f"nonsense{number}: 1" for number in range(5000))
    scopes = ", ".join(f"'{scope}'" for scope in ["Terminating"] * 5000 + ["Nonsense"] * 5000)
    for text in (
        QUOTA % ("", nonsense),
        QUOTA.replace("hard", f"scopes: [{scopes}], hard") % ("", nonsense.replace("nonsense", "x.y/z")),
        "{apiVersion: v1, kind: LimitRange, metadata: {name: l}, "
        f"spec: {{limits: [{{type: Pod, max: {{{nonsense}}}}}]}}}}",
    ):
        _, (refusal,) = taken_in(text)
        assert len(refusal.causes) == 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            QUOTA % ("", "pods: 1") + "\n---\n" + QUOTA % ("", "pods: 2"),
            'resourcequotas "q" already exists',
        ),
        (
            CLASS % ("a", 1, ", globalDefault: true") + "\n---\n" + CLASS % ("b", 2, ", globalDefault: true"),
            'priorityclasses.scheduling.k8s.io "b" is forbidden: '
            "PriorityClass a is already marked as default. Only one default can exist",
        ),
        (
            CLASS % ("system-mine", 1, ""),
            'PriorityClass.scheduling.k8s.io "system-mine" is invalid: metadata.name: Forbidden: '
            "priority class names with 'system-' prefix are reserved for system use only. "
            "error: system-mine is not a known system priority class",
        ),
        (
            CLASS % ("system-node-critical", 1, ""),
            'PriorityClass.scheduling.k8s.io "system-node-critical" is invalid: metadata.name: Forbidden: '
            "priority class names with 'system-' prefix are reserved for system use only. "
            "error: value of system-node-critical PriorityClass must be 2000001000",
        ),
        (
            CLASS % ("a, namespace: x", 1, ""),
            'PriorityClass.scheduling.k8s.io "a" is invalid: '
            "metadata.namespace: Forbidden: not allowed on this type",
        ),
        (
            "{apiVersion: v1, kind: LimitRange, metadata: {name: l}, "
            "spec: {limits: [{type: Pod, default: {cpu: 1}}]}}",
            'LimitRange "l" is invalid: '
            "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
        ),
    ],
)
def test_refused_policies(text: str, message: str) -> None:
    assert refused(text) == message


CONFIGURATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: %s
    limitedResources:
    - %s
"""


def test_limited_resources_are_taken_in() -> None:
    entry = "{resource: pods, matchContains: [cpu]}"
    text = CONFIGURATION % ("ResourceQuota", "ResourceQuotaConfiguration", entry)
    (limited,) = policies(text).limited_resources
    assert (limited.resource, limited.match_contains) == ("pods", ("cpu",))


@pytest.mark.parametrize(
    ("plugin", "kind", "entry", "error"),
    [
        (
            "ResourceQuota",
            "ResourceQuotaConfiguration",
            "{matchContains: [cpu]}",
            "plugins[0].configuration.limitedResources[0].resource: Required value",
        ),
        (
            "ResourceQuota",
            "ResourceQuotaConfiguration",
            "{resources: pods}",
            'plugins[0].configuration.limitedResources[0].resources: Unknown field: did you mean "resource"?',
        ),
        (
            "ResourceQuota",
            "Configuration",
            "{resource: pods}",
            'plugins[0].configuration.kind: Unsupported value: "Configuration": '
            'supported values: "ResourceQuotaConfiguration (apiserver.config.k8s.io/v1)"',
        ),
        (
            "PodSecurity",
            "PodSecurityConfiguration",
            "{}",
            'plugins[0].name: Unsupported value: "PodSecurity": supported values: "ResourceQuota"',
        ),
    ],
)
def test_a_configuration_that_is_not_understood_is_refused(
    plugin: str, kind: str, entry: str, error: str
) -> None:
    known, (refusal,) = taken_in(CONFIGURATION % (plugin, kind, entry))
    assert refusal.message.endswith(f"is invalid: {error}")
    assert known.limited_resources == ()
