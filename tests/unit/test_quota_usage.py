"""What objects use of a quota."""

from typing import Any

import pytest
from msgspec.structs import replace

from nodeagent.admission.quota.registry import evaluator_of
from nodeagent.admission.quota.usage import measured
from nodeagent.admission.request import PERSISTENT_VOLUME_CLAIMS, PODS, GroupResource, HasMetadata
from nodeagent.api.decode import from_builtins
from nodeagent.api.defaults import default_pod
from nodeagent.api.pod import Pod
from nodeagent.api.resource_claim import ResourceClaim
from nodeagent.api.service import Service
from tests.unit.quotas import NOW, claim, quota
from tests.unit.validated_pod import pod

SERVICES = GroupResource("services")
RESOURCE_CLAIMS = GroupResource("resourceclaims", "resource.k8s.io")


def usage(resource: GroupResource, item: HasMetadata) -> dict[str, str]:
    evaluator = evaluator_of(resource)
    assert evaluator is not None
    return {name: str(amount) for name, amount in sorted(evaluator.usage(item, NOW).items())}


def test_a_pod_uses_what_it_requests_with_overhead_and_what_it_is_limited_to() -> None:
    amounts = {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"}
    asked = pod(
        {"overhead": {"cpu": "100m"}}, {"resources": {"limits": {**amounts, "ephemeral-storage": "1Gi"}}}
    )
    assert usage(PODS, asked) == {
        "count/pods": "1",
        "cpu": "1100m",
        "ephemeral-storage": "1Gi",
        "hugepages-2Mi": "4Mi",
        "limits.cpu": "1100m",
        "limits.ephemeral-storage": "1Gi",
        "limits.memory": "1Gi",
        "memory": "1Gi",
        "pods": "1",
        "requests.cpu": "1100m",
        "requests.ephemeral-storage": "1Gi",
        "requests.example.com/gpu": "2",
        "requests.hugepages-2Mi": "4Mi",
        "requests.memory": "1Gi",
    }


@pytest.mark.parametrize(
    ("metadata", "phase", "is_over"),
    [
        ({}, "Running", False),
        ({}, "Succeeded", True),
        ({}, "Failed", True),
        ({"deletionTimestamp": "2026-07-01T11:59:00Z", "deletionGracePeriodSeconds": 60}, "Running", False),
        ({"deletionTimestamp": "2026-07-01T11:59:00Z", "deletionGracePeriodSeconds": 59}, "Running", True),
        ({"deletionTimestamp": "2026-07-01T11:59:00Z"}, "Running", False),
        ({"deletionTimestamp": "2026-02-30T00:00:00Z", "deletionGracePeriodSeconds": 1}, "Running", False),
        (
            {"deletionTimestamp": "2026-07-01T11:59:00Z", "deletionGracePeriodSeconds": 2**63 - 1},
            "Running",
            False,
        ),
    ],
)
def test_a_pod_that_is_over_only_counts_as_an_object(
    metadata: dict[str, Any], phase: str, is_over: bool
) -> None:
    running = pod(None, {"resources": {"requests": {"cpu": "1"}}}, **metadata)
    running = replace(running, status=replace(running.status, phase=phase))
    assert (usage(PODS, running) == {"count/pods": "1"}) == is_over


def test_a_pod_being_resized_uses_the_most_of_spec_status_and_allocation() -> None:
    def resized(condition: str = "") -> Pod:
        status = {
            "name": "a",
            "image": "",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "allocatedResources": {"cpu": "2"},
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
        }
        conditions = [{"type": "PodResizePending", "status": "True", "reason": condition}]
        value = {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "5"}}}]},
            "status": {"containerStatuses": [status], "conditions": conditions if condition else []},
        }
        return default_pod(from_builtins(value, Pod))

    growing, stuck = usage(PODS, resized("Deferred")), usage(PODS, resized("Infeasible"))
    assert (growing["requests.cpu"], growing["limits.cpu"]) == ("5", "5")
    assert (stuck["requests.cpu"], stuck["limits.cpu"]) == ("2", "3")


@pytest.mark.parametrize(
    ("spec", "balancers", "ports"),
    [
        ({"type": "ClusterIP"}, "0", "0"),
        ({"type": "NodePort"}, "0", "2"),
        ({"type": "LoadBalancer"}, "1", "2"),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, "1", "1"),
        ({"type": "ExternalName"}, "0", "0"),
    ],
)
def test_services(spec: dict[str, Any], balancers: str, ports: str) -> None:
    value = {
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 1}, {"port": 2, "nodePort": 30000}], **spec},
    }
    assert usage(SERVICES, from_builtins(value, Service)) == {
        "count/services": "1",
        "services": "1",
        "services.loadbalancers": balancers,
        "services.nodeports": ports,
    }


def test_storage_is_charged_in_total_and_to_its_class_in_whole_bytes() -> None:
    assert usage(PERSISTENT_VOLUME_CLAIMS, claim("1500m", storageClassName="gold")) == {
        "count/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "2",
        "persistentvolumeclaims": "1",
        "requests.storage": "2",
    }
    assert usage(PERSISTENT_VOLUME_CLAIMS, claim("1Gi", "3Gi"))["requests.storage"] == "3Gi"
    assert usage(PERSISTENT_VOLUME_CLAIMS, claim("1Gi", "500Mi"))["requests.storage"] == "1Gi"


def test_devices_are_charged_per_class_at_the_worst_case() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu"}},
        {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
        {
            "name": "c",
            "firstAvailable": [
                {"name": "x", "deviceClassName": "nic", "count": 2},
                {"name": "y", "deviceClassName": "nic", "count": 3},
            ],
        },
    ]
    value = {"metadata": {"name": "r"}, "spec": {"devices": {"requests": requests, "config": []}}}
    assert usage(RESOURCE_CLAIMS, from_builtins(value, ResourceClaim)) == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "33",
        "nic.deviceclass.resource.k8s.io/devices": "3",
        "requests.deviceclass.resource.kubernetes.io/gpu": "33",
        "requests.deviceclass.resource.kubernetes.io/nic": "3",
    }


def test_any_kind_is_counted_but_events() -> None:
    widgets = GroupResource("widgets", "example.com")
    assert usage(widgets, pod()) == {"count/widgets.example.com": "1"}
    assert evaluator_of(GroupResource("events")) is None


def test_status_is_measured_from_what_there_is() -> None:
    mixed = quota(
        {"pods": "9", "services": "9", "count/widgets.example.com": "9", "requests.example.com/gpu": "9"}
    )
    gpu = pod(None, {"resources": {"limits": {"example.com/gpu": "1"}}})
    service = from_builtins({"metadata": {"name": "s"}}, Service)
    (found,) = measured([mixed], {PODS: [gpu, pod()], SERVICES: [service]}, NOW)
    assert {name: str(amount) for name, amount in found.status.used.items()} == {
        "pods": "2",
        "requests.example.com/gpu": "1",
        "services": "1",
    }
