"""The scheduler's preemption: victims are needed, and enough."""

from hypothesis import assume, given
from hypothesis import strategies as st

from nodeagent.api.container import ResourceRequirements
from nodeagent.api.meta import LabelSelector, ObjectMeta
from nodeagent.api.pod import Container, Pod, PodSpec
from nodeagent.api.pod_status import PodStatus
from nodeagent.api.quantity import Quantity
from nodeagent.scheduling.fit import NodeView
from nodeagent.scheduling.preemption import Candidate, DisruptionBudget, find_victims, nominate, refusal

NODE = NodeView("n1", {"cpu": Quantity.of(2), "pods": Quantity.of(5)})
BUDGET = DisruptionBudget("ns", LabelSelector(match_labels={"app": "x"}), 1)


def make_pod(name: str, cpu_milli: int, priority: int = 0, app: str = "", started: str | None = None) -> Pod:
    requests = {"cpu": Quantity.of_milli(cpu_milli)}
    container = Container(name="c", resources=ResourceRequirements(requests=requests))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="ns", labels={"app": app} if app else {}),
        spec=PodSpec(containers=(container,), priority=priority),
        status=PodStatus(start_time=started),
    )


running_pods = st.lists(
    st.builds(
        make_pod,
        st.uuids().map(str),
        st.sampled_from([100, 500, 1000]),
        priority=st.sampled_from([-10, 0, 50, 1000]),
        app=st.sampled_from(["", "x"]),
    ),
    max_size=7,
)


@given(running_pods, st.sampled_from([100, 1000, 2000]))
def test_with_the_victims_gone_it_fits_and_each_of_them_had_to_go(running: list[Pod], cpu_milli: int) -> None:
    pod = make_pod("pending", cpu_milli, priority=100)
    assume(refusal(pod, NODE, running) is not None)
    outcome = find_victims(pod, NODE, running, [BUDGET])
    if isinstance(outcome, Candidate):
        staying = [each for each in running if each not in outcome.victims]
        assert refusal(pod, NODE, staying) is None
        assert all((victim.spec.priority or 0) < 100 for victim in outcome.victims)
        assert all(refusal(pod, NODE, [*staying, victim]) is not None for victim in outcome.victims)


def test_a_budget_protects_the_more_important_of_two_equals() -> None:
    guarded = make_pod("guarded", 1000, app="x")
    free = make_pod("free", 1000)
    nothing_left = DisruptionBudget("ns", LabelSelector(match_labels={"app": "x"}), 0)
    outcome = find_victims(make_pod("pending", 1000, priority=1), NODE, [guarded, free], [nothing_left])
    assert isinstance(outcome, Candidate)
    assert (outcome.victims, outcome.budget_violations) == ((free,), 0)


def test_a_pod_that_was_disrupted_already_costs_its_budget_nothing() -> None:
    pods = [make_pod("a", 1000, app="x"), make_pod("b", 1000, app="x")]
    for disrupted, violations in ((frozenset[str](), 1), (frozenset({"a"}), 0)):
        budget = DisruptionBudget("ns", LabelSelector(match_labels={"app": "x"}), 1, disrupted)
        outcome = find_victims(make_pod("pending", 2000, priority=1), NODE, pods, [budget])
        assert isinstance(outcome, Candidate)
        assert outcome.budget_violations == violations


def test_of_equal_nodes_the_one_whose_victim_started_last_is_chosen() -> None:
    nodes = {
        name: (NodeView(name, NODE.allocatable), [make_pod(name, 2000, started=started)])
        for name, started in (
            ("old", "2026-01-01T09:00:00Z"),
            # Half an hour later than the other, though its text sorts first.
            ("new", "2026-01-01T08:30:00-01:00"),
        )
    }
    assert nominate(make_pod("pending", 1000, priority=1), nodes).node == "new"
