"""Manifests become objects strictly; what is wrong is named by its field."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.api.decode import (
    InvalidObject,
    decode_documents,
    decode_hook,
    encode_hook,
    from_builtins,
    to_builtins,
    to_json,
)
from nodeagent.api.errors import ObjectError
from nodeagent.api.event import Event, ObjectReference
from nodeagent.api.meta import ObjectMeta, format_time, parse_time
from nodeagent.api.node import Node
from nodeagent.api.pod import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodStatus,
)
from nodeagent.api.quantity import Quantity

WEB = """
apiVersion: v1
kind: Pod
metadata:
  name: web
  creationTimestamp: null
spec:
  containers:
  - name: web
    command: [sleep, "60"]
    env:
    resources:
      requests: {cpu: 2, memory: 1e9, ephemeral-storage: 0.5Gi}
      limits: {cpu: 2.5, memory: "1Gi"}
    ports: [{containerPort: 80.0, hostIP: 127.0.0.1}]
    livenessProbe: {httpGet: {port: http}}
    readinessProbe: {tcpSocket: {port: 80}}
"""


def errors(text: str) -> list[str]:
    """Return what is said of the one faulty object in `text`."""
    [found] = [item for item in decode_documents(text.encode(), "web.yaml") if isinstance(item, ObjectError)]
    return [str(error) for error in found.errors]


def pod(fields: str) -> str:
    return f"apiVersion: v1\nkind: Pod\n{fields}"


def test_a_pod_as_people_write_it() -> None:
    [web] = decode_documents(WEB.encode(), "web.yaml")
    [container] = web.spec.containers
    assert web.metadata == ObjectMeta(name="web")
    assert container.command == ("sleep", "60")
    assert container.env == ()
    assert container.resources.requests == {
        "cpu": Quantity.of(2),
        "memory": Quantity.of(10**9),
        "ephemeral-storage": Quantity.of(2**29),
    }
    assert str(container.resources.limits["cpu"]) == "2500m"
    assert container.ports[0].container_port == 80
    assert container.ports[0].host_ip == "127.0.0.1"
    assert container.liveness_probe.http_get.port == "http"
    assert container.readiness_probe.tcp_socket.port == 80


def test_every_fault_is_named() -> None:
    text = pod(
        """
metadata: {name: web, labels: {release: 5}, creationTimestamp: yesterday}
spec:
  hostNetwork: "true"
  containers:
  - name: web
    comand: [x]
    resources: {requests: {cpu: 1x}, limit: {}}
    ports: [{containerPort: "80"}, 5]
    args: -c
  terminationGracePeriodSeconds: 1.5
  priority: 5000000000
  overhead: {cpu: [1]}
  zzz: 1
"""
    )
    assert errors(text) == [
        "metadata.labels[release]: Invalid value: 5: expected a string, got an integer: write it in quotes",
        'metadata.creationTimestamp: Invalid value: "yesterday": '
        "expected a time as in RFC 3339, for example 2025-01-31T12:00:00Z",
        'spec.hostNetwork: Invalid value: "true": expected true or false, got a string',
        'spec.containers[0].comand: Unknown field: did you mean "command"?',
        'spec.containers[0].resources.requests[cpu]: Invalid value: "1x": '
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        'spec.containers[0].resources.limit: Unknown field: did you mean "limits"?',
        'spec.containers[0].ports[0].containerPort: Invalid value: "80": expected an integer, got a string',
        "spec.containers[0].ports[1]: Invalid value: 5: expected a mapping, got an integer",
        'spec.containers[0].args: Invalid value: "-c": expected a list, got a string',
        "spec.terminationGracePeriodSeconds: Invalid value: 1.5: expected an integer, got a number",
        "spec.priority: Invalid value: 5000000000: must be between -2147483648 and 2147483647, inclusive",
        "spec.overhead[cpu]: Invalid value: [1]: expected a quantity such as 500m or 1Gi, got a list",
        "spec.zzz: Unknown field: known here are activeDeadlineSeconds, affinity, "
        "automountServiceAccountToken, containers, dnsConfig, dnsPolicy, enableServiceLinks, "
        "ephemeralContainers, hostAliases, hostIPC, hostNetwork, hostPID, ...",
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("Containers", "containers"), ("hostPid", "hostPID"), ("initContainer", "initContainers")],
)
def test_a_misspelt_field_gets_a_hint(written: str, meant: str) -> None:
    expected = [f'spec.{written}: Unknown field: did you mean "{meant}"?']
    assert errors(pod(f"spec: {{{written}: []}}")) == expected


def test_an_error_says_where_it_comes_from() -> None:
    text = f"{WEB}---\n{pod('metadata: {name: bad}')}\nsepc: {{}}\n---\na: [\n"
    web, bad, broken = decode_documents(text.encode(), "/etc/manifests/web.yaml")
    assert isinstance(web, Pod)
    assert (
        str(bad)
        == "/etc/manifests/web.yaml: document 2: Pod 'bad': sepc: Unknown field: did you mean \"spec\"?"
    )
    assert str(broken).startswith("/etc/manifests/web.yaml: document 3: Cannot be read: line ")


def test_lists_are_expanded() -> None:
    items = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "ab"]
    nested = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [items[0], {**items[1], "spec": {"nodeNam": "x"}}, 5],
    }
    first, second, third = decode_documents(json.dumps(nested).encode(), "list.json")
    assert first.metadata.name == "a"
    assert [error.path for error in second.errors] == ["items[1].spec.nodeNam"]
    assert [error.path for error in third.errors] == ["items[2]"]
    of_kind = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [{"metadata": {"name": "a"}}]}
    [only] = decode_documents(json.dumps(of_kind).encode(), "list.json")
    assert only == Pod(metadata=ObjectMeta(name="a"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: Pod", ["apiVersion: Required value"]),
        ("metadata: {}", ["apiVersion: Required value", "kind: Required value"]),
        ("apiVersion: 1\nkind: Pod", ["apiVersion: Invalid value: 1: expected a string"]),
        (
            "apiVersion: v1\nkind: pod",
            [
                'kind: Unsupported value: "pod": no kind "pod" in version "v1" is known here; '
                "known are AdmissionConfiguration (apiserver.config.k8s.io/v1), "
                "PriorityClass (scheduling.k8s.io/v1), "
                "ElasticQuota (scheduling.sigs.k8s.io/v1alpha1), Event (v1), "
            ],
        ),
        ("- a", ['Invalid value: ["a"]: expected an object: a mapping with apiVersion, kind and metadata']),
        ("apiVersion: v1\nkind: List\nitems: x", ['items: Invalid value: "x": expected a list of objects']),
    ],
)
def test_what_is_no_object(text: str, expected: list[str]) -> None:
    said = errors(text)
    assert [error[: len(start)] for error, start in zip(said, expected, strict=True)] == expected


def test_thousands_of_faults_are_cut_short() -> None:
    many = ", ".join(f"unknown{number}: 1" for number in range(20_000))
    assert len(errors(pod(f"spec: {{{many}}}"))) == 50
    assert len(errors(pod(f"spec: {{x: {'y' * 100_000}}}"))[0]) < 500
    assert len(errors(pod(f"metadata: {{name: [{'y' * 100_000}]}}"))[0]) < 500


def test_nulls_mean_nothing_as_in_go() -> None:
    value: dict[str, Any] = {
        "metadata": {"name": "a", "labels": {"empty": None}, "annotations": None},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": None}}}], "volumes": None},
        "status": {"containerStatuses": [{"name": "c", "state": None}]},
    }
    read = from_builtins(value, Pod)
    assert read.metadata.labels == {"empty": ""}
    assert read.spec.containers[0].resources.limits == {"cpu": Quantity(0)}
    [status] = read.status.container_statuses
    assert (status.image, status.ready, status.restart_count) == ("", False, 0)


def test_a_status_writes_its_required_fields_out() -> None:
    status = ContainerStatus(
        name="c",
        image="",
        image_id="",
        ready=False,
        restart_count=0,
        state=ContainerState(running=ContainerStateRunning(started_at="2025-01-31T12:00:00Z")),
    )
    written = to_builtins(PodStatus(container_statuses=(status,)))
    assert written == {
        "containerStatuses": [
            {
                "name": "c",
                "image": "",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"running": {"startedAt": "2025-01-31T12:00:00Z"}},
            }
        ]
    }


@pytest.mark.parametrize(
    "thing",
    [
        Pod(),
        Pod(
            metadata=ObjectMeta(name="a"),
            spec=Pod().spec,
            status=PodStatus(host_ip="1.2.3.4", qos_class="Burstable"),
        ),
        Node(metadata=ObjectMeta(name="n")),
        Event(metadata=ObjectMeta(name="e"), involved_object=ObjectReference(kind="Pod"), count=2),
    ],
)
def test_what_is_written_reads_back(thing: Pod | Node | Event) -> None:
    written = to_json(thing)
    assert json.loads(written) == to_builtins(thing)
    assert list(json.loads(written))[:2] == ["apiVersion", "kind"]
    assert decode_documents(written, "-") == [thing]


def test_amounts_keep_their_spelling_in_the_store() -> None:
    [web] = decode_documents(WEB.encode(), "web.yaml")
    stored = msgspec.json.encode(web, enc_hook=encode_hook)
    assert msgspec.json.decode(stored, type=Pod, dec_hook=decode_hook) == web
    assert b'"memory":"1Gi"' in stored


def test_a_wrong_object_in_code_says_what_is_wrong() -> None:
    with pytest.raises(InvalidObject, match=r'^nam: Unknown field: did you mean "name"\?$'):
        from_builtins({"nam": "x"}, Container)


def test_times() -> None:
    assert format_time(parse_time("2025-01-31T13:00:00.25+01:00")) == "2025-01-31T12:00:00Z"
    with pytest.raises(ValueError, match="without a zone"):
        parse_time("2025-01-31T13:00:00")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "metadata",
                    "name",
                    "labels",
                    "spec",
                    "containers",
                    "resources",
                    "limits",
                    "cpu",
                    "ports",
                    "items",
                )
            )
            | st.text(max_size=3),
            children,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@settings(deadline=timedelta(seconds=2))
@given(
    st.dictionaries(st.sampled_from(("metadata", "spec", "status", "items")), plain),
    st.sampled_from(("Pod", "List")),
)
def test_any_structure_is_an_object_or_an_error(fields: dict[str, Any], kind: str) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": kind, **fields}).encode()
    for item in decode_documents(text, "x"):
        assert isinstance(item, (Pod, Node, Event, ObjectError))
        assert str(item)
        if not isinstance(item, ObjectError):
            assert decode_documents(to_json(item), "x") == [item]


def test_policies() -> None:
    text = """
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: default}
spec: {limits: [{type: Container, default: {cpu: 500m}, maxLimitRequestRatio: {cpu: 2}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: default}
spec:
  hard: {pods: 10, requests.cpu: 4}
  scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
globalDefault: yes
"""
    limits, quota, priority = decode_documents(text.encode(), "policies.yaml")
    assert limits.spec.limits[0].default == {"cpu": Quantity.of_milli(500)}
    assert quota.spec.hard == {"pods": Quantity.of(10), "requests.cpu": Quantity.of(4)}
    assert quota.spec.scope_selector.match_expressions[0].values == ("high",)
    assert (priority.value, priority.global_default) == (1000, True)
    for thing in (limits, quota, priority):
        assert decode_documents(to_json(thing), "-") == [thing]
