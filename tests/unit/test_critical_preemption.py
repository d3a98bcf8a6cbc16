"""Preemption for critical pods: enough is freed, nothing needless, and nobody who is worth as much."""

from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.container import ResourceRequirements
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.pod import Container, Pod, PodSpec
from nodeagent.api.qos import QOSClass, qos_class
from nodeagent.api.quantity import Quantity
from nodeagent.scheduling.critical import preempt
from nodeagent.scheduling.fit import Comparison, PredicateFailure

CRITICAL = 2_000_000_000


def make_pod(name: str, cpu_milli: int, *, priority: int | None = None, guaranteed: bool = False) -> Pod:
    requests = {"cpu": Quantity.of_milli(cpu_milli), "memory": Quantity.of(1)} if cpu_milli else {}
    resources = ResourceRequirements(requests=requests, limits=requests if guaranteed else {})
    spec = PodSpec(containers=(Container(name="c", resources=resources),), priority=priority)
    return Pod(metadata=ObjectMeta(name=name), spec=spec)


def short_of(cpu_milli: int) -> Comparison:
    return Comparison("cpu", cpu_milli, 1000, 1000)


critical = make_pod("critical", 100, priority=CRITICAL)
running_pods = st.lists(
    st.builds(
        make_pod,
        st.uuids().map(str),
        st.sampled_from([0, 100, 250, 1000]),
        priority=st.sampled_from([None, 0, 1000, CRITICAL]),
        guaranteed=st.booleans(),
    ),
    max_size=7,
)


def cpu_of(pods: tuple[Pod, ...] | list[Pod]) -> int:
    return sum(
        container.resources.requests["cpu"].milli_value()
        for pod in pods
        for container in pod.spec.containers
        if container.resources.requests
    )


def test_an_ordinary_pod_displaces_nobody() -> None:
    failures = (short_of(100),)
    result = preempt(make_pod("p", 100, priority=5000), failures, [make_pod("v", 1000)])
    assert (result.victims, result.remaining, result.admits) == ((), failures, False)


def test_killing_cannot_mend_a_wrong_place() -> None:
    affinity = PredicateFailure("NodeAffinity", "elsewhere")
    result = preempt(critical, (short_of(100), affinity), [make_pod("v", 1000)])
    assert (result.victims, result.remaining) == ((), (affinity,))


def test_when_all_together_are_too_small_nobody_dies() -> None:
    result = preempt(critical, (short_of(500),), [make_pod("v", 499)])
    assert result.victims == ()
    assert result.error.endswith("no set of running pods found to reclaim resources: [(res: cpu, q: 1), ]")


@given(running_pods, st.integers(1, 2000))
def test_victims_suffice_and_are_worth_less(running: list[Pod], missing: int) -> None:
    result = preempt(critical, (short_of(missing),), running)
    worth_less = [pod for pod in running if (pod.spec.priority or 0) < CRITICAL]
    if cpu_of(worth_less) < missing:
        assert result.error and not result.victims
    else:
        assert result.admits
        assert cpu_of(result.victims) >= missing
        assert all(victim in worth_less for victim in result.victims)
        assert len({victim.metadata.name for victim in result.victims}) == len(result.victims)


@given(running_pods, st.integers(1, 2000))
def test_guaranteed_pods_die_last_and_only_for_what_others_cannot_give(
    running: list[Pod], missing: int
) -> None:
    victims = preempt(critical, (short_of(missing),), running).victims
    order = [QOSClass.BEST_EFFORT, QOSClass.BURSTABLE, QOSClass.GUARANTEED]
    ranks = [order.index(qos_class(victim)) for victim in victims]
    assert ranks == sorted(ranks)
    others = [
        pod
        for pod in running
        if (pod.spec.priority or 0) < CRITICAL and qos_class(pod) is not QOSClass.GUARANTEED
    ]
    if cpu_of(others) >= missing:
        assert QOSClass.GUARANTEED not in map(qos_class, victims)
