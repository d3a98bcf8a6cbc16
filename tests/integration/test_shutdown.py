"""A machine that is told to go down waits until the node's pods have ended in order."""

from typing import Any

import pytest

from tests.integration.node import Node
from tests.integration.observed import condition, events, node_status
from tests.integration.workload import pod, shell

MARKS = "/run/shutdown-marks"
LOGIND = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"


@pytest.fixture
def kubelet_config() -> dict[str, Any]:
    return {"shutdownGracePeriod": "20s", "shutdownGracePeriodCriticalPods": "8s"}


def test_pods_end_in_order_before_the_machine_goes_on(node: Node) -> None:
    """The critical pod's end holds up the shutdown; logind is killed then, which calls it off."""
    mark = f"trap 'echo $1 >>{MARKS}; $2' TERM; while :; do sleep 0.2; done"
    ordinary = shell(mark.replace("$1", "ordinary").replace("$2", "exit 0"))
    critical = shell(mark.replace("$1", "critical").replace("$2", ":"))
    node.apply("ordinary", pod("ordinary", ordinary, terminationGracePeriodSeconds=10))
    node.apply(
        "critical",
        pod("critical", critical, priorityClassName="system-node-critical", terminationGracePeriodSeconds=8),
    )
    for name in ("ordinary", "critical"):
        node.wait_phase(name, "Running")
    listed = node.run(f"busctl call {LOGIND} ListInhibitors")
    assert '"shutdown" "nodeagent"' in listed
    allowed = node.run(f"busctl get-property {LOGIND} InhibitDelayMaxUSec")
    assert allowed.strip() == "t 20000000"
    node.run(f"rm -f {MARKS}; systemctl poweroff")
    try:
        node.wait(
            lambda: "critical" in node.run(f"cat {MARKS} 2>/dev/null; true"), 20, "the critical pod's turn"
        )
    finally:
        node.run("systemctl kill --signal=KILL systemd-logind")
    assert node.read(MARKS).splitlines() == ["ordinary", "critical"]
    ended = node.wait_phase("ordinary", "Failed")["status"]
    assert (ended["reason"], ended["message"]) == (
        "Terminated",
        "Pod was terminated in response to imminent node shutdown.",
    )
    assert condition(ended, "DisruptionTarget")["reason"] == "TerminationByKubelet"
    assert condition(node_status(node), "Ready")["message"] == "node is shutting down"
    assert "is shutting down" in events(node, "NodeShutdown")[0]["message"]
    node.wait_phase("critical", "Failed")
    assert "shutting down" in node.run("systemctl show -P StatusText nodeagent.service")

    node.apply("late", pod("late"))
    late = node.wait_phase("late", "Failed")["status"]
    assert (late["reason"], late["message"]) == (
        "NodeShutdown",
        "Pod was rejected: Pod was rejected as the node is shutting down.",
    )
    # What came back is a node like any other.
    node.restart()
    node.wait_phase("ordinary", "Running")
