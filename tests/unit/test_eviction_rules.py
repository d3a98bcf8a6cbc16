"""Thresholds, grace, admission under pressure, storage limits: rules that need no clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.pod import Pod
from nodeagent.eviction.admission import MEMORY_PRESSURE_TAINT, refuse
from nodeagent.eviction.local_storage import StorageLimit, find_excess, has_storage_limits
from nodeagent.eviction.manager import (
    Policy,
    State,
    choose,
    short_of,
    synchronise,
    thresholds_crossed,
)
from nodeagent.eviction.ranking import UNDIVIDED, rank
from nodeagent.eviction.signals import Condition, Observation, Observations, Signal, observe_hot
from nodeagent.eviction.thresholds import ThresholdError, parse_thresholds
from nodeagent.stats.hot import HotMemory, HotSample
from nodeagent.stats.summary import ContainerStats, FsStats, MemoryStats, PodReference, PodStats, VolumeStats
from tests.unit.simulated_node import MIB, START, make_pod, make_policy

MEMORY = Signal.MEMORY_AVAILABLE


def seen(available_mib: float, capacity_mib: int = 2048) -> Observations:
    return {MEMORY: Observation(int(available_mib * MIB), capacity_mib * MIB)}


def stats_of(pod: Pod, working_set: int = 0, **disk: object) -> PodStats:
    meta = pod.metadata
    return PodStats(
        pod_ref=PodReference(name=meta.name, namespace=meta.namespace, uid=meta.uid),
        memory=MemoryStats(working_set_bytes=working_set),
        **disk,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--5%", 'strconv.ParseFloat: parsing "--5": invalid syntax'),
        ("0x10%", 'strconv.ParseFloat: parsing "0x10": invalid syntax'),
        ("+nan%", 'strconv.ParseFloat: parsing "+nan": invalid syntax'),
        ("nAn%", "eviction percentage must be a number: nAn%"),
        ("1e39%", 'strconv.ParseFloat: parsing "1e39": value out of range'),
        ("1e400%", 'strconv.ParseFloat: parsing "1e400": value out of range'),
        ("-inf%", "eviction percentage threshold memory.available must be >= 0%: -inf%"),
        ("100.1%", "eviction percentage threshold memory.available must be <= 100%: 100.1%"),
        ("٣%", 'strconv.ParseFloat: parsing "٣": invalid syntax'),
    ],
)
def test_percentages_that_are_none(text: str, message: str) -> None:
    with pytest.raises(ThresholdError) as refused:
        parse_thresholds(eviction_hard={"memory.available": text})
    assert refused.value.message == message
    assert str(refused.value) == f"evictionHard[memory.available]: {message}"


@pytest.mark.parametrize(
    ("text", "fraction"), [("10%%", 0.1), ("1_0%", 0.1), ("0x1p3%", 0.08), ("0.0%", 0.0), ("+5.%", 0.05)]
)
def test_percentages_as_go_reads_them(text: str, fraction: float) -> None:
    (threshold,) = parse_thresholds(eviction_hard={"memory.available": text})
    assert threshold.value.fraction == pytest.approx(fraction, rel=1e-7)


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        (
            {"eviction_soft_grace_period": {"memory.available": "-1s"}},
            "evictionSoftGracePeriod[memory.available]",
            "invalid eviction grace period specified: -1s, must be a positive value",
        ),
        (
            {"eviction_minimum_reclaim": {"memory.available": "-1Mi"}},
            "evictionMinimumReclaim[memory.available]",
            "negative eviction minimum reclaim specified for memory.available",
        ),
    ],
)
def test_settings_that_are_negative(settings: dict[str, dict[str, str]], field: str, message: str) -> None:
    with pytest.raises(ThresholdError) as refused:
        parse_thresholds(**settings)  # type: ignore[arg-type]
    assert (refused.value.field, refused.value.message) == (field, message)


@given(st.text(max_size=8))
def test_any_text_is_a_threshold_or_an_error(text: str) -> None:
    for suffix in ("", "%"):
        try:
            parse_thresholds(
                eviction_hard={"memory.available": text + suffix},
                eviction_minimum_reclaim={"memory.available": text + suffix},
            )
        except ThresholdError as error:
            assert error.message


@given(
    thresholds=st.lists(st.integers(1, 1000), max_size=4),
    steps=st.lists(st.tuples(st.floats(0.01, 400), st.integers(0, 1200)), max_size=20),
    grace=st.integers(0, 120),
)
def test_rounds_keep_their_promises(
    thresholds: list[int], steps: list[tuple[float, int]], grace: int
) -> None:
    """Whatever is seen: only what is short is met, only after its grace, and conditions follow."""
    policy = make_policy(
        soft={"memory.available": f"{thresholds[0]}Mi"} if thresholds else {},
        grace={"memory.available": f"{grace}s"},
    )
    state, now = State(), 0.0
    for elapsed, available in steps:
        now += elapsed
        short = short_of(policy.thresholds, state, seen(available))
        outcome = synchronise(policy, state, seen(available), now)
        assert set(outcome.state.first_observed) == set(short)
        for threshold in outcome.state.met:
            assert now - outcome.state.first_observed[threshold] >= grace
        assert set(outcome.acting) <= set(outcome.state.met)
        assert bool(short) <= (Condition.MEMORY_PRESSURE in outcome.state.conditions)
        state = outcome.state


def test_exactly_at_the_threshold_is_not_below_it() -> None:
    policy = make_policy({"memory.available": "300Mi"})
    assert thresholds_crossed(policy.thresholds, seen(300)) == ()
    assert thresholds_crossed(policy.thresholds, seen(299.999)) == policy.thresholds


def test_a_figure_seen_before_does_not_evict_again() -> None:
    policy = make_policy({"memory.available": "300Mi"})
    old = {MEMORY: Observation(MIB, 2048 * MIB, START)}
    first = synchronise(policy, State(), old, 0.0)
    again = synchronise(policy, first.state, old, 10.0)
    assert first.acting == policy.thresholds
    assert again.acting == ()
    assert again.state.met == policy.thresholds


@pytest.mark.parametrize(
    ("most", "own", "expected"),
    [(60, 20, 20), (10, 20, 10), (60, None, 60), (-1, 20, 20), (-1, None, 30), (0, 20, 0)],
)
def test_the_grace_of_a_soft_threshold(most: int, own: int | None, expected: int) -> None:
    spec = {} if own is None else {"terminationGracePeriodSeconds": own}
    pod = make_pod("p", **spec)
    policy = make_policy(
        soft={"memory.available": "300Mi"},
        grace={"memory.available": "1s"},
        max_pod_grace_period_seconds=most,
    )
    choice = choose(policy, policy.thresholds[0], seen(100)[MEMORY], [pod], {})
    assert choice.eviction is not None
    assert (choice.eviction.grace_seconds, choice.eviction.immediate) == (expected, False)


@given(st.permutations(range(6)))
def test_the_order_of_eviction_does_not_depend_on_the_order_of_pods(order: list[int]) -> None:
    pods = [
        make_pod("over", memory="100Mi"),
        make_pod("far-over", memory="100Mi"),
        make_pod("within", memory="1Gi"),
        make_pod("low", memory="1Gi", priority=-5),
        make_pod("unmeasured"),
        make_pod("high-over", memory="1Mi", priority=10),
    ]
    usage = {"over": 200, "far-over": 300, "within": 500, "low": 10, "high-over": 900}
    stats = {
        pod.metadata.uid: stats_of(pod, usage[pod.metadata.name] * MIB)
        for pod in pods
        if pod.metadata.name in usage
    }
    ranked = rank(MEMORY, [pods[place] for place in order], stats, UNDIVIDED)
    names = [candidate.pod.metadata.name for candidate in ranked]
    assert names == ["unmeasured", "far-over", "over", "high-over", "low", "within"]


def test_under_memory_pressure_only_best_effort_is_refused() -> None:
    pressure = {Condition.MEMORY_PRESSURE}
    policy = Policy()
    tolerant = make_pod("t", tolerations=[{"key": MEMORY_PRESSURE_TAINT, "operator": "Exists"}])
    refusal = refuse(policy, make_pod("b"), pressure)
    assert str(refusal) == "Evicted: The node had condition: [MemoryPressure]. "
    assert refuse(policy, tolerant, pressure) is None
    assert refuse(policy, make_pod("g", memory="1Mi"), pressure) is None
    assert refuse(policy, make_pod("b"), set()) is None


def test_under_other_pressure_all_but_critical_pods_are_refused() -> None:
    pressure = {Condition.PID_PRESSURE, Condition.MEMORY_PRESSURE}
    refusal = refuse(Policy(), make_pod("g", memory="1Mi"), pressure)
    assert refusal is not None
    assert refusal.message == "The node had condition: [MemoryPressure PIDPressure]. "
    assert refuse(Policy(), make_pod("c", priority=2_000_000_000), pressure) is None


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"operator": "Exists"}, True),
        ({"key": MEMORY_PRESSURE_TAINT}, True),
        ({"key": MEMORY_PRESSURE_TAINT, "value": "x"}, False),
        ({"key": MEMORY_PRESSURE_TAINT, "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], tolerates: bool) -> None:
    pod = make_pod("p", tolerations=[toleration])
    assert (refuse(Policy(), pod, {Condition.MEMORY_PRESSURE}) is None) is tolerates


def test_storage_limits_of_a_volume_a_pod_and_a_container() -> None:
    volume = {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}
    pod = make_pod("p", storage_limit="2Gi", volumes=[volume])

    def excess(volume_mib: int, pod_mib: int, logs_mib: int, *, dedicated: bool = False) -> object:
        container = ContainerStats(
            name="c", rootfs=FsStats(used_bytes=1000 * MIB), logs=FsStats(used_bytes=logs_mib * MIB)
        )
        stats = stats_of(
            pod,
            volumes=(VolumeStats(name="v", used_bytes=volume_mib * MIB),),
            ephemeral_storage=FsStats(used_bytes=pod_mib * MIB),
            containers=(container,),
        )
        found = find_excess(pod, stats, dedicated_imagefs=dedicated)
        return found and (found.limit, found.message.text)

    assert has_storage_limits(pod)
    assert not has_storage_limits(make_pod("q", volumes=[{"name": "v", "emptyDir": {}}]))
    assert excess(1024, 2048, 1048) is None
    assert excess(1025, 2049, 2000) == (
        StorageLimit.EMPTY_DIR,
        'Usage of EmptyDir volume "v" exceeds the limit "1Gi". ',
    )
    assert excess(0, 2049, 0) == (
        StorageLimit.POD,
        "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ",
    )
    assert excess(0, 0, 1049) == (
        StorageLimit.CONTAINER,
        'Container c exceeded its local ephemeral storage limit "2Gi". ',
    )
    assert excess(0, 0, 1049, dedicated=True) is None


def test_the_lesser_of_two_measures_of_memory_counts() -> None:
    def available(kernel_mib: int | None) -> int:
        sample = HotSample(
            node_memory=HotMemory(2048 * MIB, 500 * MIB),
            kernel_available_bytes=None if kernel_mib is None else kernel_mib * MIB,
            pods_memory=None,
            processes=None,
            filesystems=(),
        )
        return observe_hot(sample, START)[MEMORY].available

    assert available(None) == 500 * MIB
    assert available(1000) == 500 * MIB
    assert available(90) == 90 * MIB
