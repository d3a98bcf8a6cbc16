"""Node admission: what fits, what is compared, and in which words the node refuses."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from nodeagent.api.container import ContainerPort, ResourceRequirements
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.node import Taint
from nodeagent.api.pod import Container, Pod, PodSpec
from nodeagent.api.qos import CONFIG_SOURCE_ANNOTATION
from nodeagent.api.quantity import Quantity
from nodeagent.scheduling.fit import Comparison, NodeView, fit

NODE = NodeView(
    "n1",
    {"cpu": Quantity.parse("2"), "memory": Quantity.parse("1Gi"), "pods": Quantity.parse("3")},
    {"zone": "a", "cpus": "8"},
)


def make_pod(name: str = "p", /, *, ports: tuple[ContainerPort, ...] = (), **spec: Any) -> Pod:
    requests = {key: Quantity.parse(text) for key, text in spec.pop("requests", {}).items()}
    container = Container(name="c", ports=ports, resources=ResourceRequirements(requests=requests))
    return Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=(container,), **spec))


def selected_by(*requirements: NodeSelectorRequirement, field: bool = False) -> Pod:
    term = NodeSelectorTerm(**{"match_fields" if field else "match_expressions": requirements})
    required = NodeSelector(node_selector_terms=(term,))
    affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    return make_pod(affinity=Affinity(node_affinity=affinity))


class TestResources:
    def test_every_comparison_is_recorded(self) -> None:
        others = [make_pod("o", requests={"cpu": "500m", "memory": "100Mi"})]
        result = fit(make_pod(requests={"cpu": "1", "memory": "24Mi"}), NODE, others)
        assert result.fits
        assert result.comparisons == (
            Comparison("pods", 1, 1, 3),
            Comparison("cpu", 1000, 500, 2000),
            Comparison("memory", 24 << 20, 100 << 20, 1 << 30),
        )

    def test_the_last_millicore_is_available(self) -> None:
        others = [make_pod("o", requests={"cpu": "1999m"})]
        assert fit(make_pod(requests={"cpu": "1m"}), NODE, others).fits
        refused = fit(make_pod(requests={"cpu": "2m"}), NODE, others)
        assert (refused.reason, refused.message) == (
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 2, used: 1999, capacity: 2000",
        )

    def test_all_failures_are_kept_and_the_first_one_speaks(self) -> None:
        others = [make_pod(f"o{number}") for number in range(3)]
        refused = fit(make_pod(requests={"cpu": "3", "memory": "2Gi"}), NODE, others)
        assert refused.reason == "OutOfpods"
        assert [failure.reason for failure in refused.failures] == ["OutOfpods", "OutOfcpu", "OutOfmemory"]

    def test_a_pod_that_asks_for_nothing_needs_only_its_place(self) -> None:
        crowded = [make_pod("o", requests={"cpu": "5", "memory": "5Gi"})]
        assert fit(make_pod(), NODE, crowded).fits

    def test_an_extended_resource_that_the_node_does_not_know_is_ignored_and_huge_pages_are_not(self) -> None:
        assert fit(make_pod(requests={"example.com/gpu": "1"}), NODE, []).fits
        assert fit(make_pod(requests={"hugepages-2Mi": "2Mi"}), NODE, []).reason == "OutOfhugepages-2Mi"

    def test_overhead_counts(self) -> None:
        overhead = {"cpu": Quantity.parse("1500m")}
        assert fit(make_pod(requests={"cpu": "600m"}, overhead=overhead), NODE, []).reason == "OutOfcpu"

    @given(st.lists(st.integers(0, 3000), max_size=5), st.integers(1, 3000), st.integers(1, 5000))
    def test_it_fits_exactly_when_the_sum_does(self, used: list[int], asked: int, capacity: int) -> None:
        allocatable = {"cpu": Quantity.of_milli(capacity), "pods": Quantity.of(10)}
        others = [make_pod(f"o{index}", requests={"cpu": f"{milli}m"}) for index, milli in enumerate(used)]
        result = fit(make_pod(requests={"cpu": f"{asked}m"}), NodeView("n1", allocatable), others)
        assert result.fits == (sum(used) + asked <= capacity)
        assert result.fits == all(comparison.fits for comparison in result.comparisons)


class TestPlacement:
    @pytest.mark.parametrize(
        ("key", "operator", "values", "fits"),
        [
            ("zone", "In", ("a", "b"), True),
            ("zone", "In", ("b",), False),
            ("none", "In", ("a",), False),
            ("zone", "NotIn", ("a",), False),
            ("none", "NotIn", ("a",), True),
            ("zone", "Exists", (), True),
            ("none", "Exists", (), False),
            ("none", "DoesNotExist", (), True),
            ("cpus", "Gt", ("7",), True),
            ("cpus", "Gt", ("8",), False),
            ("cpus", "Lt", ("9",), True),
            ("zone", "Gt", ("1",), False),
            ("cpus", "Gt", ("many",), False),
            ("zone", "Near", ("a",), False),
        ],
    )
    def test_node_affinity(self, key: str, operator: str, values: tuple[str, ...], fits: bool) -> None:
        requirement = NodeSelectorRequirement(key=key, operator=operator, values=values)
        assert fit(selected_by(requirement), NODE, []).fits == fits

    def test_a_field_selects_the_node_by_name(self) -> None:
        for name, fits in (("n1", True), ("n2", False)):
            requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
            assert fit(selected_by(requirement, field=True), NODE, []).fits == fits

    def test_an_empty_term_selects_nothing(self) -> None:
        assert fit(selected_by(), NODE, []).reason == "NodeAffinity"

    def test_node_name_and_node_selector(self) -> None:
        assert fit(make_pod(node_name="n1", node_selector={"zone": "a"}), NODE, []).fits
        assert fit(make_pod(node_name="n2"), NODE, []).reason == "NodeName"
        assert fit(make_pod(node_selector={"zone": "b"}), NODE, []).reason == "NodeAffinity"

    @pytest.mark.parametrize(
        ("held", "asked", "fits"),
        [
            ((None, "TCP"), (None, "TCP"), False),
            ((None, None), (None, "TCP"), False),
            ((None, "UDP"), (None, "TCP"), True),
            (("10.0.0.1", "TCP"), ("10.0.0.2", "TCP"), True),
            (("10.0.0.1", "TCP"), ("10.0.0.1", "TCP"), False),
            (("10.0.0.1", "TCP"), ("0.0.0.0", "TCP"), False),
            (("0.0.0.0", "TCP"), ("10.0.0.1", "TCP"), False),
        ],
    )
    def test_host_ports(
        self, held: tuple[str | None, str | None], asked: tuple[str | None, str | None], fits: bool
    ) -> None:
        def pod(name: str, address: str | None, protocol: str | None) -> Pod:
            port = ContainerPort(container_port=80, host_port=80, host_ip=address, protocol=protocol)
            return make_pod(name, ports=(port,))

        result = fit(pod("p", *asked), NODE, [pod("o", *held)])
        assert result.fits == fits
        assert fits or result.reason == "NodePorts"

    def test_a_sidecar_holds_its_host_port(self) -> None:
        port = ContainerPort(container_port=80, host_port=80)
        sidecar = Container(name="s", ports=(port,), restart_policy="Always")
        other = make_pod("o", init_containers=(sidecar,))
        once = make_pod("o", init_containers=(msgspec.structs.replace(sidecar, restart_policy=None),))
        assert not fit(make_pod(ports=(port,)), NODE, [other]).fits
        assert fit(make_pod(ports=(port,)), NODE, [once]).fits

    @pytest.mark.parametrize(
        ("toleration", "fits"),
        [
            (Toleration(key="k", value="v", effect="NoExecute"), True),
            (Toleration(key="k", operator="Equal", value="v"), True),
            (Toleration(key="k", operator="Exists"), True),
            (Toleration(operator="Exists"), True),
            (Toleration(key="k", value="w"), False),
            (Toleration(key="j", operator="Exists"), False),
            (Toleration(key="k", operator="Exists", effect="NoSchedule"), False),
            (Toleration(key="k", operator="Gt", value="v"), False),
        ],
    )
    def test_tolerations(self, toleration: Toleration, fits: bool) -> None:
        taints = (Taint(key="other", effect="NoSchedule"), Taint(key="k", value="v", effect="NoExecute"))
        node = NodeView("n1", NODE.allocatable, taints=taints)
        result = fit(make_pod(tolerations=(toleration,)), node, [])
        assert result.fits == fits
        assert fits or result.reason == "TaintToleration"

    def test_a_static_pod_does_not_mind_taints(self) -> None:
        node = NodeView("n1", NODE.allocatable, taints=(Taint(key="k", effect="NoExecute"),))
        static = ObjectMeta(name="p", annotations={CONFIG_SOURCE_ANNOTATION: "file"})
        assert not fit(make_pod(), node, []).fits
        assert fit(msgspec.structs.replace(make_pod(), metadata=static), node, []).fits

    def test_a_label_for_another_system_is_refused_first(self) -> None:
        meta = ObjectMeta(name="p", labels={"kubernetes.io/os": "windows"})
        result = fit(msgspec.structs.replace(make_pod(requests={"cpu": "9"}), metadata=meta), NODE, [])
        assert result.reason == "PodOSSelectorNodeLabelDoesNotMatch"
        assert (
            result.message == "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        )
