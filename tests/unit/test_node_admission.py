"""Admission to the node, and the record of it: what was compared, and what decided."""

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.api.pod import Pod
from nodeagent.api.quantity import Quantity
from nodeagent.eviction.manager import Policy
from nodeagent.eviction.signals import Condition
from nodeagent.hardware.topology import parse_short
from nodeagent.pods.admission import MOST_SENTENCES, NodeAdmission
from nodeagent.pods.decisions import AdmissionRecord
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from nodeagent.scheduling.fit import Comparison, NodeView
from tests.unit.resource_pods import container, pod

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MIB = 1 << 20


class Clock:
    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits here")


class Node:
    """A node that promises more CPUs than the three that it can give away, and what it decided."""

    def __init__(self, directory: Path) -> None:
        self.active: list[Pod] = []
        self.conditions: Collection[Condition] = ()
        self.records: list[AdmissionRecord] = []
        amounts = {"cpu": "8", "memory": "256Mi", "pods": "3"}
        view = NodeView("n1", {name: Quantity.parse(amount) for name, amount in amounts.items()})
        settings = ManagerSettings(cpu_manager_policy="static", node_reservation={"cpu": Quantity.parse("1")})
        self.admission = NodeAdmission(
            lambda: view,
            ResourceManagers(parse_short("1x4x1"), settings, directory),
            Policy(),
            lambda: self.conditions,
            lambda pod: self.active,
            Clock(),
            self.records.append,
        )

    def admit(self, newcomer: Pod) -> AdmissionRecord:
        refusal = self.admission.admit(newcomer)
        record = self.records[-1]
        assert (refusal is None) == record.admitted
        if refusal is not None:
            assert (refusal.reason, refusal.message) == (record.reason, record.message)
        else:
            self.active.append(newcomer)
        return record


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_an_admitted_pods_record_has_every_comparison_and_its_placement(node: Node) -> None:
    record = node.admit(pod("a", container("own", "2")))
    assert (record.namespace, record.name, record.uid, record.decided_at) == ("default", "a", "a", NOW)
    assert record.comparisons == (
        Comparison("pods", 1, 0, 3),
        Comparison("cpu", 2000, 0, 8000),
        Comparison("memory", 64 * MIB, 0, 256 * MIB),
    )
    assert record.resources == (
        "container own: got the CPUs 1-2 for itself, 2 of the 3 that were free: core 1,2 (1-2)",
    )


def test_a_refusal_for_want_of_room_says_what_was_taken(node: Node) -> None:
    node.admit(pod("a", container("own", "2")))
    record = node.admit(pod("b", container("own", "7")))
    assert record.reason == "OutOfcpu"
    assert Comparison("cpu", 7000, 2000, 8000) in record.comparisons
    assert record.resources == ()


def test_a_refusal_of_the_resource_managers_keeps_their_reasons(node: Node) -> None:
    record = node.admit(pod("a", container("own", "4")))
    assert record.reason == "UnexpectedAdmissionError"
    assert "requested=4, available=3" in record.message
    assert all(each.fits for each in record.comparisons)
    assert any("4" in sentence and "3" in sentence for sentence in record.resources)


def test_pressure_refuses_before_anything_is_compared(node: Node) -> None:
    node.conditions = (Condition.DISK_PRESSURE,)
    record = node.admit(pod("a", container("c", "1")))
    assert (record.reason, record.message) == ("Evicted", "The node had condition: [DiskPressure]. ")
    assert record.comparisons == ()
    assert not node.admission.may_return()


def test_a_record_of_very_many_containers_is_cut(node: Node) -> None:
    record = node.admit(pod("a", *(container(f"c{number}") for number in range(MOST_SENTENCES + 40))))
    assert len(record.resources) == MOST_SENTENCES + 1
    assert record.resources[-1] == "and 40 more"
