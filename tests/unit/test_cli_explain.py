"""`explain`: decisions, limits and figures as sentences; the agent is a few answers, its tree a few files."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeagent.__main__ import main
from nodeagent.config import parse_config
from nodeagent.eviction.record import EvictionRecord, Pressure, RecordedCandidate
from nodeagent.pods.decisions import AdmissionRecord, Decision, Kind
from nodeagent.scheduling.fit import Comparison
from tests.unit.agent_server import serving
from tests.unit.shown_node import write_cgroup, write_proc

Json = dict[str, Any]
MIB = 1 << 20
DECISIONS = "/nodeagent/v1/decisions"
NOW = datetime.now(UTC)
BURSTABLE = "kubepods.slice/kubepods-burstable.slice"
SLICE = f"{BURSTABLE}/kubepods-burstable-podu1.slice"
CONFIG = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
systemReserved: {cpu: 100m, memory: 128Mi}
kubeReserved: {cpu: 50m}
evictionHard: {memory.available: 100Mi, pid.available: "500"}
evictionSoft: {memory.available: 3Gi}
evictionSoftGracePeriod: {memory.available: 90s}
"""


def pod() -> Json:
    status = {
        "name": "app",
        "image": "",
        "imageID": "",
        "ready": False,
        "restartCount": 3,
        "containerID": "nodeagent://c1",
        "state": {
            "waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}
        },
        "lastState": {
            "terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-03-01T11:59:00Z"}
        },
    }
    resources = {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
        "spec": {
            "priority": 7,
            "containers": [{"name": "app", "image": "", "resources": resources}],
        },
        "status": {"phase": "Running", "qosClass": "Burstable", "containerStatuses": [status]},
    }


def admission(number: int, uid: str = "u1", **changes: Any) -> Json:
    record = AdmissionRecord(
        **{
            "namespace": "shop",
            "name": "web",
            "uid": uid,
            "admitted": True,
            "decided_at": NOW - timedelta(days=10),
            "comparisons": (
                Comparison("cpu", 500, 1200, 1850),
                Comparison("memory", 64 * MIB, 0, 1024 * MIB),
            ),
            "resources": ("container app: shares CPUs with others, because it is Burstable",),
            **changes,
        }
    )
    return as_json(Decision(id=number, kind=Kind.ADMISSION, admission=record))


def eviction(number: int, name: str = "web") -> Json:
    decided = NOW - timedelta(days=9)
    record = EvictionRecord(
        namespace="shop",
        name=name,
        uid="u1",
        cause="memory.available",
        message="The node was low on resource: memory. ",
        grace_seconds=1,
        decided_at=decided,
        dead_at=decided + timedelta(milliseconds=60),
        pressure=Pressure(
            signal="memory.available",
            hard=True,
            threshold="100Mi",
            available=96 * MIB,
            capacity=1600 * MIB,
            rate_per_second=40.0 * MIB,
            measured_at=decided,
            crossed_at=decided - timedelta(milliseconds=40),
        ),
        candidates=(
            RecordedCandidate(
                namespace="shop",
                name=name,
                uid="u1",
                measured=True,
                protected=False,
                priority=7,
                usage=300 * MIB,
                request="64Mi",
                exceeds_request=True,
            ),
        ),
    )
    return as_json(Decision(id=number, kind=Kind.EVICTION, eviction=record))


def as_json(decision: Decision) -> Json:
    data: Json = json.loads(msgspec.json.encode(decision))
    return data


def listed(*decisions: Json) -> Json:
    return {"kind": "DecisionList", "apiVersion": "nodeagent.io/v1alpha1", "items": list(decisions)}


class Station:
    """The answers of an agent, and its machine's files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for path, files in {
            "": {"cpuset.cpus.effective": "0-3"},
            "kubepods.slice": {"memory.max": str(1000 * MIB), "memory.current": str(300 * MIB)},
            BURSTABLE: {"memory.max": "max", "cpu.weight": "59"},
            SLICE: {
                "memory.max": str(128 * MIB),
                "memory.current": str(100 * MIB),
                "memory.events": "oom 2\noom_kill 2\n",
                "pids.max": "100",
                "pids.current": "4",
            },
            f"{SLICE}/nodeagent-c1.scope": {
                "cpu.max": "50000 100000",
                "cpu.weight": "20",
                "cpu.stat": "usage_usec 1\nthrottled_usec 12300000\n",
                "cpuset.cpus.effective": "2-3",
                "memory.max": "max",
                "memory.current": str(90 * MIB),
            },
        }.items():
            write_cgroup(root / "cgroup", path, {name: f"{text}\n" for name, text in files.items()})
        write_proc(root / "proc")
        pods = {"kind": "PodList", "items": [pod()]}
        quantities = {"cpu": "2", "memory": "2Gi", "pods": "110"}
        node = {
            "metadata": {"name": "n1"},
            "status": {
                "capacity": quantities,
                "allocatable": {"cpu": "1850m", "memory": "1820Mi", "pods": "110"},
                "conditions": [
                    {
                        "type": "MemoryPressure",
                        "status": "True",
                        "message": "kubelet has insufficient memory available",
                        "lastTransitionTime": "2026-03-01T11:00:00Z",
                    },
                    {"type": "Ready", "status": "True", "message": "posting"},
                ],
            },
        }
        memory = {"availableBytes": 1024 * MIB, "workingSetBytes": 1024 * MIB}
        summary = {"node": {"nodeName": "n1", "memory": memory}, "pods": []}
        self.answers: dict[str, Any] = {
            "/api/v1/pods": pods,
            "/api/v1/namespaces/shop/pods": pods,
            "/api/v1/namespaces/test/pods": {"kind": "PodList", "items": []},
            "/api/v1/nodes": {"kind": "NodeList", "items": [node]},
            "/configz": parse_config(CONFIG.encode(), "c.yaml").to_configz(),
            "/stats/summary": summary,
        }
        self.decide("shop/web", eviction(12), admission(9), admission(4, uid="u0"))

    def decide(self, of: str, *decisions: Json) -> None:
        self.answers[f"{DECISIONS}?limit=1000&pod={of.replace('/', '%2F')}"] = listed(*decisions)

    def explain(self, *words: str) -> int:
        with serving(self.answers) as server:
            roots = [f"--cgroup-root={self.root}/cgroup", f"--proc-root={self.root}/proc"]
            return main(["explain", *words, *roots, f"--server={server}"])


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    yield Station(tmp_path)


def test_a_pod_is_explained_from_admission_to_eviction(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    assert station.explain("pod/web", "-n", "shop") == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0] == "Pod shop/web (uid u1) is Burstable, has priority 7 and is Running."
    assert lines[1] == "Admission"
    assert lines[2].startswith("  admitted 20") and lines[2].endswith("(10d ago)")
    assert lines[3:6] == [
        "  cpu 500m fits into the 650m left of 1850m",
        "  memory 64Mi fits into the 1Gi left of 1Gi",
        "  container app: shares CPUs with others, because it is Burstable",
    ]
    assert "  container app runs on the CPUs 2-3" in lines
    leaf = lines.index(f"  container app ({SLICE}/nodeagent-c1.scope)")
    assert lines[leaf + 1 : leaf + 6] == [
        "    cpu: 500m at most, by cpu.max of itself",
        "    memory: 128Mi at most, by memory.max of its pod, of which 28Mi are left",
        "    pids: 100 at most, by pids.max of its pod, of which 96 are left",
        "    cpu: weight 20 beside its neighbours when there are too few CPUs for all",
        "    cpu: held back by its quota for 12.3 s so far",
    ]
    whole = lines.index(f"  the pod ({SLICE})")
    assert lines[whole + 1] == "    cpu: 4000m at most, by cpuset.cpus.effective of the machine"
    assert "  container app was restarted 3 times" in lines
    assert "  container app ended last 2026-03-01T11:59:00Z with exit code 137 (OOMKilled)" in lines
    assert "  container app waits, CrashLoopBackOff: back-off 40s restarting failed container" in lines
    assert "  the kernel has killed processes of this pod for want of memory 2 times" in lines
    assert "  12: shop/web (uid u1) was evicted because of memory.available" in lines
    assert "40.0 MiB/s" in text and "100 ms after it began" in text
    assert "shop/web: over its request, priority 7, uses 300Mi, requests 64Mi   <- evicted" in text


def test_a_refused_pod_is_told_how_much_is_missing_and_how_often_it_was_tried(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = admission(
        5,
        admitted=False,
        reason="OutOfcpu",
        message="Node didn't have enough resource: cpu, requested: 2000, used: 1200, capacity: 1850",
        comparisons=(Comparison("cpu", 2000, 1200, 1850),),
        failures=("Predicate NodePorts failed",),
        resources=(),
        times=17,
        first_decided_at=NOW - timedelta(days=11),
    )
    station.decide("shop/web", refused)
    assert station.explain("pod", "web", "-n", "shop") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "(10d ago), 17 times since " in lines[2] and "(11d ago): OutOfcpu: Node didn't" in lines[2]
    assert lines[3:5] == [
        "  cpu 2000m is more than the 650m left of 1850m, by 1350m",
        "  Predicate NodePorts failed",
    ]


def test_a_pod_that_has_gone_is_known_by_its_decisions(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    station.decide("test/job", admission(3, namespace="test", name="job"))
    assert station.explain("pod/job", "-n", "test") == 0
    assert capsys.readouterr().out.startswith("Pod test/job is not on this node now.\nAdmission\n  admitted")
    station.decide("test/none")
    assert station.explain("pod/none", "-n", "test") == 1
    assert "pod test/none is not here, and no decision about it is remembered" in capsys.readouterr().err


def test_a_pod_comes_out_as_data(station: Station, capsys: pytest.CaptureFixture[str]) -> None:
    assert station.explain("pod/web", "-n", "shop", "-o", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert [decision["id"] for decision in data["decisions"]] == [12, 9, 4]
    assert data["pod"]["metadata"]["uid"] == "u1"
    assert data["oomKills"] == 2
    leaf = data["limits"][1]
    assert leaf["boundBy"]["memory"] == {
        "path": SLICE, "limit": 128 * MIB, "left": 28 * MIB, "file": "memory.max", "place": "pod",
    }  # fmt: skip


def test_the_node_is_explained_by_what_it_keeps_and_how_far_eviction_is(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    station.answers[f"{DECISIONS}?limit=20&kind=eviction"] = listed(eviction(12))
    assert station.explain("node") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "Node n1 is Ready, MemoryPressure.",
        "  MemoryPressure since 2026-03-01T11:00:00Z: kubelet has insufficient memory available",
    ]
    assert (
        "  cpu: 2000m, less 150m kept from pods (systemReserved 100m, kubeReserved 50m), leaves 1850m; "
        "pods request 500m, so that 1350m are left"
    ) in lines
    assert (
        "  memory: 2Gi, less 228Mi kept from pods (systemReserved 128Mi, "
        "evictionHard memory.available 100Mi), leaves 1.8Gi; pods request 64Mi, so that 1.7Gi are left"
    ) in lines
    assert "  pods: 110, less 0 kept from pods, leaves 110; pods request 1, so that 109 are left" in lines
    assert (
        "  memory.available: 1Gi of 2Gi left; below 100Mi pods are killed at once, which is 924Mi away"
    ) in lines
    assert (
        "  memory.available: 1Gi of 2Gi left; below 3Gi for 90 s pods are asked to end, "
        "which is 2Gi beyond that"
    ) in lines
    assert "  pid.available: not known now" in lines
    assert "    memory: 1000Mi at most, by memory.max of itself, of which 700Mi are left" in lines
    assert any(line.split()[:1] == ["12"] and "shop/web" in line for line in lines)
    assert station.explain("node", "-o", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {"resource": "cpu", "capacity": 2000, "kept": 150, "allocatable": 1850, "requested": 500} in data[
        "resources"
    ]
    assert data["thresholds"][0]["available"] == 1024 * MIB


def test_evictions_are_explained_one_by_one(station: Station, capsys: pytest.CaptureFixture[str]) -> None:
    station.answers[f"{DECISIONS}?limit=20&kind=eviction"] = listed(eviction(12), eviction(7, "older"))
    station.answers[f"{DECISIONS}/7"] = eviction(7, "older")
    station.answers[f"{DECISIONS}/9"] = admission(9)
    assert station.explain("eviction") == 0
    text = capsys.readouterr().out
    assert text.startswith("Eviction 12: shop/web (uid u1) was evicted because of memory.available")
    assert "7    9d ago    shop/older   memory.available   100 ms" in " ".join(text.splitlines())
    assert station.explain("eviction", "7") == 0
    text = capsys.readouterr().out
    assert text.startswith("Eviction 7: shop/older") and "Before it" not in text
    assert station.explain("eviction/7", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["evictions"][0]["id"] == 7
    assert station.explain("eviction", "9") == 1
    assert "decision 9 is no eviction" in capsys.readouterr().err
    assert station.explain("eviction", "8") == 1
    assert "not found" in capsys.readouterr().err
    station.answers[f"{DECISIONS}?limit=20&kind=eviction"] = listed()
    assert station.explain("eviction") == 0
    assert capsys.readouterr().out == "No pod was evicted, as far as is remembered.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pod"], "which one?"),
        (["service/web"], "expected pod/NAME, node, quota/NAME, or eviction"),
        (["eviction", "x"], "expected the number of an eviction"),
        (["pod/web", "db"], "expected one name"),
    ],
)
def test_what_cannot_be_explained_is_said(
    words: list[str], said: str, station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    assert station.explain(*words) == 1
    assert said in capsys.readouterr().err


def test_answers_of_another_kind_are_a_sentence(station: Station, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ({"items": [{"id": "x"}]}, {"items": 3}, listed({"id": 1, "kind": "Eviction"})):
        station.answers[f"{DECISIONS}?limit=20&kind=eviction"] = wrong
        assert station.explain("eviction") == 1
        assert "server" in capsys.readouterr().err
