"""The Node as others see it: conditions with the time of their last change, taints, the machine's end."""

from datetime import UTC, datetime, timedelta

from nodeagent.api.node import Node, NodeSystemInfo
from nodeagent.eviction.signals import Condition
from nodeagent.node import NodeFacts, node_object

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
FACTS = NodeFacts(
    name="n1",
    address="127.0.0.1",
    labels={},
    capacity={},
    allocatable={},
    system=NodeSystemInfo(machine_id="m", system_uuid="s", boot_id="b"),
    port=10255,
    started=STARTED,
)


def at(second: int, before: Node | None, *pressures: Condition, shutting_down: bool = False) -> Node:
    now = STARTED + timedelta(seconds=second)
    return node_object(FACTS, pressures, before, now, shutting_down=shutting_down)


def condition(node: Node, kind: str) -> tuple[str, str | None, str | None]:
    (found,) = [each for each in node.status.conditions if each.type == kind]
    return found.status, found.reason, found.last_transition_time


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    calm = at(0, None)
    assert condition(calm, "MemoryPressure") == (
        "False",
        "KubeletHasSufficientMemory",
        "2026-01-01T00:00:00Z",
    )
    assert calm.spec.taints == ()
    pressed = at(10, calm, Condition.MEMORY_PRESSURE, Condition.DISK_PRESSURE)
    still = at(20, pressed, Condition.MEMORY_PRESSURE)
    over = at(30, still)
    seen = [condition(each, "MemoryPressure") for each in (pressed, still, over)]
    assert seen == [
        ("True", "KubeletHasInsufficientMemory", "2026-01-01T00:00:10Z"),
        ("True", "KubeletHasInsufficientMemory", "2026-01-01T00:00:10Z"),
        ("False", "KubeletHasSufficientMemory", "2026-01-01T00:00:30Z"),
    ]
    assert [(taint.key, taint.effect) for taint in pressed.spec.taints] == [
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ]
    assert condition(pressed, "PIDPressure")[0] == "False"


def test_a_node_that_goes_down_is_not_ready() -> None:
    ready = at(0, None)
    assert condition(ready, "Ready")[:2] == ("True", "KubeletReady")
    leaving = at(5, ready, shutting_down=True)
    assert condition(leaving, "Ready") == ("False", "KubeletNotReady", "2026-01-01T00:00:05Z")
