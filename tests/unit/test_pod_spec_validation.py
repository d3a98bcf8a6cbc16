"""What holds for a pod's spec as a whole: containers together, volumes, placement, the pod level."""

from typing import Any

import pytest

from tests.unit.validated_pod import pod, said


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"containers": []}, ["containers: Required value"]),
        ({"containers": [{"name": "a"}, {"name": "a"}]}, ['containers[1].name: Duplicate value: "a"']),
        ({"initContainers": [{"name": "a"}]}, ['initContainers[0].name: Duplicate value: "a"']),
        (
            {
                "initContainers": [
                    {"name": "i", "restartPolicy": "Never", "livenessProbe": {"tcpSocket": {"port": 1}}}
                ]
            },
            [
                'initContainers[0].restartPolicy: Unsupported value: "Never": supported values: "Always"',
                "initContainers[0].livenessProbe: Forbidden: "
                "may not be set for init containers without restartPolicy=Always",
            ],
        ),
        (
            {"restartPolicy": "Sometimes"},
            [
                'restartPolicy: Unsupported value: "Sometimes": '
                'supported values: "Always", "OnFailure", "Never"'
            ],
        ),
        (
            {"terminationGracePeriodSeconds": -1, "activeDeadlineSeconds": 0},
            [
                "terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            ],
        ),
        (
            {
                "hostNetwork": True,
                "containers": [{"name": "a", "ports": [{"containerPort": 1, "hostPort": 2}]}],
            },
            [
                "containers[0].ports[0].hostPort: Invalid value: 2: "
                "must match `containerPort` when `hostNetwork` is true"
            ],
        ),
        (
            {"hostUsers": False, "hostPID": True, "shareProcessNamespace": True},
            [
                "hostPID: Forbidden: when `pod.Spec.HostUsers` is false",
                "shareProcessNamespace: Invalid value: true: "
                "ShareProcessNamespace and HostPID cannot both be enabled",
            ],
        ),
        (
            {
                "volumes": [
                    {
                        "name": "a",
                        "emptyDir": {"sizeLimit": "-1"},
                        "hostPath": {"path": "/a/../b", "type": "dir"},
                    }
                ]
            },
            [
                "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
                "volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
                "volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
                'volumes[0].hostPath.type: Unsupported value: "dir": supported values: "", "BlockDevice"',
            ],
        ),
        (
            {
                "volumes": [
                    {"name": "a", "configMap": {"defaultMode": 512, "items": [{"key": "k", "path": "../x"}]}}
                ]
            },
            [
                "volumes[0].configMap.name: Required value",
                "volumes[0].configMap.defaultMode: Invalid value: 512: "
                "must be a number between 0 and 0777 (octal), both inclusive",
                "volumes[0].configMap.items[0].path: Invalid value: \"../x\": must not contain '..'",
            ],
        ),
        (
            {
                "volumes": [{"name": "a"}],
                "containers": [
                    {
                        "name": "a",
                        "volumeMounts": [
                            {"name": "a", "mountPath": "/a", "subPath": "/b"},
                            {"name": "a", "mountPath": "/a", "subPath": "../b"},
                        ],
                    }
                ],
            },
            [
                'containers[0].volumeMounts[0].subPath: Invalid value: "/b": must be a relative path',
                'containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
                "containers[0].volumeMounts[1].subPath: Invalid value: \"../b\": must not contain '..'",
            ],
        ),
        (
            {"tolerations": [{"key": "a", "operator": "In", "effect": "Never", "tolerationSeconds": 1}, {}]},
            [
                'tolerations[0].effect: Invalid value: "Never": '
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
                'tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"',
                'tolerations[0].effect: Unsupported value: "Never": supported values: "NoSchedule", ',
                'tolerations[1].operator: Invalid value: "": operator must be Exists when `key` is empty',
            ],
        ),
        (
            {"resources": {"requests": {"cpu": "1", "ephemeral-storage": "1"}, "limits": {"memory": "1Gi"}}},
            [
                'resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": '
                'supported values: "cpu", "hugepages-", "memory"'
            ],
        ),
        (
            {
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
                "containers": [
                    {"name": "a", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}}
                ],
            },
            [
                'resources.requests[cpu]: Invalid value: "1": '
                "must be greater than or equal to aggregate container requests of 2",
                'containers[0].resources.limits[cpu]: Invalid value: "3": '
                "must be less than or equal to pod limits of 1",
            ],
        ),
        (
            {"overhead": {"cpu": "-1"}},
            ['overhead[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            {"nodeName": "A", "hostname": "a.b", "hostAliases": [{"ip": "x"}]},
            [
                'hostname: Invalid value: "a.b": must not contain dots',
                'nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain',
                'hostAliases[0].ip: Invalid value: "x": must be a valid IP address',
            ],
        ),
        (
            {"dnsPolicy": "None"},
            ["dnsConfig.nameservers: Required value: must provide at least one DNS nameserver"],
        ),
        (
            {"ephemeralContainers": [{"name": "e"}]},
            ["ephemeralContainers: Forbidden: cannot be set on create"],
        ),
        (
            {"os": {"name": "plan9"}},
            ['os.name: Unsupported value: "plan9": supported values: "linux", "windows"'],
        ),
        (
            {
                "securityContext": {
                    "sysctls": [{"name": "a"}, {"name": "a"}, {"name": "../b"}],
                    "fsGroup": 2**32,
                }
            },
            [
                "securityContext.fsGroup: Invalid value: 4294967296: "
                "must be between 0 and 4294967295, inclusive",
                'securityContext.sysctls[1].name: Duplicate value: "a"',
                'securityContext.sysctls[2].name: Invalid value: "../b": must have at most 253 characters',
            ],
        ),
    ],
)
def test_specs(spec: dict[str, Any], errors: list[str]) -> None:
    found = [error.removeprefix("spec.") for error in said(pod(spec))]
    assert [error[: len(start)] for error, start in zip(found, errors, strict=True)] == errors


def test_affinity() -> None:
    expression = {"key": "zone", "operator": "In", "values": []}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [expression, {"key": "a", "operator": "Gt", "values": ["1", "2"]}]},
                    {"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]},
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}}
            ]
        },
    }
    node = "spec.affinity.nodeAffinity"
    terms = f"{node}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    term = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
    assert said(pod({"affinity": affinity})) == [
        f"{terms}[0].matchExpressions[0].values: Required value: "
        "must be specified when `operator` is 'In' or 'NotIn'",
        f"{terms}[0].matchExpressions[1].values: Required value: "
        "must be specified single value when `operator` is 'Lt' or 'Gt'",
        f'{terms}[1].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
        f"{node}.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: "
        "must be in the range 1-100",
        f"{term}.labelSelector.matchExpressions[0].values: Forbidden: "
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        f"{term}.topologyKey: Required value: can not be empty",
    ]


def test_topology_spread() -> None:
    constraints = [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Maybe", "minDomains": 0}]
    path = "spec.topologySpreadConstraints[0]"
    assert said(pod({"topologySpreadConstraints": constraints})) == [
        f"{path}.maxSkew: Invalid value: 0: must be greater than zero",
        f"{path}.topologyKey: Required value: can not be empty",
        f'{path}.whenUnsatisfiable: Unsupported value: "Maybe": '
        'supported values: "DoNotSchedule", "ScheduleAnyway"',
        f"{path}.minDomains: Invalid value: 0: must be greater than 0",
    ]


def test_a_thousand_faults_are_cut_short() -> None:
    assert len(said(pod({"containers": [{"name": "A"}] * 1000}))) == 100
