"""A pod that the API server would refuse is refused here, in the same words and all at once."""

from typing import Any

import pytest

from tests.unit.validated_pod import pod, said

LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def test_a_plain_pod_is_right() -> None:
    assert said(pod()) == []


def test_a_rich_pod_is_right() -> None:
    probe = {"httpGet": {"port": "http", "httpHeaders": [{"name": "X-Probe", "value": "1"}]}}
    container = {
        "image": "registry.example/app:1",
        "env": [
            {"name": "A.b-c", "value": "1"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "TIER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        ],
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "settings"}}],
        "ports": [
            {"name": "http", "containerPort": 80, "hostPort": 8080},
            {"containerPort": 53, "protocol": "UDP"},
        ],
        "livenessProbe": probe,
        "readinessProbe": {"exec": {"command": ["true"]}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        "resources": {
            "requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": 1, "hugepages-2Mi": "4Mi"},
            "limits": {"cpu": "2", "memory": "1Gi", "example.com/gpu": 1, "hugepages-2Mi": "4Mi"},
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "a/b"}],
        "securityContext": {"runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    sidecar = {"name": "s", "restartPolicy": "Always", "readinessProbe": {"tcpSocket": {"port": 80}}}
    spec = {
        "initContainers": [{"name": "i"}, sidecar],
        "volumes": [
            {"name": "data", "hostPath": {"path": "/srv", "type": "Directory"}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi", "medium": "Memory"}},
            {
                "name": "down",
                "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]},
            },
            {
                "name": "all",
                "projected": {"sources": [{"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}}]},
            },
        ],
        "tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "overhead": {"cpu": "10m"},
        "resources": {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "2"}},
        "securityContext": {
            "fsGroup": 1,
            "supplementalGroups": [1, 2],
            "sysctls": [{"name": "net.core.somaxconn"}],
        },
        "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["db.example"]}],
        "priorityClassName": "system-node-critical",
        "hostname": "web",
        "os": {"name": "linux"},
    }
    assert said(pod(spec, container, labels={"tier": "web"}, annotations={"Example.com/Note": "x"})) == []


@pytest.mark.parametrize(
    ("metadata", "errors"),
    [
        ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        ({"name": "Web"}, [f'metadata.name: Invalid value: "Web": {SUBDOMAIN_RULE}']),
        ({"name": "../../etc"}, [f'metadata.name: Invalid value: "../../etc": {SUBDOMAIN_RULE}']),
        ({"name": "a\n"}, [f'metadata.name: Invalid value: "a\\n": {SUBDOMAIN_RULE}']),
        (
            {"name": "a" * 254},
            [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 bytes'],
        ),
        ({"namespace": ""}, ["metadata.namespace: Required value"]),
        ({"namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots']),
        (
            {"labels": {"a": "-"}},
            ['metadata.labels: Invalid value: "-": a valid label must be an empty string'],
        ),
        ({"labels": {"/a": ""}}, ['metadata.labels: Invalid value: "/a": prefix part must be non-empty']),
        (
            {"annotations": {"a b": ""}},
            ['metadata.annotations: Invalid value: "a b": name part must consist of'],
        ),
        (
            {"annotations": {"a": "x" * 262_144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        ({"uid": "a/../b"}, ['metadata.uid: Invalid value: "a/../b": a pod\'s UID must consist of']),
        ({"uid": "a_b"}, ['metadata.uid: Invalid value: "a_b": a pod\'s UID must consist of']),
        ({"uid": "a" * 64}, [f'metadata.uid: Invalid value: "{"a" * 64}": must be no more than 63 bytes']),
        (
            {"name": "a" * 200, "uid": "b" * 63},
            [f'metadata.name: Invalid value: "{"a" * 200}": must be no more than 255'],
        ),
    ],
)
def test_metadata(metadata: dict[str, Any], errors: list[str]) -> None:
    found = said(pod(**metadata))
    assert [error[: len(start)] for error, start in zip(found, errors, strict=False)] == errors


@pytest.mark.parametrize(
    ("container", "errors"),
    [
        ({"name": ""}, ["spec.containers[0].name: Required value"]),
        ({"name": "A"}, [f'spec.containers[0].name: Invalid value: "A": {LABEL_RULE}']),
        ({"image": " a"}, ['image: Invalid value: " a": must not have leading or trailing whitespace']),
        (
            {"imagePullPolicy": "Sometimes"},
            [
                'imagePullPolicy: Unsupported value: "Sometimes": '
                'supported values: "Always", "IfNotPresent", "Never"'
            ],
        ),
        ({"restartPolicy": "Always"}, ["restartPolicy: Forbidden: may not be set for non-init containers"]),
        ({"command": ["a\0b"]}, ['command[0]: Invalid value: "a\\u0000b": must not contain a NUL character']),
        (
            {"resources": {"requests": {"cpu": "700m"}, "limits": {"cpu": "500m"}}},
            ['resources.requests: Invalid value: "700m": must be less than or equal to cpu limit of 500m'],
        ),
        (
            {"resources": {"requests": {"memory": "-1"}}},
            ['resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            {"resources": {"requests": {"gpu": "1"}}},
            [
                'resources.requests[gpu]: Invalid value: "gpu": '
                "must be a standard resource type or fully qualified",
                'resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
            ],
        ),
        (
            {"resources": {"limits": {"example.com/gpu": "1500m"}}},
            [
                'resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
                'resources.requests[example.com/gpu]: Invalid value: "1500m": must be an integer',
            ],
        ),
        (
            {"resources": {"requests": {"example.com/gpu": "1"}}},
            ["resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            {"resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}},
            ['resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2'],
        ),
        (
            {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}},
            ["resources: Forbidden: HugePages require cpu or memory"],
        ),
        (
            {"resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}},
            [
                'resources.limits[hugepages-2Mi]: Invalid value: "3Mi": '
                "3Mi is not positive integer multiple of hugepages-2Mi",
                'resources.requests[hugepages-2Mi]: Invalid value: "3Mi": '
                "3Mi is not positive integer multiple of hugepages-2Mi",
            ],
        ),
        ({"env": [{"name": ""}]}, ["env[0].name: Required value"]),
        (
            {"env": [{"name": "a=b"}]},
            ['env[0].name: Invalid value: "a=b": a valid environment variable name must'],
        ),
        (
            {"env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            ['env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        ),
        (
            {"env": [{"name": "A", "valueFrom": {}}]},
            ['env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '],
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]},
            ['env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.x": '],
        ),
        ({"ports": [{"containerPort": 0}]}, ["ports[0].containerPort: Required value"]),
        (
            {"ports": [{"containerPort": 70000, "name": "a--", "protocol": "tcp", "hostIP": "host"}]},
            [
                'ports[0].name: Invalid value: "a--": must not contain consecutive hyphens',
                'ports[0].name: Invalid value: "a--": must not begin or end with a hyphen',
                "ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                'ports[0].hostIP: Invalid value: "host": must be a valid IP address',
                'ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"',
            ],
        ),
        (
            {
                "ports": [
                    {"containerPort": 1, "hostPort": 80, "name": "x"},
                    {"containerPort": 2, "hostPort": 80, "name": "x"},
                ]
            },
            [
                'ports[1].name: Duplicate value: "x"',
                'ports[1].hostPort: Duplicate value: "TCP//80"',
            ],
        ),
        (
            {"volumeMounts": [{"name": "data", "mountPath": "/a"}]},
            ['volumeMounts[0].name: Not found: "data"'],
        ),
        ({"livenessProbe": {}}, ["livenessProbe: Required value: must specify a handler type"]),
        (
            {
                "livenessProbe": {
                    "exec": {"command": ["x"]},
                    "grpc": {"port": 0},
                    "successThreshold": 2,
                    "periodSeconds": -1,
                    "terminationGracePeriodSeconds": 0,
                }
            },
            [
                "livenessProbe.grpc: Forbidden: may not specify more than 1 handler type",
                "livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
                "livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        ),
        (
            {"readinessProbe": {"tcpSocket": {"port": "-"}, "terminationGracePeriodSeconds": 5}},
            [
                'readinessProbe.tcpSocket.port: Invalid value: "-": must contain at least one letter (a-z)',
                'readinessProbe.tcpSocket.port: Invalid value: "-": must not begin or end with a hyphen',
                "readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: "
                "must not be set for readinessProbes",
            ],
        ),
        (
            {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}, "postStart": {"exec": {}}}},
            [
                "lifecycle.postStart.exec.command: Required value",
                "lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than "
                "terminationGracePeriodSeconds (30)",
            ],
        ),
        (
            {
                "securityContext": {
                    "runAsUser": -1,
                    "procMount": "Unmasked",
                    "seccompProfile": {"type": "Localhost"},
                }
            },
            [
                "securityContext.runAsUser: Invalid value: -1: must be between 0 and 4294967295, inclusive",
                'securityContext.procMount: Invalid value: "Unmasked": '
                "`hostUsers` must be false to use `Unmasked`",
                "securityContext.seccompProfile.localhostProfile: Required value: "
                "must be set when seccomp type is Localhost",
            ],
        ),
    ],
)
def test_containers(container: dict[str, Any], errors: list[str]) -> None:
    found = [error.removeprefix("spec.containers[0].") for error in said(pod(container=container))]
    wanted = [error.removeprefix("spec.containers[0].") for error in errors]
    assert [error[: len(start)] for error, start in zip(found, wanted, strict=True)] == wanted
