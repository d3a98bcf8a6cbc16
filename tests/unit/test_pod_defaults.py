"""Defaulting fills in what the API server would, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.api.decode import from_builtins, to_builtins
from nodeagent.api.defaults import default_pod, image_pull_policy
from nodeagent.api.pod import Pod

amounts = st.dictionaries(
    st.sampled_from(("cpu", "memory", "hugepages-2Mi", "ephemeral-storage", "example.com/gpu")),
    st.sampled_from(("0", "1", "100u", "1.5", "2Mi", "1n", "1e3")),
)
requirements = st.fixed_dictionaries({}, optional={"requests": amounts, "limits": amounts})


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for kind, least in (("containers", 1), ("initContainers", 0)):
        resources = draw(st.lists(requirements, min_size=least, max_size=3))
        spec[kind] = [{"name": f"{kind[0]}{i}", "resources": part} for i, part in enumerate(resources)]
    if draw(st.booleans()):
        spec["resources"] = draw(requirements)
    return spec


@given(specs())
def test_twice_is_as_good_as_once(spec: dict[str, Any]) -> None:
    once = default_pod(from_builtins({"spec": spec}, Pod))
    assert default_pod(once) == once


@given(specs())
def test_what_is_written_stays(spec: dict[str, Any]) -> None:
    pod = from_builtins({"spec": spec}, Pod)
    defaulted = default_pod(pod)
    for before, after in zip(pod.spec.containers, defaulted.spec.containers, strict=True):
        for name, amount in before.resources.requests.items():
            assert after.resources.requests[name] == amount.round_up_milli()
        assert after.resources.limits.keys() == before.resources.limits.keys()
        assert after.resources.limits.keys() <= after.resources.requests.keys()


def test_an_empty_pod() -> None:
    pod = default_pod(from_builtins({"spec": {"containers": [{"name": "a", "image": "b:1"}]}}, Pod))
    assert to_builtins(pod)["spec"] == {
        "containers": [
            {
                "name": "a",
                "image": "b:1",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }


def test_parts_of_a_pod() -> None:
    spec = {
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "a",
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 0},
                "lifecycle": {"postStart": {"httpGet": {"port": 80}}},
            }
        ],
        "volumes": [
            {"name": "scratch"},
            {"name": "host", "hostPath": {"path": "/"}},
            {"name": "s", "secret": {}},
        ],
    }
    filled = default_pod(from_builtins({"spec": spec}, Pod)).spec
    assert filled.termination_grace_period_seconds == 0
    [container] = filled.containers
    assert to_builtins(container.ports[0]) == {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
    assert container.liveness_probe is not None
    assert to_builtins(container.liveness_probe) == {
        "failureThreshold": 3,
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }
    assert container.lifecycle is not None
    assert to_builtins(container.lifecycle)["postStart"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}
    }
    assert [to_builtins(volume) for volume in filled.volumes] == [
        {"name": "scratch", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/", "type": ""}},
        {"name": "s", "secret": {"defaultMode": 0o644}},
    ]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("registry:5000/app", "Always"),
        ("registry:5000/app:1.2", "IfNotPresent"),
        ("app@sha256:abc", "IfNotPresent"),
        ("app:latest@sha256:abc", "Always"),
        ("", "IfNotPresent"),
    ],
)
def test_image_pull_policy(image: str, policy: str) -> None:
    assert image_pull_policy(image) == policy
