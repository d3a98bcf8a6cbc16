"""`plan`: decisions, CPUs, cgroup files and values for pods on a machine that need not exist."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeagent.__main__ import main

MIB = 1 << 20
STATIC = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
---
apiVersion: nodeagent.io/v1alpha1
kind: AgentConfiguration
nodeName: vm
"""


def manifest(name: str, *, cpu: str = "", memory: str = "", **spec: Any) -> str:
    limits = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container = {"name": "main", "command": ["sleep", "1"], "image": "none", "resources": {"limits": limits}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }
    return yaml.safe_dump(pod)


class Bench:
    """Runs `plan` on files in a directory, and reads what comes out."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory, self._capsys = directory, capsys
        self.config = self.write("config.yaml", STATIC)
        self.code, self.errors = 0, ""

    def write(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def text(self, *arguments: str) -> str:
        self.code = main(["plan", *arguments, "--config", self.config])
        said = self._capsys.readouterr()
        self.errors = said.err
        return said.out

    def data(self, *arguments: str) -> Any:
        return json.loads(self.text(*arguments, "-o", "json"))


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    return Bench(tmp_path, capsys)


def by_name(plan: Any) -> dict[str, Any]:
    return {pod["name"].removesuffix("-vm"): pod for pod in plan["pods"]}


def test_each_qos_class_gets_its_place_and_values(bench: Bench) -> None:
    pods = "---\n".join(
        [
            manifest("gold", cpu="500m", memory="64Mi"),
            manifest("silver", cpu="250m"),
            manifest("bronze"),
        ]
    )
    plan = bench.data(bench.write("pods.yaml", pods), "--topology", "1x4x1", "--memory", "4Gi")
    assert (bench.code, plan["ok"]) == (0, True)
    found = by_name(plan)
    assert {name: pod["qosClass"] for name, pod in found.items()} == {
        "gold": "Guaranteed",
        "silver": "Burstable",
        "bronze": "BestEffort",
    }
    gold = found["gold"]
    uid = gold["uid"].replace("-", "_")
    assert gold["cgroup"]["path"] == f"kubepods.slice/kubepods-pod{uid}.slice"
    # 500m: 512 shares, linear weight 1 + 510 * 9999 // 262142 = 20, and half of each 100 ms.
    assert gold["cgroup"]["values"]["cpu.weight"] == "20"
    assert gold["cgroup"]["values"]["cpu.max"] == "50000 100000"
    leaf = gold["containers"][0]["cgroup"]
    assert leaf["path"].startswith(gold["cgroup"]["path"] + "/nodeagent-") and leaf["path"].endswith(".scope")
    # The runtime's formula for 512 shares.
    assert leaf["values"]["cpu.weight"] == "59"
    assert leaf["values"]["memory.max"] == str(64 * MIB)
    assert gold["containers"][0]["oomScoreAdj"] == -997
    assert found["silver"]["cgroup"]["path"].startswith(
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
    )
    assert found["bronze"]["containers"][0]["oomScoreAdj"] == 1000
    upper = {cgroup["path"]: cgroup["values"] for cgroup in plan["node"]["cgroups"]}
    assert list(upper) == [
        "kubepods.slice",
        "kubepods.slice/kubepods-burstable.slice",
        "kubepods.slice/kubepods-besteffort.slice",
    ]
    # Burstable follows its pods' requests: 250m is 256 shares, weight 10.
    assert upper["kubepods.slice/kubepods-burstable.slice"]["cpu.weight"] == "10"
    assert upper["kubepods.slice/kubepods-besteffort.slice"]["cpu.weight"] == "1"


def test_whole_cpus_of_guaranteed_pods_are_exclusive_and_the_rest_shared(bench: Bench) -> None:
    pods = (
        manifest("pinned", cpu="2", memory="64Mi") + "---\n" + manifest("shared", cpu="500m", memory="64Mi")
    )
    plan = bench.data(bench.write("pods.yaml", pods), "--topology", "1x4x2")
    pinned, shared = by_name(plan)["pinned"], by_name(plan)["shared"]
    # Cores are (0,4)(1,5)(2,6)(3,7); CPU 0 is reserved, so the first whole core that is free is 1,5.
    assert pinned["containers"][0]["cpus"] == "1,5"
    assert pinned["containers"][0]["exclusive"] is True
    assert pinned["containers"][0]["cgroup"]["values"]["cpuset.cpus"] == "1,5"
    assert pinned["containers"][0]["cgroup"]["values"]["cpu.max"] == "max 100000"
    assert pinned["cgroup"]["values"]["cpu.max"] == "max 100000"
    assert shared["containers"][0]["cpus"] == "0,2-4,6-7"
    assert shared["containers"][0]["exclusive"] is False
    assert plan["node"]["sharedCPUs"] == "0,2-4,6-7"
    assert any("no whole number of CPUs" in sentence for sentence in shared["because"])


def test_pods_are_admitted_in_order_and_a_refusal_keeps_kubelets_words(bench: Bench) -> None:
    first = bench.write("1.yaml", manifest("first", cpu="2", memory="1Gi"))
    second = bench.write("2.yaml", manifest("second", cpu="2", memory="1Gi"))
    third = bench.write("3.yaml", manifest("third", cpu="1", memory="1Gi"))
    plan = bench.data(first, second, third, "--topology", "1x4x1")
    assert bench.code == 1
    assert [pod["admitted"] for pod in plan["pods"]] == [True, False, True]
    refused = by_name(plan)["second"]
    assert refused["reason"] == "OutOfcpu"
    assert refused["message"] == (
        "Node didn't have enough resource: cpu, requested: 2000, used: 2000, capacity: 3000"
    )
    assert {"resource": "cpu", "requested": 2000, "used": 2000, "capacity": 3000, "fits": False} in refused[
        "comparisons"
    ]
    assert "cgroup" not in refused and refused["containers"] == []


def test_a_topology_refusal_is_explained(bench: Bench) -> None:
    bench.config = bench.write(
        "config.yaml",
        STATIC.replace(
            'reservedSystemCPUs: "0"', 'reservedSystemCPUs: "0"\ntopologyManagerPolicy: single-numa-node'
        ),
    )
    plan = bench.data(
        bench.write("pod.yaml", manifest("wide", cpu="6", memory="64Mi")), "--topology", "2x4x1"
    )
    assert plan["pods"][0]["reason"] == "TopologyAffinityError"
    assert plan["pods"][0]["message"] == "Resources cannot be allocated with Topology locality"
    assert len(plan["pods"][0]["because"]) > len(plan["pods"][0]["comparisons"])


def test_what_is_wrong_is_refused_and_what_is_good_is_planned(bench: Bench) -> None:
    good = bench.write("good.yaml", manifest("good"))
    broken = bench.write(
        "broken.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {contaners: []}\n"
    )
    torn = bench.write("torn.yaml", manifest("torn") + "---\n{[\n---\n" + manifest("whole"))
    invalid = bench.write("invalid.yaml", manifest("Not_A_Name"))
    plan = bench.data(good, broken, torn, invalid, "/nowhere.yaml", good, "--topology", "1x2x1")
    assert (bench.code, plan["ok"]) == (1, False)
    assert list(by_name(plan)) == ["good", "torn", "whole"]
    refused = {item["source"]: "\n".join(item["errors"]) for item in plan["refused"]}
    assert "contaners" in refused[broken] and 'did you mean "containers"?' in refused[broken]
    assert "metadata.name" in refused[invalid]
    assert refused["/nowhere.yaml"] == "/nowhere.yaml: cannot be read: No such file or directory"
    assert "stands in" in refused[good]
    assert torn in refused


def test_the_text_says_the_same_for_people(bench: Bench) -> None:
    pods = manifest("pinned", cpu="2", memory="64Mi") + "---\n" + manifest("huge", cpu="64", memory="64Mi")
    text = bench.text(
        bench.write("pods.yaml", pods), bench.write("bad.yaml", "kind: Pod"), "--topology", "1x4x2"
    )
    assert bench.code == 1
    assert "Node vm: CPUs 0-7, 1 sockets, 1 NUMA nodes" in text
    assert ": Guaranteed, admitted" in text
    assert "because:  cpu 2000m fits into the 7000m left of 7000m" in text
    assert "app container main: exclusive CPUs 1,5, oom_score_adj -997" in text
    assert "refused, OutOfcpu: Node didn't have enough resource: cpu, requested: 64000" in text
    assert text.endswith("2 pods: 1 admitted, 1 refused\n")
    assert "bad.yaml" in bench.errors and "apiVersion: Required value" in bench.errors


def test_a_directory_and_standard_input_are_manifests_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = bench.directory / "manifests"
    directory.mkdir()
    (directory / "a.yaml").write_text(manifest("a"))
    (directory / "notes.txt").write_text("not a manifest")
    assert list(by_name(bench.data(str(directory), "--topology", "1x1x1"))) == ["a"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(manifest("piped").encode())))
    assert list(by_name(bench.data("-", "--topology", "1x1x1"))) == ["piped"]
    (directory / "a.yaml").unlink()
    assert "no manifest in it" in bench.data(str(directory), "--topology", "1x1x1")["refused"][0]["errors"][0]


def test_a_machine_can_be_described_by_lscpu(bench: Bench) -> None:
    rows = "".join(f"{cpu},{cpu % 2},0,0\n" for cpu in range(4))
    dump = bench.write("cpus", f"# The following is the parsable format\n# CPU,Core,Socket,Node\n{rows}")
    plan = bench.data(
        bench.write("pod.yaml", manifest("a", cpu="2", memory="1Mi")), "--topology", dump, "--memory", "2Gi"
    )
    assert plan["node"]["capacity"]["cpu"] == "4" and plan["node"]["capacity"]["memory"] == "2Gi"
    assert plan["pods"][0]["containers"][0]["cpus"] == "1,3"


def test_this_machine_can_be_planned_for(bench: Bench) -> None:
    bench.config = bench.write("config.yaml", STATIC.replace("cpuManagerPolicy: static", ""))
    plan = bench.data(bench.write("pod.yaml", manifest("a")))
    assert plan["pods"][0]["admitted"] is True
    assert int(plan["node"]["capacity"]["cpu"]) >= 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--topology", "2xx2"], "--topology 2xx2: '2xx2' is not a machine"),
        (["--topology", "0x1x1"], "--topology 0x1x1: "),
        (["--topology", "1x1x1", "--memory", "lots"], "--memory lots: quantities must match"),
        (["--topology", "1x1x1", "--memory", "0"], "--memory 0: expected an amount above 0"),
        (["--topology", "1x1x1", "--memory", "10Mi"], "invalid Node Allocatable configuration"),
        (["--topology", "1x1x1"], ""),
    ],
)
def test_a_machine_that_cannot_be_is_refused(bench: Bench, arguments: list[str], sentence: str) -> None:
    path = bench.write("pod.yaml", manifest("a"))
    bench.text(path, *arguments)
    if sentence:
        assert bench.code == 1
        assert bench.errors.startswith("nodeagent: ") and sentence in bench.errors


def test_reserved_cpus_that_the_machine_lacks_are_refused(bench: Bench) -> None:
    bench.config = bench.write("config.yaml", STATIC.replace('"0"', '"9"'))
    bench.text(bench.write("pod.yaml", manifest("a")), "--topology", "1x4x1")
    assert bench.code == 1
    assert "unknown CPU ID: 9" in bench.errors


class TestPolicies:
    """What decides before the node does, taken from among the manifests."""

    LIMITS = """
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec: {limits: [{type: Container, max: {cpu: 2}, defaultRequest: {cpu: 500m}, default: {cpu: "1"}}]}
"""
    QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: two}
spec: {hard: {requests.cpu: 2}}
"""

    def test_defaults_bounds_and_quota_decide_and_are_told(self, bench: Bench) -> None:
        files = [
            bench.write("limits.yaml", self.LIMITS),
            bench.write("pods.yaml", f"{manifest('open')}---\n{manifest('large', cpu='3')}"),
            bench.write("more.yaml", f"{manifest('one', cpu='1')}---\n{manifest('late', cpu='1')}"),
            bench.write("quota.yaml", self.QUOTA),
        ]
        plan = bench.data(*files, "--topology", "1x8x1")
        open_, large, one, late = plan["pods"]
        assert open_["requests"] == {"cpu": "500m"} and open_["limits"] == {"cpu": "1"}
        assert (large["reason"], large["admitted"]) == ("Forbidden", False)
        assert "maximum cpu usage per Container is 2, but limit is 3" in large["message"]
        assert one["admitted"]
        assert "exceeded quota: two, requested: requests.cpu=1, used: requests.cpu=1500m" in late["message"]
        assert (plan["ok"], bench.code) == (False, 1)

    def test_a_class_gives_its_priority_and_a_broken_policy_is_named(self, bench: Bench) -> None:
        urgent = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 700
"""
        broken = self.LIMITS.replace("cpu: 500m", "cpu: 5")
        pod = bench.write("pod.yaml", manifest("p", priorityClassName="urgent"))
        plan = bench.data(pod, bench.write("c.yaml", urgent), bench.write("broken.yaml", broken))
        assert plan["pods"][0]["priority"] == 700
        (refused,) = plan["refused"]
        assert refused["source"].endswith("broken.yaml")
        assert bench.code == 1

    def test_elastic_quotas_admit_up_to_what_a_group_may_use(self, bench: Bench) -> None:
        group = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: red}
spec: {min: {cpu: 1}, max: {cpu: 1}}
"""
        labelled = [
            manifest(name, cpu="1").replace(
                "name: " + name, f"labels: {{quota.scheduling.koordinator.sh/name: red}}\n  name: {name}"
            )
            for name in ("a", "b")
        ]
        plan = bench.data(bench.write("g.yaml", group), bench.write("p.yaml", "---\n".join(labelled)))
        first, second = plan["pods"]
        assert first["admitted"]
        assert (second["reason"], second["admitted"]) == ("Unschedulable", False)
        assert "Insufficient quotas, quotaName: red" in second["message"]
