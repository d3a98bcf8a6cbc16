"""ResourceQuotas: which are for an object, what is charged to them, and what is refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nodeagent.admission.quota.validation import validate_resource_quota
from nodeagent.admission.request import PERSISTENT_VOLUME_CLAIMS, PODS, RESIZE, Operation, Request
from nodeagent.admission.resource_quota import QuotaDecision, check
from nodeagent.api.admission_configuration import LimitedResource
from nodeagent.api.decode import from_builtins
from nodeagent.api.persistent_volume_claim import PersistentVolumeClaim
from nodeagent.api.pod import Pod
from nodeagent.api.policy import ResourceQuota
from nodeagent.api.quantity import Quantity
from tests.unit.quotas import NOW, claim, quota, scoped
from tests.unit.validated_pod import pod


def charged(decision: QuotaDecision) -> dict[str, str]:
    """Return what is used after the decision, of the one quota that changed."""
    assert decision.refusal is None
    if not decision.changed:
        return {}
    (changed,) = decision.changed
    return {name: str(amount) for name, amount in sorted(changed.status.used.items())}


def why(decision: QuotaDecision) -> str:
    assert decision.changed == ()
    return "" if decision.refusal is None else decision.refusal.message.partition(" is forbidden: ")[2]


def test_a_quota_that_nobody_measured_yet_lets_nothing_pass() -> None:
    unmeasured = from_builtins(
        {"metadata": {"name": "q"}, "status": {"hard": {"pods": "5", "count/pods": "5"}}}, ResourceQuota
    )
    assert why(check(Request(PODS, pod()), [unmeasured], NOW)) == (
        "status unknown for quota: q, resources: count/pods,pods"
    )


def test_what_is_exceeded_already_hinders_only_those_who_want_more_of_it() -> None:
    shrunk = quota({"requests.cpu": "1", "pods": "5"}, {"requests.cpu": "3"})
    free = pod(None, {"resources": {"requests": {"cpu": "0"}}})
    assert charged(check(Request(PODS, free), [shrunk], NOW)) == {"pods": "1", "requests.cpu": "3"}


def test_no_quota_is_charged_if_one_refuses() -> None:
    roomy, full = quota({"pods": "5"}), quota({"count/pods": "0"})
    decision = check(Request(PODS, pod()), [roomy, full], NOW)
    assert (
        why(decision)
        == "exceeded quota: q, requested: count/pods=1, used: count/pods=0, limited: count/pods=0"
    )


def test_negative_amounts_are_refused() -> None:
    negative = pod(None, {"resources": {"requests": {"cpu": "-1"}}})
    assert why(check(Request(PODS, negative), [quota({"pods": "5"})], NOW)) == (
        "quota usage is negative for resource(s): cpu,requests.cpu"
    )


def test_an_update_costs_its_growth() -> None:
    storage = quota({"requests.storage": "5Gi", "persistentvolumeclaims": "1"}, {"requests.storage": "2Gi"})

    def grown(to: str, subresource: str = "", allocated: str | None = None) -> QuotaDecision:
        asked = claim(to, allocated)
        request = Request(PERSISTENT_VOLUME_CLAIMS, asked, Operation.UPDATE, claim("2Gi"), subresource)
        return check(request, [storage], NOW)

    assert charged(grown("4Gi"))["requests.storage"] == "4Gi"
    assert charged(grown("1Gi")) == {}
    assert why(grown("6Gi")) == (
        "exceeded quota: q, requested: requests.storage=4Gi, used: requests.storage=2Gi, "
        "limited: requests.storage=5Gi"
    )
    # What a status reports has happened; it is counted and not refused.
    assert charged(grown("2Gi", "status", "6Gi"))["requests.storage"] == "6Gi"


def test_an_object_that_enters_a_scope_costs_all_that_it_uses() -> None:
    old = pod(None, {"resources": {"requests": {"cpu": "1"}}}, resourceVersion="1")
    new = replace(old, spec=replace(old.spec, active_deadline_seconds=60))
    request = Request(PODS, new, Operation.UPDATE, old)
    hard = {"pods": "5", "requests.cpu": "5"}
    entered = check(request, [quota(hard, scopes=["Terminating"])], NOW)
    assert charged(entered) == {"pods": "1", "requests.cpu": "1"}
    stayed = check(request, [quota(hard)], NOW)
    assert charged(stayed) == {}


def test_a_resize_costs_the_difference() -> None:
    def sized(cpu: str) -> Pod:
        return pod(None, {"resources": {"requests": {"cpu": cpu}}}, resourceVersion="1")

    request = Request(PODS, sized("3"), Operation.UPDATE, sized("1"), RESIZE)
    assert charged(check(request, [quota({"requests.cpu": "5"}, {"requests.cpu": "1"})], NOW)) == {
        "requests.cpu": "3"
    }
    without_old = Request(PODS, sized("3"), Operation.UPDATE, None, RESIZE)
    assert why(check(without_old, [quota({"requests.cpu": "5"})], NOW)).startswith("unable to get previous")


@pytest.mark.parametrize(
    ("spec", "selects"),
    [
        ({"scopes": ["BestEffort"]}, [True, False]),
        ({"scopes": ["NotBestEffort"]}, [False, True]),
        ({"scopes": ["PriorityClass"]}, [False, True]),
        ({"scopes": ["VolumeAttributesClass"]}, [False, False]),
        (scoped(("PriorityClass", "In", ["high"])), [False, True]),
        (scoped(("PriorityClass", "In", ["low"])), [False, False]),
        (scoped(("PriorityClass", "NotIn", ["high"])), [True, False]),
        (scoped(("PriorityClass", "DoesNotExist", [])), [True, False]),
        (scoped(("PriorityClass", "In", ["high"]), ("Terminating", "Exists", [])), [False, False]),
    ],
)
def test_scopes_of_pods(spec: dict[str, Any], selects: list[bool]) -> None:
    best_effort = pod()
    important = pod({"priorityClassName": "high"}, {"resources": {"requests": {"cpu": "1"}}})
    full = quota({"pods": "0"}, **spec)
    refused = [why(check(Request(PODS, item), [full], NOW)) != "" for item in (best_effort, important)]
    assert refused == selects


def test_scopes_of_claims_look_at_every_class_that_a_claim_has_while_it_changes() -> None:
    changing = replace(
        claim("1Gi", volumeAttributesClassName="fast"),
        status=from_builtins(
            {"status": {"currentVolumeAttributesClassName": "slow"}}, PersistentVolumeClaim
        ).status,
    )

    def selected(item: PersistentVolumeClaim, operator: str, *values: str) -> bool:
        full = quota(
            {"persistentvolumeclaims": "0"}, **scoped(("VolumeAttributesClass", operator, [*values]))
        )
        return why(check(Request(PERSISTENT_VOLUME_CLAIMS, item), [full], NOW)) != ""

    assert selected(changing, "In", "fast")
    assert selected(changing, "In", "slow")
    assert selected(changing, "NotIn", "fast")
    assert not selected(changing, "DoesNotExist")
    assert selected(claim("1Gi"), "DoesNotExist")
    assert not selected(claim("1Gi"), "Exists")


def test_limited_resources_need_a_quota_that_names_them() -> None:
    limited = [LimitedResource(resource="pods", match_contains=("cpu",))]
    asked = pod(None, {"resources": {"requests": {"cpu": "1"}}})

    def said(*quotas: ResourceQuota, item: Pod = asked) -> str:
        decision = check(Request(PODS, item), quotas, NOW, limited)
        return "" if decision.refusal is None else decision.refusal.message.partition(" is forbidden: ")[2]

    assert said() == "insufficient quota to consume: cpu,requests.cpu"
    assert said(quota({"requests.cpu": "5"})) == "insufficient quota to consume: cpu"
    assert said(quota({"requests.cpu": "5", "cpu": "5"})) == ""
    assert said(item=pod()) == ""
    others = [LimitedResource(resource="pods", api_group="example.com", match_contains=("cpu",))]
    assert check(Request(PODS, asked), [], NOW, others).refusal is None


names = st.sampled_from(
    (
        "pods",
        "cpu",
        "storage",
        "count/x.y",
        "hugepages-2Mi",
        "limits.hugepages-2Mi",
        "-",
        "a/b",
        "requests.storage",
    )
)


@settings(deadline=None)
@given(
    st.dictionaries(names, st.integers(-2, 5).map(str)),
    st.lists(st.sampled_from(("BestEffort", "NotBestEffort", "Nonsense")), max_size=3),
    st.lists(
        st.tuples(
            st.sampled_from(("PriorityClass", "Terminating", "Nonsense")),
            st.sampled_from(("In", "Exists", "Nonsense", "")),
            st.lists(st.just("x"), max_size=1),
        ),
        max_size=3,
    ),
)
def test_validating_any_quota_answers(
    hard: dict[str, str], scopes: list[str], requirements: list[tuple[str, str, list[str]]]
) -> None:
    validate_resource_quota(quota(hard, scopes=scopes, **scoped(*requirements)))


def test_amounts_are_exact() -> None:
    """A thousand tenths are a hundred, and one more is too much."""
    known = [quota({"requests.cpu": "100"})]
    asked = pod(None, {"resources": {"requests": {"cpu": "100m"}}})
    for _ in range(1000):
        known = [*check(Request(PODS, asked), known, NOW).changed]
    assert known[0].status.used == {"requests.cpu": Quantity.of(100)}
    assert why(check(Request(PODS, asked), known, NOW)) == (
        "exceeded quota: q, requested: requests.cpu=100m, used: requests.cpu=100, limited: requests.cpu=100"
    )
