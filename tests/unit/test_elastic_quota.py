"""Sharing a node between teams: lending, giving back, and what never happens however events fall."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.admission.elastic_quota.amounts import in_units, same
from nodeagent.admission.elastic_quota.prefilter import prefilter
from nodeagent.admission.elastic_quota.quotas import Quotas, QuotaSettings
from nodeagent.admission.elastic_quota.revoke import Overuse
from nodeagent.admission.elastic_quota.runtime import Share, redistribute
from tests.unit.elastic_quotas import quota, quota_node, quota_pod

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RESOURCES = ("cpu", "memory")


def make(*groups: object, cpus: int = 10, gib: int = 10, **chosen: object) -> Quotas:
    quotas = Quotas(QuotaSettings(**chosen), lambda: NOW)  # type: ignore[arg-type]
    quotas.put_node(quota_node("node", cpus, gib))
    for group in groups:
        quotas.put_quota(group)  # type: ignore[arg-type]
    return quotas


def cpus_of(quotas: Quotas, name: str) -> float:
    quotas.refresh(name)
    group = quotas.group(name)
    assert group is not None and group.runtime is not None
    return group.runtime["cpu"].milli_value() / 1000


class TestLending:
    """Two teams, half of ten CPUs guaranteed to each, and each may use all of them."""

    @pytest.fixture
    def teams(self) -> Quotas:
        return make(quota("red", (5, 5), (10, 10)), quota("blue", (5, 5), (10, 10)))

    def test_what_one_team_does_not_need_the_other_may_use(self, teams: Quotas) -> None:
        teams.put_pod(quota_pod("big", "red", 8, 1))
        assert cpus_of(teams, "red") == 8
        assert prefilter(teams, quota_pod("big", "red", 8, 1)).admits

    def test_lent_capacity_comes_back_when_its_owner_asks_for_it(self, teams: Quotas) -> None:
        teams.put_pod(quota_pod("borrower", "red", 8, 1, node="node"))
        teams.put_pod(quota_pod("owner", "blue", 5, 1))
        assert (cpus_of(teams, "red"), cpus_of(teams, "blue")) == (5, 5)
        refused = prefilter(teams, quota_pod("more", "red", 1, 1))
        assert refused.message == (
            "Insufficient quotas, quotaName: red, runtime: cpu:5,memory:1Gi, used: cpu:8,memory:1Gi, "
            "pod's request: cpu:1,memory:1Gi, exceedDimensions: [cpu memory]"
        )

    def test_the_borrowers_pods_are_taken_back_after_the_delay_and_not_before(self, teams: Quotas) -> None:
        for number, priority in enumerate((10, 0, 5)):
            started = f"2026-03-01T11:0{number}:00Z"
            pod = quota_pod(f"red-{number}", "red", 3, 0, node="node", priority=priority, started=started)
            teams.put_pod(pod)
        teams.put_pod(quota_pod("owner", "blue", 5, 0))
        teams.refresh_all()
        overuse = Overuse(120.0)
        assert overuse.look(teams, 0.0) == {}
        assert overuse.look(teams, 120.0) == {}
        revoked = overuse.look(teams, 121.0)
        # nine CPUs are used, five may be: the two least important go
        assert {group: [pod.pod.metadata.name for pod in pods] for group, pods in revoked.items()} == {
            "red": ["red-2", "red-1"]
        }

    def test_a_team_that_does_not_lend_keeps_its_share_idle(self) -> None:
        teams = make(quota("red", (5, 5), (10, 10)), quota("blue", (5, 5), (10, 10), lends=False))
        teams.put_pod(quota_pod("big", "red", 8, 1))
        assert cpus_of(teams, "red") == 5

    def test_what_cannot_be_taken_back_is_never_borrowed(self, teams: Quotas) -> None:
        teams.put_pod(quota_pod("fixed", "red", 8, 1, preemptible=False))
        verdict = prefilter(teams, quota_pod("fixed", "red", 8, 1, preemptible=False))
        assert verdict.message.startswith("Insufficient non-preemptible quotas, quotaName: red, min: cpu:5")


def test_a_child_that_came_before_its_parent_has_its_part() -> None:
    quotas = make(quota("leaf", (2, 2), (8, 8), parent="dept"))
    quotas.put_pod(quota_pod("pod", "leaf", 4, 4))
    quotas.put_quota(quota("dept", (2, 2), (8, 8), is_parent=True))
    assert cpus_of(quotas, "leaf") == 4
    dept = quotas.group("dept")
    assert dept is not None and in_units(dept.all.request)["cpu"] == 4000


def test_minimums_that_the_node_cannot_hold_shrink_in_proportion() -> None:
    quotas = make(quota("red", (6, 6), (10, 10)), quota("blue", (12, 12), (20, 20)), cpus=9, gib=9)
    for name in ("red", "blue"):
        quotas.put_pod(quota_pod(f"{name}-pod", name, 10, 10))
    # 9 of 18: half of each minimum
    assert (cpus_of(quotas, "red"), cpus_of(quotas, "blue")) == (3, 6)


def test_a_minimum_that_is_lowered_is_guaranteed_no_longer() -> None:
    teams = make(quota("dept", (2, 2), (10, 10), is_parent=True), guarantees=True)
    for least in (6, 4):
        teams.put_quota(quota("red", (least, least), (10, 10), parent="dept"))
        teams.refresh_all()
        # the department is guaranteed what its only team is, which is more than its own minimum
        for name in ("red", "dept"):
            group = teams.group(name)
            assert group is not None and in_units(group.guaranteed)["cpu"] == least * 1000


shares = st.lists(
    st.builds(
        Share,
        name=st.uuids().map(str),
        weight=st.integers(0, 50),
        request=st.integers(0, 300),
        minimum=st.integers(0, 100),
        guarantee=st.just(0),
        lends=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda each: each.name,
)


@given(total=st.integers(-50, 1000), groups=shares)
def test_sharing_gives_nobody_more_than_asked_and_nothing_that_is_not_there(
    total: int, groups: list[Share]
) -> None:
    runtime = redistribute(total, groups)
    kept = sum(min(each.request, each.minimum) if each.lends else each.minimum for each in groups)
    assert sum(runtime.values()) <= max(total, kept)
    for each in groups:
        if each.lends:
            assert runtime[each.name] <= each.request
        else:
            assert each.minimum <= runtime[each.name] <= max(each.request, each.minimum)
    unsatisfied = [each for each in groups if each.weight and runtime[each.name] < each.request]
    assert not unsatisfied or sum(runtime.values()) >= total


group_specs = st.tuples(st.integers(0, 6), st.integers(0, 10), st.booleans(), st.integers(0, 12))


@settings(max_examples=60, deadline=None)
@given(leaves=st.lists(group_specs, min_size=1, max_size=6), order=st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(leaves: list[tuple[int, int, bool, int]], order: object) -> None:
    """Two departments; what each group may use and asks for is the same however the events fall."""
    events: list[object] = [
        quota(f"dept-{number}", (10, 10), (30, 30), is_parent=True) for number in range(2)
    ]
    for number, (least, more, lends, _) in enumerate(leaves):
        parent = f"dept-{number % 2}"
        most = (least + more, least + more)
        events.append(quota(f"leaf-{number}", (least, least), most, parent=parent, lends=lends))
    pods = [
        quota_pod(f"pod-{number}", f"leaf-{number}", leaf[3], leaf[3]) for number, leaf in enumerate(leaves)
    ]
    straight = make(*events, cpus=12, gib=12)
    order.shuffle(events)  # type: ignore[attr-defined]
    shuffled = make(*events, cpus=12, gib=12)
    for pod in pods:
        straight.put_pod(pod)
    # asked in between, counted, taken out and counted again: no trace may be left
    for pod in reversed(pods):
        shuffled.put_pod(pod)
        shuffled.refresh_all()
        shuffled.remove_pod(f"teams/{pod.metadata.name}")
        shuffled.put_pod(pod)
    for quotas in (straight, shuffled):
        quotas.refresh_all()
    for name in [f"leaf-{number}" for number in range(len(leaves))] + ["dept-0", "dept-1"]:
        one, other = straight.group(name), shuffled.group(name)
        assert one is not None and other is not None
        assert one.runtime == other.runtime
        assert same(one.all.request, other.all.request)
        for resource in RESOURCES:
            most = one.max[resource]
            assert not one.lends or (one.runtime or {})[resource] <= most
