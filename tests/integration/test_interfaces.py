"""What people and programs see of the node: over HTTP as from a kubelet, and on the command line."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.integration.node import CONFIG, MANIFESTS, Node
from tests.integration.observed import SLICES, Pod, leaf_of, memory_total_bytes, read_tree, slice_of
from tests.integration.workload import container, of_each_class, pod

LABELS = {"id", "name", "image", "container", "pod", "namespace"}
BROKEN_CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: many
evictionHard: {memory.available: 10Gb}
"""


@pytest.fixture
def kubelet_config() -> dict[str, Any]:
    return {"podPidsLimit": 321, "evictionHard": {"memory.available": "123Mi"}}


@pytest.fixture
def pods(shared_node: Node) -> Iterator[dict[str, Pod]]:
    manifests = of_each_class()
    for name, manifest in manifests.items():
        shared_node.apply(name, manifest)
    yield {name: shared_node.wait_phase(name, "Running") for name in manifests}


def scraped(node: Node, path: str) -> list[Sample]:
    """Every sample, read by Prometheus' own parser."""
    return [sample for family in text_string_to_metric_families(node.get(path)) for sample in family.samples]


def value(samples: list[Sample], name: str, **labels: str) -> float:
    """The one sample of that name with these labels."""
    (found,) = (
        sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()
    )
    return found


class TestHttp:
    def test_metrics(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        samples = scraped(shared_node, "/metrics")
        node_name = pods["burstable"]["spec"]["nodeName"]
        assert value(samples, "kubelet_node_name") == 1
        assert value(samples, "kubelet_node_name", node=node_name) == 1
        assert value(samples, "kubelet_running_pods") == 3
        assert value(samples, "kubelet_running_containers", container_state="running") == 3
        assert value(samples, "kubelet_active_pods", static="true") == 3
        assert value(samples, "kubelet_pod_start_duration_seconds_count") >= 3
        assert value(samples, "process_resident_memory_bytes") > 10 << 20

    def test_cadvisor_metrics_carry_the_six_labels(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        samples = [
            each for each in scraped(shared_node, "/metrics/cadvisor") if each.name.startswith("container_")
        ]
        assert all(sample.labels.keys() >= LABELS for sample in samples)
        for running in pods.values():
            name = running["metadata"]["name"]
            of_leaf = {"id": f"/{leaf_of(running)}", "pod": name, "namespace": "default", "container": "c"}
            of_slice = {"id": f"/{slice_of(running)}", "pod": name, "container": "", "image": ""}
            assert value(samples, "container_memory_working_set_bytes", **of_leaf) > 0
            assert value(samples, "container_cpu_usage_seconds_total", cpu="total", **of_leaf) >= 0
            assert value(samples, "container_cpu_usage_seconds_total", cpu="total", **of_slice) >= 0
            (image,) = {each.labels["image"] for each in samples if of_leaf.items() <= each.labels.items()}
            assert image
        burstable = {"id": f"/{leaf_of(pods['burstable'])}"}
        assert value(samples, "container_spec_memory_limit_bytes", **burstable) == 64 << 20
        assert value(samples, "container_spec_cpu_quota", **burstable) == 20000

    def test_resource_metrics(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        samples = scraped(shared_node, "/metrics/resource")
        assert value(samples, "resource_scrape_error") == 0
        assert value(samples, "node_cpu_usage_seconds_total") > 0
        assert 50 << 20 < value(samples, "node_memory_working_set_bytes") < memory_total_bytes(shared_node)
        for running in pods.values():
            labels = {"pod": running["metadata"]["name"], "namespace": "default"}
            assert value(samples, "pod_memory_working_set_bytes", **labels) > 0
            assert value(samples, "container_memory_working_set_bytes", container="c", **labels) > 0
            assert value(samples, "container_start_time_seconds", container="c", **labels) > 1e9

    def test_pods_summary_and_configuration(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        listed = json.loads(shared_node.get("/pods"))
        assert (listed["kind"], listed["apiVersion"], len(listed["items"])) == ("PodList", "v1", 3)
        assert len(json.loads(shared_node.get("/runningpods/"))["items"]) == 3

        summary = json.loads(shared_node.get("/stats/summary"))
        total = memory_total_bytes(shared_node)
        memory = summary["node"]["memory"]
        assert memory["availableBytes"] + memory["workingSetBytes"] == total
        limits = [int(shared_node.read(f"/proc/sys/kernel/{name}")) for name in ("pid_max", "threads-max")]
        assert summary["node"]["rlimit"]["maxpid"] == min(limits)
        assert 10 < summary["node"]["rlimit"]["curproc"] < 2000
        assert summary["node"]["fs"]["capacityBytes"] > 1 << 28
        found = {each["podRef"]["uid"]: each for each in summary["pods"]}
        assert found.keys() == {running["metadata"]["uid"] for running in pods.values()}
        for each in found.values():
            assert [used["name"] for used in each["containers"]] == ["c"]
            assert each["containers"][0]["memory"]["workingSetBytes"] > 0
            assert each["process_stats"]["process_count"] == 1

        shown = json.loads(shared_node.get("/configz"))["kubeletconfig"]
        assert shown["podPidsLimit"] == 321
        assert shown["evictionHard"]["memory.available"] == "123Mi"
        assert shown["maxPods"] == 110

    def test_health_and_who_may_ask(self, shared_node: Node) -> None:
        assert shared_node.get("/healthz") == "ok"
        verbose = shared_node.get("/healthz?verbose").splitlines()
        assert verbose == ["[+]ping ok", "[+]log ok", "[+]syncloop ok", "healthz check passed"]
        assert shared_node.run("curl -sS http://127.0.0.1:10248/healthz") == "ok"

        def ours() -> list[str]:
            lines = shared_node.run("ss -Hltnp").splitlines()
            return sorted(line.split()[3] for line in lines if "nodeagent" in line)

        shared_node.wait(
            lambda: "127.0.0.1:6443" in ours(), what="kubectl's port, which opens after the others"
        )
        assert ours() == ["127.0.0.1:10248", "127.0.0.1:10255", "127.0.0.1:6443"]


class TestCommands:
    def test_get(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        lines = shared_node.run("nodeagent get pods").splitlines()
        assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert [line.split()[:4] for line in lines[1:]] == [
            [pods[name]["metadata"]["name"], "1/1", "Running", "0"]
            for name in ("besteffort", "burstable", "guaranteed")
        ]
        data = json.loads(shared_node.run("nodeagent get pods -o json"))
        assert (data["kind"], len(data["items"])) == ("List", 3)
        (_, node_line) = shared_node.run("nodeagent get nodes").splitlines()
        assert node_line.split()[1] == "Ready"
        assert "Started" in shared_node.run("nodeagent get events")

    def test_describe(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        name = pods["burstable"]["metadata"]["name"]
        text = shared_node.run(f"nodeagent describe pod {name}")
        for part in (name, "Burstable", "Running", "Started"):
            assert part in text
        assert "321" in shared_node.run("nodeagent describe node") or "Capacity" in shared_node.run(
            "nodeagent describe node"
        )
        refused = shared_node.machine.ssh("nodeagent describe pod nobody")
        assert refused.returncode == 1
        assert 'pods "nobody" not found' in refused.stderr

    def test_tree(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        levels = {each["path"]: each for each in json.loads(shared_node.run("nodeagent tree -o json"))}
        assert len(levels) == 3 + 3 + 3
        burstable = pods["burstable"]
        leaf = levels[leaf_of(burstable)]
        assert leaf["kind"] == "container"
        assert leaf["values"]["memory.max"] == str(64 << 20)
        assert leaf["boundBy"]["cpu"]["limit"] == 200
        assert levels[slice_of(burstable)]["values"]["pids.max"] == "321"
        text = shared_node.run("nodeagent tree")
        assert burstable["metadata"]["name"] in text
        assert "BOUND BY" in text
        rows = {
            each["pod"]: each for each in json.loads(shared_node.run("nodeagent top -o json --interval 1"))
        }
        row = rows[f"default/{burstable['metadata']['name']}"]
        assert 0 <= row["memoryOfLimit"] <= 1
        assert row["memoryLeftBytes"] <= 64 << 20

    def test_doctor(self, shared_node: Node) -> None:
        found = json.loads(shared_node.run(f"nodeagent doctor --config {CONFIG} -o json"))
        assert found["ok"] is True
        assert {each["level"] for each in found["checks"]} <= {"OK", "WARN"}
        assert len(found["checks"]) >= 10

    def test_config(self, shared_node: Node) -> None:
        shown = shared_node.run(f"nodeagent config --config {CONFIG}")
        assert "podPidsLimit: 321" in shown
        assert "maxPods: 110" in shown
        shared_node.write("/root/broken.yaml", BROKEN_CONFIG)
        refused = shared_node.machine.ssh("nodeagent config --config /root/broken.yaml")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "maxPods" in refused.stderr
        run = shared_node.machine.ssh("nodeagent run --config /root/broken.yaml")
        assert (run.returncode, run.stderr) == (1, refused.stderr)
        assert "Traceback" not in refused.stderr

    def test_plan(self, shared_node: Node, pods: dict[str, Pod]) -> None:
        """What is planned is what is there: the same slices and leaves, the same values."""
        planned = json.loads(shared_node.run(f"nodeagent plan {MANIFESTS}/*.yaml --config {CONFIG} -o json"))
        levels = [*planned["node"]["cgroups"]]
        for each in planned["pods"]:
            levels += [each["cgroup"], *(one["cgroup"] for one in each["containers"])]
        tree = read_tree(shared_node)
        assert sorted(level["path"] for level in levels) == sorted(tree)
        for level in levels:
            found = {file: tree[level["path"]].get(file) for file in level["values"]}
            # The QoS levels follow which pods there are.
            if level["path"] not in SLICES.values():
                assert found == level["values"], level["path"]

        large = pod("large", container(requests={"cpu": "64"}))
        shared_node.write("/root/plan.yaml", "\n---\n".join(map(json.dumps, (pod("good"), large))))
        refused = shared_node.machine.ssh(f"nodeagent plan /root/plan.yaml --config {CONFIG}")
        assert refused.returncode == 1
        for part in ("BestEffort, admitted", "OutOfcpu", "2 pods: 1 admitted, 1 refused"):
            assert part in refused.stdout
