"""Nothing that is made and deleted, in whatever order, ever passes a quota."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nodeagent.admission.chain import Policies, admit, admit_request
from nodeagent.admission.quota.usage import measured
from nodeagent.admission.request import PODS, Request
from nodeagent.api.decode import from_builtins
from nodeagent.api.defaults import default_pod
from nodeagent.api.pod import Pod
from nodeagent.api.policy import PriorityClass, ResourceQuota
from tests.unit.quotas import NOW, quota

cpu = st.integers(0, 3000).map(lambda milli: f"{milli}m")
memory = st.sampled_from(("1Mi", "512Mi", "1Gi", "1500M"))
pods = st.builds(
    lambda amounts, limited, deadline, priority, phase: (
        {
            "containers": [
                {"name": "a", "resources": {"requests": amounts, **({"limits": amounts} if limited else {})}}
            ],
            **({"activeDeadlineSeconds": 60} if deadline else {}),
            **({"priorityClassName": "high"} if priority else {}),
        },
        phase,
    ),
    st.fixed_dictionaries({}, optional={"cpu": cpu, "memory": memory}),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(("Running", "Succeeded")),
)
scope_lists = st.lists(
    st.sampled_from(("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass")),
    max_size=2,
    unique=True,
)
hard_limits = st.dictionaries(
    st.sampled_from(("pods", "count/pods", "requests.cpu", "limits.memory", "cpu", "memory")),
    st.integers(0, 4).map(str),
    min_size=1,
)
quotas = st.lists(
    st.builds(lambda hard, scopes: quota(hard, scopes=scopes), hard_limits, scope_lists),
    min_size=1,
    max_size=3,
)
HIGH = from_builtins({"metadata": {"name": "high"}, "value": 10}, PriorityClass)


def exceeded(known: Iterable[ResourceQuota]) -> bool:
    return any(amount > each.status.hard[name] for each in known for name, amount in each.status.used.items())


@settings(deadline=None)
@given(st.lists(st.tuples(pods, st.integers(0, 5)), max_size=12), quotas)
def test_no_sequence_of_creations_and_deletions_passes_a_quota(
    steps: list[tuple[tuple[dict[str, Any], str], int]], known: list[ResourceQuota]
) -> None:
    """Counting anew from what exists and carrying the status on lead to the same answers."""
    policies = Policies(priority_classes=(HIGH,), quotas=tuple(known))
    stored = {index: each for index, each in enumerate(measured(known, {}, NOW))}
    existing: list[Pod] = []
    for number, ((spec, phase), lot) in enumerate(steps):
        if existing and lot == 0:
            existing.pop()
            stored = dict(enumerate(measured(known, {PODS: existing}, NOW)))
            continue
        value = {"metadata": {"name": f"p{number}", "namespace": "default"}, "spec": spec}
        asked = default_pod(from_builtins(value, Pod))
        outcome = admit(asked, policies, existing, NOW)
        by_status = Policies(priority_classes=(HIGH,), quotas=tuple(stored.values()))
        assert admit_request(Request(PODS, asked), by_status, NOW) == outcome
        if outcome.refusal is not None:
            continue
        existing.append(outcome.pod)
        recounted = measured(known, {PODS: existing}, NOW)
        assert not exceeded(recounted)
        changed = list(outcome.changed)
        for index, before in stored.items():
            if changed and before.spec is changed[0].spec:
                stored[index] = changed.pop(0)
        assert [each.status for each in stored.values()] == [each.status for each in recounted]
        # A pod that ends gives back what it held, but for its place as an object.
        existing[-1] = replace(outcome.pod, status=replace(outcome.pod.status, phase=phase))
        stored = dict(enumerate(measured(known, {PODS: existing}, NOW)))
