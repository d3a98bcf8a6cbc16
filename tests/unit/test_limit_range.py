"""LimitRanges: what they give, what they hold containers to, and what they may say."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.admission.limit_range import ANNOTATION, check_claim, check_pod, set_defaults
from nodeagent.admission.limit_range_validation import default_limit_range, validate_limit_range
from nodeagent.admission.request import PERSISTENT_VOLUME_CLAIMS, PODS, RESIZE, Operation, Request
from nodeagent.api.decode import from_builtins
from nodeagent.api.defaults import default_pod
from nodeagent.api.persistent_volume_claim import PersistentVolumeClaim
from nodeagent.api.pod import Pod
from nodeagent.api.policy import LimitRange
from tests.unit.validated_pod import pod


def limit_range(*items: dict[str, Any], name: str = "limits") -> LimitRange:
    value = {"metadata": {"name": name, "namespace": "default"}, "spec": {"limits": list(items)}}
    return default_limit_range(from_builtins(value, LimitRange))


def for_containers(**bounds: dict[str, str]) -> LimitRange:
    return limit_range({"type": "Container", **bounds})


def with_resources(requests: dict[str, str], limits: dict[str, str] | None = None) -> Pod:
    return pod(None, {"resources": {"requests": requests, "limits": limits or {}}})


def complaints(asked: Pod, *ranges: LimitRange) -> str:
    refusal = check_pod(Request(PODS, asked), ranges).refusal
    return str(refusal).removeprefix('pods "web" is forbidden: ') if refusal else ""


def test_a_maximum_alone_is_the_default_limit_and_request_too() -> None:
    defaulted = set_defaults(Request(PODS, pod()), [for_containers(max={"cpu": "1"})])
    (container,) = defaulted.pod.spec.containers
    assert str(container.resources.limits["cpu"]) == str(container.resources.requests["cpu"]) == "1"
    assert [*map(str, defaulted.defaults)] == [
        "cpu request 1 of container a came from LimitRange limits, where it is the maximum too",
        "cpu limit 1 of container a came from LimitRange limits, where it is the maximum too",
    ]


def test_what_was_set_stands_in_an_annotation() -> None:
    ranges = [
        for_containers(default={"memory": "1Gi", "cpu": "1"}),
        limit_range({"type": "Container", "defaultRequest": {"ephemeral-storage": "1Gi"}}, name="later"),
    ]
    asked = pod({"initContainers": [{"name": "init", "resources": {"limits": {"cpu": "2"}}}]})
    first = set_defaults(Request(PODS, asked), ranges[:1]).pod
    assert first.metadata.annotations == {
        ANNOTATION: "LimitRanger plugin set: cpu, memory request for container a; "
        "cpu, memory limit for container a; memory request for init container init; "
        "memory limit for init container init"
    }
    both = set_defaults(Request(PODS, asked), ranges).pod
    assert both.metadata.annotations == {
        ANNOTATION: "LimitRanger plugin set: ephemeral-storage request for container a; "
        "ephemeral-storage request for init container init"
    }


@pytest.mark.parametrize(
    ("requests", "limits", "complaint"),
    [
        ({}, {}, "minimum cpu usage per Container is 100m.  No request is specified"),
        ({"cpu": "99m"}, {}, "minimum cpu usage per Container is 100m, but request is 99m"),
        ({"cpu": "100m"}, {}, ""),
        ({"cpu": "100m"}, {"cpu": "50m"}, "minimum cpu usage per Container is 100m, but limit is 50m"),
    ],
)
def test_minimum(requests: dict[str, str], limits: dict[str, str], complaint: str) -> None:
    assert complaints(with_resources(requests, limits), for_containers(min={"cpu": "100m"})) == complaint


@pytest.mark.parametrize(
    ("requests", "limits", "complaint"),
    [
        ({"cpu": "1"}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        ({}, {"cpu": "1001m"}, "maximum cpu usage per Container is 1, but limit is 1001m"),
        ({"cpu": "2"}, {"cpu": "1"}, "maximum cpu usage per Container is 1, but request is 2"),
        ({}, {"cpu": "1"}, ""),
    ],
)
def test_maximum(requests: dict[str, str], limits: dict[str, str], complaint: str) -> None:
    assert complaints(with_resources(requests, limits), for_containers(max={"cpu": "1"})) == complaint


@pytest.mark.parametrize(
    ("request_", "limit", "complaint"),
    [
        ("0", "1", ", but no request is specified or request is 0"),
        ("1", "0", ", but no limit is specified or limit is 0"),
        ("1000m", "2007m", ""),
        ("1000m", "2008m", ", but provided ratio is 2.008000"),
        ("300m", "1", ", but provided ratio is 3.333333"),
    ],
)
def test_ratio(request_: str, limit: str, complaint: str) -> None:
    """2.007 is a ratio that floating point makes a trifle larger than it is."""
    bounds = for_containers(maxLimitRequestRatio={"cpu": "2007m"})
    subject = "cpu max limit to request ratio per Container is 2007m"
    said = complaints(with_resources({"cpu": request_}, {"cpu": limit}), bounds)
    assert said == (f"{subject}{complaint}" if complaint else "")


def test_the_whole_pod_counts_with_sidecars_and_without_overhead() -> None:
    half = {"resources": {"limits": {"cpu": "500m"}}}
    spec: dict[str, Any] = {
        "containers": [{"name": "a", **half}, {"name": "b", **half}],
        "initContainers": [{"name": "sidecar", "restartPolicy": "Always", **half}],
        "overhead": {"cpu": "100m"},
    }
    bounds = limit_range({"type": "Pod", "max": {"cpu": "1500m"}})
    assert complaints(pod(spec), bounds) == ""
    spec["overhead"] = {}
    spec["containers"].append({"name": "c", "resources": {"limits": {"cpu": "1m"}}})
    assert complaints(pod(spec), bounds) == "maximum cpu usage per Pod is 1500m, but limit is 1501m"


def test_one_message_for_several_containers_and_brackets_around_several_messages() -> None:
    asked = pod({"initContainers": [{"name": "init"}]})
    assert complaints(asked, for_containers(min={"cpu": "1", "memory": "1Gi"})) == (
        "[minimum cpu usage per Container is 1.  No request is specified, "
        "minimum memory usage per Container is 1Gi.  No request is specified]"
    )


def test_claims_are_held_to_their_request() -> None:
    bounds = limit_range(
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
    )

    def said(storage: str | None, operation: Operation = Operation.CREATE, subresource: str = "") -> str:
        requests = {} if storage is None else {"storage": storage}
        value = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": requests}}}
        claim = from_builtins(value, PersistentVolumeClaim)
        request = Request(PERSISTENT_VOLUME_CLAIMS, claim, operation, subresource=subresource)
        refusal = check_claim(request, [bounds]).refusal
        return str(refusal).removeprefix('persistentvolumeclaims "c" is forbidden: ') if refusal else ""

    assert said("1Gi") == said("2Gi") == ""
    subject = "storage usage per PersistentVolumeClaim is"
    assert said("3Gi", Operation.UPDATE) == f"maximum {subject} 2Gi, but request is 3Gi"
    assert said("1Mi") == f"minimum {subject} 1Gi, but request is 1Mi"
    assert said(None) == (
        f"[maximum {subject} 2Gi.  No request is specified, minimum {subject} 1Gi.  No request is specified]"
    )
    assert said("3Gi", Operation.UPDATE, "status") == said("3Gi", Operation.DELETE) == ""


def test_only_creation_and_resize_are_looked_at() -> None:
    bounds = [for_containers(max={"cpu": "1"})]
    big = with_resources({}, {"cpu": "2"})

    def refused(operation: Operation, subresource: str = "", old: Pod | None = None) -> bool:
        return check_pod(Request(PODS, big, operation, old, subresource), bounds).refusal is not None

    assert refused(Operation.CREATE)
    assert refused(Operation.UPDATE, RESIZE, big)
    assert not refused(Operation.UPDATE, "", big)
    assert not refused(Operation.UPDATE, "status", big)
    leaving = pod(deletionTimestamp="2026-07-01T12:00:00Z")
    assert not refused(Operation.UPDATE, RESIZE, leaving)


def test_a_resize_may_gain_what_it_did_not_ask_for() -> None:
    """The original fills in defaults there too, memory for a resize of cpu."""
    request = Request(PODS, with_resources({"cpu": "1"}), Operation.UPDATE, pod(), RESIZE)
    defaulted = set_defaults(request, [for_containers(default={"memory": "1Gi"})])
    assert str(defaulted.pod.spec.containers[0].resources.limits["memory"]) == "1Gi"


amounts = st.dictionaries(
    st.sampled_from(("cpu", "memory", "ephemeral-storage", "example.com/gpu")),
    st.integers(0, 5000).map(lambda milli: f"{milli}m") | st.just("1e1000"),
    max_size=3,
)
items = st.fixed_dictionaries(
    {"type": st.sampled_from(("Container", "Pod", "PersistentVolumeClaim"))},
    optional={name: amounts for name in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")},
)
ranges = st.lists(st.lists(items, max_size=3).map(lambda each: limit_range(*each)), max_size=3)
containers = st.lists(
    st.fixed_dictionaries({"requests": amounts, "limits": amounts}), min_size=1, max_size=3
).map(lambda each: [{"name": f"c{index}", "resources": part} for index, part in enumerate(each)])


@settings(deadline=None)
@given(containers, containers, ranges)
def test_defaults_are_set_once_and_take_nothing_away(
    regular: list[Any], init: list[Any], known: list[LimitRange]
) -> None:
    asked = default_pod(
        from_builtins({"metadata": {}, "spec": {"containers": regular, "initContainers": init}}, Pod)
    )
    once = set_defaults(Request(PODS, asked), known)
    again = set_defaults(Request(PODS, once.pod), known)
    assert again.pod == once.pod
    assert again.defaults == ()
    for before, after in zip(asked.spec.containers, once.pod.spec.containers, strict=True):
        for kept, given_now in (
            (before.resources.requests, after.resources.requests),
            (before.resources.limits, after.resources.limits),
        ):
            assert kept.items() <= given_now.items()
    assert bool(once.defaults) == (ANNOTATION in once.pod.metadata.annotations)


@settings(deadline=None)
@given(st.lists(items, max_size=4))
def test_defaulting_is_idempotent_and_validation_never_fails(written: list[Any]) -> None:
    defaulted = limit_range(*written)
    assert default_limit_range(defaulted) == defaulted
    validate_limit_range(defaulted)


@settings(deadline=None)
@given(containers, ranges)
def test_checking_any_pod_answers(regular: list[Any], known: list[LimitRange]) -> None:
    asked = default_pod(from_builtins({"metadata": {}, "spec": {"containers": regular}}, Pod))
    checked = check_pod(Request(PODS, asked), known)
    assert (checked.refusal is None) == (not any(each.complaint for each in checked.comparisons))
