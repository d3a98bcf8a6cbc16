"""A node of four CPUs on which pods of different priority meet: who makes room, and when the other comes."""

from pathlib import Path

import msgspec
import pytest

from nodeagent.admission.elastic_quota.quotas import QuotaSettings
from nodeagent.admission.policies import SYSTEM_CLASSES, Policies
from nodeagent.api.container import ResourceRequirements
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.pod import Container, Pod, PodSpec
from nodeagent.api.policy import PriorityClass
from nodeagent.api.quantity import Quantity
from nodeagent.eviction.manager import Policy
from nodeagent.hardware.topology import parse_short
from nodeagent.pods.admission import NodeAdmission
from nodeagent.pods.decisions import AdmissionRecord, DecisionLog
from nodeagent.pods.events import EventRecorder
from nodeagent.pods.launch import LaunchSettings
from nodeagent.pods.manager import PodManager
from nodeagent.pods.preemptor import Preemptor
from nodeagent.pods.record import API_SOURCE, PodRecord
from nodeagent.pods.services import Services
from nodeagent.pods.team_quotas import TeamQuotas
from nodeagent.pods.worker import PodWorker
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from nodeagent.scheduling.fit import NodeView
from nodeagent.store import Store
from tests.unit.elastic_quotas import quota
from tests.unit.test_pod_worker import START, FakeClock, FakeHost, FakeObserver

PRIORITIES = {"low": 10, "middle": 500, "high": 1000}
GROUP = "quota.scheduling.koordinator.sh/name"


class Node:
    """Four CPUs, and every part of the pods room that is not the kernel."""

    def __init__(self, directory: Path, settings: QuotaSettings | None = None) -> None:
        self.clock = FakeClock()
        self.host = FakeHost(self.clock)
        self.store = Store(directory / "nodeagent.db")
        self.decisions = DecisionLog(self.store)
        self.records: list[AdmissionRecord] = []
        self.preempted: list[str] = []
        amounts = {"cpu": Quantity.of(4), "memory": Quantity.parse("8Gi"), "pods": Quantity.of(10)}
        view = NodeView("n1", amounts)
        self.events = events = EventRecorder(self.store, self.clock, "n1")
        self.quotas = TeamQuotas(
            settings or QuotaSettings(), lambda: view, lambda: self.manager.quota_pods(), self.clock
        )
        self.admission = admission = NodeAdmission(
            lambda: view,
            ResourceManagers(parse_short("1x4x1"), ManagerSettings(), None),
            Policy(),
            lambda: (),
            lambda pod: self.preemptor.rivals_of(pod),
            lambda: self.manager.admitted_pods(),
            self.clock,
            self.records.append,
            lambda pod: self.quotas.judge(pod, self.preemptor.kept_before(pod)),
            lambda pod, over_quota: self.preemptor.make_room(pod, is_over_quota=over_quota),
        )
        classes = (
            PriorityClass(metadata=ObjectMeta(name=name), value=value) for name, value in PRIORITIES.items()
        )
        polite = PriorityClass(metadata=ObjectMeta(name="polite"), value=900, preemption_policy="Never")
        admission.policies = Policies(priority_classes=(*SYSTEM_CLASSES, *classes, polite))
        self.services = Services(
            clock=self.clock,
            runtime=self.host,
            cgroups=self.host,
            store=self.store,
            events=events,
            launch=LaunchSettings("n1", "10.0.0.1", directory / "logs", 1000, 2),
            memory_capacity_bytes=1 << 30,
            admit=admission.admit,
            starting=lambda pod, name: None,
            release=admission.release,
            may_return=lambda: True,
            records=self.host.records,
            observer=FakeObserver(),
            longest_backoff_seconds=300,
        )
        self.manager = PodManager(self.services)
        self.preemptor = Preemptor(
            lambda: view,
            self.manager,
            self.quotas,
            Policy().protects,
            events,
            self.decisions,
            self.clock,
            self.preempted.append,
        )

    async def put(self, name: str, cpu: str, priority: str = "", *, group: str = "") -> None:
        """A pod comes, by the API, and its worker does what it can."""
        limits = ResourceRequirements(requests={"cpu": Quantity.parse(cpu)})
        container = Container(name="c", image="x", command=("sleep",), resources=limits)
        spec = PodSpec(
            containers=(container,),
            node_name="n1",
            restart_policy="Always",
            priority_class_name=priority or None,
        )
        labels = {GROUP: group} if group else {}
        pod = Pod(metadata=ObjectMeta(name=name, namespace="default", uid=name, labels=labels), spec=spec)
        record = PodRecord(pod=pod, source=API_SOURCE, created=START)
        self.manager.workers[name] = PodWorker(record, self.services)
        await self.settle()

    async def settle(self) -> None:
        for worker in list(self.manager.workers.values()):
            while await worker.step() == 0 and not worker.gone:
                pass

    async def end(self, *names: str) -> None:
        """The processes of pods end, and a little later everybody looks again."""
        for name in names:
            self.host.end_all(name)
        await self.settle()
        self.clock.advance(1)
        await self.settle()

    def phase(self, name: str) -> str | None:
        return self.manager.workers[name].pod.status.phase

    def running(self) -> set[str]:
        return {name for name in self.manager.workers if self.phase(name) == "Running"}

    def asked_to_end(self) -> set[str]:
        return {name for name, worker in self.manager.workers.items() if worker.is_stopping}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


async def test_the_least_important_makes_room_and_only_as_much_as_is_needed(node: Node) -> None:
    await node.put("low-a", "1", "low")
    await node.put("low-b", "1", "low")
    await node.put("middle", "2", "middle")
    await node.put("high", "1", "high")
    assert len(node.asked_to_end()) == 1
    assert node.asked_to_end() <= {"low-a", "low-b"}
    status = node.manager.workers["high"].pod.status
    assert (status.phase, status.nominated_node_name) == ("Pending", "n1")
    assert node.records[-1].nominated
    assert "displaces default/low-" in node.records[-1].preemption[0]


async def test_the_newcomer_waits_until_the_displaced_pod_has_ended_in_its_own_time(node: Node) -> None:
    await node.put("low", "3", "low")
    await node.put("high", "3", "high")
    node.clock.advance(5)
    await node.settle()
    assert node.host.started == ["c/0"], "only the first one's"
    await node.end("low")
    assert node.running() == {"high"}
    displaced = node.manager.workers["low"].pod.status
    assert (displaced.phase, displaced.reason) == ("Failed", "Preempted")
    assert displaced.message == "Preempted by pod high on node n1"
    assert "DisruptionTarget" in {each.type for each in displaced.conditions}
    assert node.preempted == ["cpu"]


async def test_nobody_is_displaced_for_a_pod_that_waits_already(node: Node) -> None:
    await node.put("low-a", "2", "low")
    await node.put("low-b", "2", "low")
    await node.put("high", "2", "high")
    first = node.asked_to_end()
    for _ in range(5):
        node.clock.advance(1)
        await node.settle()
    assert node.asked_to_end() == first
    assert "waits until default/low-" in node.records[-1].preemption[0]


async def test_room_that_is_kept_is_not_taken_by_others(node: Node) -> None:
    await node.put("low", "4", "low")
    await node.put("high", "4", "high")
    node.host.end_all("low")
    await node.manager.workers["low"].step()
    await node.put("other", "4", "middle")
    node.clock.advance(1)
    await node.settle()
    assert node.running() == {"high"}
    assert node.phase("other") == "Pending"


async def test_a_more_important_pod_may_take_the_room_kept_for_another(node: Node) -> None:
    await node.put("low", "4", "low")
    await node.put("middle", "4", "middle")
    await node.put("high", "4", "high")
    await node.end("low")
    assert node.running() == {"high"}
    assert node.phase("middle") == "Pending"
    assert node.manager.workers["middle"].pod.status.nominated_node_name is None


async def test_a_pod_that_may_not_preempt_and_one_of_equal_priority_wait(node: Node) -> None:
    await node.put("low", "4", "low")
    await node.put("polite", "4", "polite")
    await node.put("equal", "4", "low")
    assert node.asked_to_end() == set()
    assert {node.phase("polite"), node.phase("equal")} == {"Pending"}
    assert any("preemptionPolicy=Never" in each.preemption[0] for each in node.records if each.preemption)


async def test_nobody_ends_for_a_pod_that_is_larger_than_the_node(node: Node) -> None:
    await node.put("low", "4", "low")
    await node.put("giant", "5", "high")
    assert node.asked_to_end() == set()


async def test_a_critical_pod_displaces_by_kubelets_rule_and_words(node: Node) -> None:
    await node.put("small", "1", "middle")
    await node.put("large", "3", "middle")
    await node.put("system", "2", "system-cluster-critical")
    assert node.asked_to_end() == {"large"}
    failure = node.manager.workers["large"].record.failure
    assert failure is not None
    assert (failure.reason, failure.message) == (
        "Preempting",
        "Preempted in order to admit critical pod",
    )


async def test_within_a_quota_group_only_its_own_pods_make_room(node: Node) -> None:
    node.quotas.groups = (quota("red", (2, 4), (2, 4)), quota("blue", (2, 4), (2, 4)))
    await node.put("blue", "1", "low", group="blue")
    await node.put("red", "2", "low", group="red")
    await node.put("red-high", "1", "high", group="red")
    assert node.asked_to_end() == {"red"}
    await node.end("red")
    assert node.running() == {"blue", "red-high"}
    assert node.preempted == ["quota"]


async def test_no_pod_ends_where_its_group_would_still_be_too_full(node: Node) -> None:
    node.quotas.groups = (quota("red", (1, 4), (1, 4)),)
    await node.put("red", "1", "low", group="red")
    await node.put("red-large", "2", "high", group="red")
    assert node.asked_to_end() == set()
    assert node.running() == {"red"}


async def test_a_displaced_pod_does_not_displace_in_turn(node: Node) -> None:
    await node.put("low", "4", "low")
    await node.put("high", "4", "high")
    await node.end("low")
    node.manager.workers["low"].record = msgspec.structs.replace(
        node.manager.workers["low"].record, source="manifest.yaml"
    )
    for _ in range(20):
        node.clock.advance(60)
        await node.settle()
    assert node.running() == {"high"}
    assert node.phase("low") == "Failed"


async def test_a_group_has_no_room_before_the_displaced_pods_processes_are_gone(node: Node) -> None:
    node.quotas.groups = (quota("red", (2, 4), (2, 4)),)
    await node.put("red", "2", "low", group="red")
    await node.put("red-high", "2", "high", group="red")
    node.clock.advance(2)
    await node.settle()
    assert node.running() == set()
    assert node.host.started == ["c/0"], "the first one's, which runs on"
    await node.end("red")
    assert node.running() == {"red-high"}


async def test_a_group_keeps_the_room_for_whom_it_was_made(node: Node) -> None:
    node.quotas.groups = (quota("red", (2, 4), (2, 4)),)
    await node.put("red", "2", "low", group="red")
    await node.put("first", "2", "high", group="red")
    await node.put("second", "2", "high", group="red")
    failure = node.manager.workers["second"].record.failure
    assert failure is not None and not failure.nominated, "one victim makes room for one"
    node.host.end_all("red")
    while await node.manager.workers["red"].step() == 0:
        pass
    await node.put("late", "2", "low", group="red")
    assert node.running() == set()
    await node.end()
    assert node.running() == {"first"}


async def test_who_is_leaving_a_group_already_is_counted_on(node: Node) -> None:
    node.quotas.groups = (quota("red", (4, 8), (4, 8)),)
    for name in ("a", "b", "c", "d"):
        await node.put(name, "1", "low", group="red")
    node.manager.workers["a"].delete(30)
    await node.settle()
    await node.put("high", "2", "high", group="red")
    assert len(node.asked_to_end()) == 2


async def test_no_room_is_kept_for_a_pod_that_is_refused_for_another_reason(node: Node) -> None:
    await node.put("low", "4", "low")
    await node.put("high", "4", "high")
    (waiting,) = node.preemptor.kept_before(node.manager.workers["low"].pod)
    assert waiting.metadata.name == "high"
    node.admission.is_node_shutting_down = True
    await node.end("low")
    assert node.preemptor.kept_before(node.manager.workers["low"].pod) == []
