"""The samples that the demo applies do what it says they do."""

import re

import pytest
from nodevm.paths import CHECKOUT

from tests.integration.node import Node
from tests.integration.observed import kernel_kills

SAMPLES = CHECKOUT / "vagrant" / "samples"


def _apply(node: Node, name: str) -> None:
    node.apply(name, (SAMPLES / f"{name}.yaml").read_text())


@pytest.mark.parametrize(
    ("name", "qos"), [("guaranteed", "Guaranteed"), ("burstable", "Burstable"), ("besteffort", "BestEffort")]
)
def test_a_sample_runs_in_its_qos_class(node: Node, name: str, qos: str) -> None:
    _apply(node, name)
    assert node.wait_phase(name, "Running")["status"]["qosClass"] == qos


def test_the_spinning_container_is_throttled_to_its_limit(node: Node) -> None:
    _apply(node, "burstable")
    node.wait_phase("burstable", "Running")
    leaf = node.run("grep -lx '15000 100000' /sys/fs/cgroup/kubepods.slice/*/*/nodeagent-*/cpu.max").strip()
    throttled = f"awk '$1 == \"nr_throttled\" {{print $2}}' {leaf.removesuffix('cpu.max')}cpu.stat"
    before = int(node.run(throttled))
    node.wait(lambda: int(node.run(throttled)) > before + 5, what="more throttled periods")


def test_the_memory_hog_is_evicted_before_the_kernel_has_to_act(node: Node) -> None:
    _apply(node, "guaranteed")
    node.wait_phase("guaranteed", "Running")
    before = kernel_kills(node)
    _apply(node, "memory-hog")
    status = node.wait_phase("memory-hog", "Failed", timeout=300)["status"]
    assert status["reason"] == "Evicted"
    assert re.search(r"memory", status["message"])
    assert kernel_kills(node) == before
    guaranteed = node.pod("guaranteed")
    assert guaranteed is not None and guaranteed["status"]["phase"] == "Running"
