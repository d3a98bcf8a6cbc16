"""`get` and `describe`: what an operator sees of a running agent."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeagent.__main__ import main
from nodeagent.api.ages import human_duration
from nodeagent.api.decode import from_builtins
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.pod import Pod, PodSpec
from nodeagent.api.pod_state import pod_state
from nodeagent.cli.objects import goes_by
from nodeagent.cli.table import size
from tests.unit.agent_server import serving

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"

Json = dict[str, Any]


def ago(**delta: float) -> str:
    return (datetime.now(UTC) - timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def web() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": UID,
            "labels": {"app": "web", "tier": "front"},
            "creationTimestamp": ago(minutes=130, seconds=30),
        },
        "spec": {
            "nodeName": "vm",
            "priority": 7,
            "containers": [
                {
                    "name": "app",
                    "image": "none",
                    "command": ["sleep", "60"],
                    "env": [{"name": "COLOUR", "value": "blue"}],
                    "resources": {
                        "limits": {"cpu": "1", "memory": "64Mi"},
                        "requests": {"cpu": "1", "memory": "64Mi"},
                    },
                }
            ],
            "tolerations": [
                {"key": "slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
            ],
        },
        "status": {
            "phase": "Running",
            "qosClass": "Guaranteed",
            "hostIP": "10.0.2.15",
            "podIP": "10.88.0.2",
            "startTime": "2025-01-01T11:00:00Z",
            "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {
                    "name": "app",
                    "image": "none",
                    "imageID": "",
                    "containerID": "process://abc",
                    "ready": True,
                    "restartCount": 2,
                    "state": {"running": {"startedAt": "2025-01-01T11:30:00Z"}},
                    "lastState": {
                        "terminated": {
                            "exitCode": 137,
                            "reason": "OOMKilled",
                            "startedAt": "2025-01-01T11:00:00Z",
                            "finishedAt": ago(minutes=20, seconds=30),
                        }
                    },
                }
            ],
        },
    }


def hog() -> Json:
    return {
        "metadata": {
            "name": "hog",
            "namespace": "batch",
            "uid": "u2",
            "creationTimestamp": ago(hours=30, minutes=30),
        },
        "spec": {"nodeName": "vm", "containers": [{"name": "main", "image": "none"}]},
        "status": {
            "phase": "Failed",
            "reason": "Evicted",
            "message": "The node was low on resource: memory.",
        },
    }


def node() -> Json:
    return {
        "metadata": {
            "name": "vm",
            "creationTimestamp": ago(days=3, minutes=30),
            "labels": {"kubernetes.io/os": "linux"},
        },
        "spec": {},
        "status": {
            "capacity": {"cpu": "2", "memory": "2Gi", "pods": "110"},
            "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": "10.0.2.15"}],
            "conditions": [
                {"type": "MemoryPressure", "status": "True", "reason": "KubeletHasInsufficientMemory"},
                {"type": "Ready", "status": "True", "reason": "KubeletReady"},
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.36.2-nodeagent",
                "kernelVersion": "6.12.1",
                "osImage": "Debian 13",
            },
        },
    }


def event(kind: str, name: str, namespace: str, reason: str, minutes: int) -> Json:
    return {
        "metadata": {"name": f"{name}.{reason}", "namespace": namespace or "default"},
        "involvedObject": {"kind": kind, "name": name, "namespace": namespace},
        "reason": reason,
        "message": f"{reason} happened\nto it",
        "type": "Warning",
        "count": 3,
        "firstTimestamp": ago(hours=1, seconds=30),
        "lastTimestamp": ago(minutes=minutes, seconds=30),
        "source": {"component": "nodeagent"},
    }


@pytest.fixture
def server() -> Iterator[str]:
    events = [
        event("Pod", "web", "default", "BackOff", 13),
        event("Node", "vm", "", "EvictionThresholdMet", 19),
    ]
    answers = {
        "/api/v1/pods": {"kind": "PodList", "items": [web(), hog()]},
        "/api/v1/namespaces/default/pods": {"kind": "PodList", "items": [web()]},
        "/api/v1/namespaces/empty/pods": {"kind": "PodList", "items": []},
        "/api/v1/namespaces/default/pods/web": web(),
        "/api/v1/nodes": {"kind": "NodeList", "items": [node()]},
        "/api/v1/events": {"kind": "EventList", "items": events},
    }
    with serving(answers) as url:
        yield url


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_pods_are_listed_as_kubectl_lists_them(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "pods", "-n", "default", "--server", server]) == 0
    assert lines(capsys) == [
        "NAME   READY   STATUS    RESTARTS      AGE",
        "web    1/1     Running   2 (20m ago)   130m",
    ]


def test_the_namespace_is_shown_where_it_tells_pods_apart(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["get", "po", "--server", server]) == 0
    header, first, second = lines(capsys)
    assert header.split() == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert first.split() == ["batch", "hog", "0/1", "Evicted", "0", "30h"]
    assert second.split()[:2] == ["default", "web"]


def test_the_wide_table_adds_addresses_qos_and_cpus(
    server: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    leaf = tmp_path / f"kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/nodeagent-a.scope"
    leaf.mkdir(parents=True)
    (leaf / "cpuset.cpus.effective").write_text("2-3\n")
    command = [
        "get",
        "pods",
        "-o",
        "wide",
        "-n",
        "default",
        "--server",
        server,
        "--cgroup-root",
        str(tmp_path),
    ]
    assert main(command) == 0
    header, row = lines(capsys)
    assert header.split()[5:] == ["IP", "NODE", "QOS", "CPUS"]
    assert row.split()[-4:] == ["10.88.0.2", "vm", "Guaranteed", "2-3"]


def test_nodes_show_the_pressure_they_are_under(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "nodes", "-o", "wide", "--server", server]) == 0
    header, row = lines(capsys)
    assert header.split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert row.split()[:5] == ["vm", "Ready,MemoryPressure", "<none>", "3d", "v1.36.2-nodeagent"]
    assert "10.0.2.15" in row and "Debian 13" in row


def test_events_are_one_line_each_oldest_first(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "events", "--server", server]) == 0
    header, first, second = lines(capsys)
    assert header == "LAST SEEN   TYPE      REASON                 OBJECT    MESSAGE"
    assert first.split()[:4] == ["19m", "Warning", "EvictionThresholdMet", "node/vm"]
    assert second.endswith("pod/web   BackOff happened to it")


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_data_comes_out_as_the_server_gave_it(
    server: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    read = json.loads if output == "json" else yaml.safe_load
    assert main(["get", "pods", "-o", output, "--server", server]) == 0
    data = read(capsys.readouterr().out)
    assert data["kind"] == "List"
    assert [item["metadata"]["name"] for item in data["items"]] == ["hog", "web"]
    assert main(["get", "pod", "hog", "-o", output, "--server", server]) == 0
    assert read(capsys.readouterr().out)["status"]["reason"] == "Evicted"


def test_names_alone_can_be_listed(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "pods", "-o", "name", "--server", server]) == 0
    assert lines(capsys) == ["pod/hog", "pod/web"]


def test_a_name_that_does_not_exist_is_refused_and_the_others_named(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["get", "pods", "wbe", "--server", server]) == 1
    assert capsys.readouterr().err == "nodeagent: pods wbe not found; there are hog, web\n"
    assert main(["describe", "pod", "nope", "--server", server]) == 1
    assert "'nope' not found" in capsys.readouterr().err


def test_an_empty_namespace_says_so(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "pods", "-n", "empty", "--server", server]) == 0
    assert capsys.readouterr().out == "No pods found in namespace empty.\n"


def test_nobody_at_the_address_gets_one_sentence_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with serving({}) as url:
        pass
    assert main(["get", "pods", "--server", url]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"nodeagent: no agent answers at {url} (Connection refused): start it with ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("address", ["ftp://a", "http://", "http://a:port", "http://a/x", "http://[::1"])
def test_an_address_that_is_none_is_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "pods", "--server", address]) == 1
    assert "expected http://HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize(
    "answer",
    ["<html>", [], {"items": 3}, {"items": [{"spec": {"containers": 3}}]}, {"items": [3]}, {"items": [None]}],
)
def test_a_server_that_is_no_agent_gets_a_sentence(
    answer: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving({"/api/v1/pods": answer}) as url:
        assert main(["get", "pods", "--server", url]) == 1
    assert capsys.readouterr().err.startswith("nodeagent: ")


def test_a_pod_is_described_as_kubectl_does(
    server: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["describe", "pod", "web", "--server", server, "--cgroup-root", str(tmp_path)]
    assert main(command) == 0
    text = capsys.readouterr().out
    for line in (
        "Name:         web",
        "Namespace:    default",
        "Priority:     7",
        "Node:         vm/10.0.2.15",
        "Start Time:   Wed, 01 Jan 2025 11:00:00 +0000",
        "Labels:       app=web\n              tier=front",
        "Status:       Running",
        "IP:           10.88.0.2",
        "Containers:\n  app:\n    Container ID:   process://abc",
        "    State:          Running\n      Started:      Wed, 01 Jan 2025 11:30:00 +0000",
        "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137",
        "    Restart Count:  2",
        "    Limits:\n      cpu:     1\n      memory:  64Mi",
        "    Environment:\n      COLOUR:  blue",
        "QoS Class:       Guaranteed",
        "Tolerations:     slow:NoExecute op=Exists for 30s",
    ):
        assert line in text
    assert text.splitlines()[-1].split()[:5] == ["Warning", "BackOff", "13m", "(x3", "over"]
    assert "EvictionThresholdMet" not in text


def test_the_node_is_described_with_what_its_pods_ask_for(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", "node", "--server", server]) == 0
    text = capsys.readouterr().out
    assert (
        "MemoryPressure   True     <none>              <none>               KubeletHasInsufficientMemory"
        in text
    )
    assert "Non-terminated Pods:  (1 in total)" in text
    assert [line.split() for line in text.splitlines() if line.startswith("  cpu ")] == [
        ["cpu", "1", "(50%)", "1", "(50%)"]
    ]
    assert [line.split() for line in text.splitlines() if line.startswith("  memory ")] == [
        ["memory", "64Mi", "(6%)", "64Mi", "(6%)"]
    ]
    assert "EvictionThresholdMet" in text
    assert main(["describe", "node", "other", "--server", server]) == 1
    assert "this node is vm" in capsys.readouterr().err


def test_describe_can_give_data(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "pod", "web", "-o", "json", "--server", server]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["uid"] == UID


def state(status: Json, spec: Json | None = None, meta: Json | None = None) -> tuple[str, str, str]:
    raw = {"metadata": meta or {}, "spec": {"containers": [{"name": "a"}], **(spec or {})}, "status": status}
    found = pod_state(from_builtins(raw, Pod), NOW)
    return found.ready, found.status, found.restarts


def container(name: str = "a", **status: object) -> Json:
    return {"name": name, "image": "", "imageID": "", "ready": False, "restartCount": 0, **status}


INIT = {"initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}


@pytest.mark.parametrize(
    ("status", "spec", "expected"),
    [
        ({"phase": "Pending"}, {}, ("0/1", "Pending", "0")),
        ({}, {}, ("0/1", "Unknown", "0")),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container(state={"waiting": {"reason": "CrashLoopBackOff"}}, restartCount=4)
                ],
            },
            {},
            ("0/1", "CrashLoopBackOff", "4"),
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [
                    container(state={"terminated": {"exitCode": 0, "reason": "Completed"}})
                ],
            },
            {},
            ("0/1", "Completed", "0"),
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(state={"terminated": {"exitCode": 3}})]},
            {},
            ("0/1", "ExitCode:3", "0"),
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [container(state={"terminated": {"exitCode": 137, "signal": 9}})],
            },
            {},
            ("0/1", "Signal:9", "0"),
        ),
        (
            {
                "phase": "Failed",
                "reason": "Evicted",
                "containerStatuses": [container(state={"terminated": {"exitCode": 137, "reason": "Error"}})],
            },
            {},
            ("0/1", "Evicted", "0"),
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [container("i", state={"running": {}})]},
            INIT,
            ("0/2", "Init:0/2", "0"),
        ),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    container("i", state={"terminated": {"exitCode": 1, "reason": "Error"}}, restartCount=2)
                ],
            },
            INIT,
            ("0/2", "Init:Error", "2"),
        ),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Initialized", "status": "True"}],
                "initContainerStatuses": [
                    container("i", state={"terminated": {"exitCode": 0}}, restartCount=5),
                    container("s", state={"running": {}}, started=True, ready=True, restartCount=1),
                ],
                "containerStatuses": [container(state={"running": {}}, ready=True)],
            },
            INIT,
            ("2/2", "Running", "1"),
        ),
    ],
)
def test_a_pods_status_is_summed_up_in_kubectls_words(
    status: Json, spec: Json, expected: tuple[str, str, str]
) -> None:
    assert state(status, spec) == expected


def test_a_pod_on_its_way_out_is_terminating() -> None:
    leaving = {"deletionTimestamp": "2025-01-01T00:00:00Z"}
    assert state({"phase": "Running"}, meta=leaving)[1] == "Terminating"
    assert state({"phase": "Succeeded"}, meta=leaving)[1] == "Succeeded"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (3600, "60m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 300, "3h5m"),
        (30 * 3600, "30h"),
        (3 * 86400 + 7200, "3d2h"),
        (400 * 86400, "400d"),
        (3 * 365 * 86400, "3y"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_are_as_precise_as_people_read_them(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"), [(None, "<none>"), (0, "0"), (1023, "1023"), (1536, "1.5Ki"), (64 << 20, "64Mi")]
)
def test_sizes_are_short(amount: int | None, text: str) -> None:
    assert size(amount) == text


def test_a_static_pod_answers_to_the_name_in_its_manifest() -> None:
    pod = Pod(metadata=ObjectMeta(name="web-n1", namespace="default"), spec=PodSpec(node_name="n1"))
    assert goes_by(pod, "web")
    assert goes_by(pod, "web-n1")
    assert not goes_by(pod, "we")
