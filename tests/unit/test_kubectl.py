"""The walk-throughs of the Kubernetes documentation, with kubectl itself and the output that they print."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nodeagent.api.quantity import Quantity
from nodeagent.clock import SystemClock
from nodeagent.cluster.kinds import POD
from nodeagent.controllers.loop import ControllerLoop
from nodeagent.node import NodeFacts, node_object, read_system_info
from nodeagent.pods.events import EventRecorder
from nodeagent.server.api.who import Role
from tests.unit.kubectl import Kubectl, needs_kubectl, serving

pytestmark = needs_kubectl

PRIORITY_QUOTAS = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ResourceQuota
  metadata:
    name: pods-high
  spec:
    hard:
      cpu: "1000"
      memory: 200Gi
      pods: "10"
    scopeSelector:
      matchExpressions:
      - operator : In
        scopeName: PriorityClass
        values: ["high"]
- apiVersion: v1
  kind: ResourceQuota
  metadata:
    name: pods-low
  spec:
    hard:
      cpu: "5"
      memory: 10Gi
      pods: "10"
    scopeSelector:
      matchExpressions:
      - operator : In
        scopeName: PriorityClass
        values: ["low"]
"""
HIGH_PRIORITY_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: high-priority
spec:
  containers:
  - name: high-priority
    image: ubuntu
    command: ["/bin/sh"]
    args: ["-c", "while true; do echo hello; sleep 10;done"]
    resources:
      requests:
        memory: "10Gi"
        cpu: "500m"
      limits:
        memory: "10Gi"
        cpu: "500m"
  priorityClassName: high
"""
PRIORITY_USED = """\
Name:       pods-high
Namespace:  default
Resource    Used  Hard
--------    ----  ----
cpu         500m  1k
memory      10Gi  200Gi
pods        1     10


Name:       pods-low
Namespace:  default
Resource    Used  Hard
--------    ----  ----
cpu         0     5
memory      0     10Gi
pods        0     10
"""
COMPUTE_RESOURCES = """
apiVersion: v1
kind: ResourceQuota
metadata:
  name: compute-resources
spec:
  hard:
    requests.cpu: "1"
    requests.memory: 1Gi
    limits.cpu: "2"
    limits.memory: 2Gi
    requests.nvidia.com/gpu: 4
"""
COMPUTE_DESCRIBED = """\
Name:                    compute-resources
Namespace:               myspace
Resource                 Used  Hard
--------                 ----  ----
limits.cpu               0     2
limits.memory            0     2Gi
requests.cpu             0     1
requests.memory          0     1Gi
requests.nvidia.com/gpu  0     4
"""
OBJECT_COUNTS = """
apiVersion: v1
kind: ResourceQuota
metadata:
  name: object-counts
spec:
  hard:
    configmaps: "10"
    persistentvolumeclaims: "4"
    pods: "4"
    replicationcontrollers: "20"
    secrets: "10"
    services: "10"
    services.loadbalancers: "2"
"""
OBJECTS_DESCRIBED = """\
Name:                   object-counts
Namespace:              myspace
Resource                Used  Hard
--------                ----  ----
configmaps              0     10
persistentvolumeclaims  0     4
pods                    0     4
replicationcontrollers  0     20
secrets                 1     10
services                0     10
services.loadbalancers  0     2
"""
COUNTS_DESCRIBED = """\
Name:                   test
Namespace:              myspace
Resource                Used  Hard
--------                ----  ----
count/deployments.apps  1     2
count/pods              2     3
count/replicasets.apps  1     4
count/secrets           1     4
"""
PROBLEMATIC_LIMIT_RANGE = """
apiVersion: v1
kind: LimitRange
metadata:
  name: cpu-resource-constraint
spec:
  limits:
  - default: # this section defines default limits
      cpu: 500m
    defaultRequest: # this section defines default requests
      cpu: 500m
    max: # max and min define the limit range
      cpu: "1"
    min:
      cpu: 100m
    type: Container
"""
CONFLICTING_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: example-conflict-with-limitrange-cpu
spec:
  containers:
  - name: demo
    image: registry.k8s.io/pause:3.8
    resources:
      requests:
        cpu: 700m
"""
CONTAINERS = [{"name": "c", "image": "busybox"}]
CONFLICT = (
    'The Pod "example-conflict-with-limitrange-cpu" is invalid: spec.containers[0].resources.requests: '
    'Invalid value: "700m": must be less than or equal to cpu limit of 500m'
)


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with serving(tmp_path) as kubectl:
        yield kubectl


async def test_quota_per_priority_class(kubectl: Kubectl) -> None:
    for name in ("low", "high"):
        await kubectl.run("create", "priorityclass", name, "--value=1000", f"--description={name}")
    created = await kubectl.run("create", "-f", "-", stdin=PRIORITY_QUOTAS)
    assert created == "resourcequota/pods-high created\nresourcequota/pods-low created\n"
    await kubectl.run("create", "-f", "-", stdin=HIGH_PRIORITY_POD)
    assert (await kubectl.run("describe", "quota")).strip() == PRIORITY_USED.strip()


async def test_setting_and_viewing_quotas(kubectl: Kubectl) -> None:
    inside = "--namespace=myspace"
    assert await kubectl.run("create", "namespace", "myspace") == "namespace/myspace created\n"
    await kubectl.run("create", "-f", "-", inside, stdin=COMPUTE_RESOURCES)
    await kubectl.run("create", "-f", "-", inside, stdin=OBJECT_COUNTS)
    listed = await kubectl.run("get", "quota", inside, "-o", "name")
    assert listed == "resourcequota/compute-resources\nresourcequota/object-counts\n"
    described = [
        await kubectl.run("describe", "quota", name, inside)
        for name in ("compute-resources", "object-counts")
    ]
    assert described == [COMPUTE_DESCRIBED, OBJECTS_DESCRIBED]


async def test_counting_objects_of_any_kind(kubectl: Kubectl) -> None:
    inside = "--namespace=myspace"
    await kubectl.run("create", "namespace", "myspace")
    hard = "--hard=count/deployments.apps=2,count/replicasets.apps=4,count/pods=3,count/secrets=4"
    assert await kubectl.run("create", "quota", "test", hard, inside) == "resourcequota/test created\n"
    version = kubectl.cluster.version
    controllers = asyncio.create_task(ControllerLoop(kubectl.cluster, SystemClock()).run())
    deployment = ("create", "deployment", "nginx", "--image=nginx", inside, "--replicas=2")
    assert await kubectl.run(*deployment) == "deployment.apps/nginx created\n"
    async with asyncio.timeout(20):
        pods = kubectl.cluster.watch(POD, version)
        await anext(pods)
        await anext(pods)
    assert await kubectl.run("describe", "quota", inside) == COUNTS_DESCRIBED
    controllers.cancel()
    header, row = (await kubectl.run("get", "deployments", inside)).splitlines()
    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row.split()[:2] == ["nginx", "0/2"]


async def test_a_limit_range_that_conflicts_with_a_pod(kubectl: Kubectl) -> None:
    await kubectl.run("apply", "-f", "-", stdin=PROBLEMATIC_LIMIT_RANGE)
    error = await kubectl.run("apply", "-f", "-", stdin=CONFLICTING_POD, fails=True)
    assert error.strip() == CONFLICT
    fine = CONFLICTING_POD.replace("example-conflict", "example-no-conflict") + "      limits: {cpu: 700m}\n"
    name = "pod/example-no-conflict-with-limitrange-cpu"
    assert await kubectl.run("apply", "-f", "-", stdin=fine) == f"{name} created\n"
    assert await kubectl.run("apply", "-f", "-", stdin=fine) == f"{name} unchanged\n"
    limits = await kubectl.run("get", "limitrange", "-o", "jsonpath={.items[0].spec.limits[0]}")
    assert json.loads(limits) == {
        "type": "Container",
        "default": {"cpu": "500m"},
        "defaultRequest": {"cpu": "500m"},
        "max": {"cpu": "1"},
        "min": {"cpu": "100m"},
    }


async def test_refusals_are_in_the_api_server_s_words(kubectl: Kubectl) -> None:
    await kubectl.run("create", "quota", "q", "--hard=pods=1,requests.cpu=1")
    without = await kubectl.run("run", "a", "--image=busybox", fails=True)
    assert without.strip() == (
        'Error from server (Forbidden): pods "a" is forbidden: failed quota: q: '
        "must specify requests.cpu for: a"
    )
    missing = await kubectl.run("get", "pod", "nobody", fails=True)
    assert missing.strip() == 'Error from server (NotFound): pods "nobody" not found'
    unknown = CONFLICTING_POD.replace("resources:", "resourses:")
    misspelt = await kubectl.run("create", "-f", "-", stdin=unknown, fails=True)
    assert 'spec.containers[0].resourses: Unknown field: did you mean "resources"?' in misspelt
    applied = await kubectl.run("apply", "--server-side", "-f", "-", stdin=CONFLICTING_POD, fails=True)
    assert "use client-side apply" in applied


async def test_changing_listing_and_deleting(kubectl: Kubectl) -> None:
    await kubectl.run("create", "configmap", "a", "--from-literal=k=v")
    await kubectl.run("label", "configmap", "a", "tier=web")
    assert await kubectl.run("get", "configmap", "-l", "tier in (web)", "-o", "name") == "configmap/a\n"
    assert await kubectl.run("get", "configmap", "--field-selector=metadata.name!=a", "-o", "name") == ""
    for kind, patch in (
        ("json", '[{"op":"replace","path":"/data/k","value":"w"}]'),
        ("merge", '{"data":{"m":"1"}}'),
        ("strategic", '{"data":{"s":"1"}}'),
    ):
        await kubectl.run("patch", "configmap", "a", f"--type={kind}", "-p", patch)
    data = await kubectl.run("get", "configmap", "a", "-o", "jsonpath={.data}")
    assert data == '{"k":"w","m":"1","s":"1"}'
    for name in ("s0", "s1", "s2"):
        await kubectl.run("create", "secret", "generic", name, "--from-literal=k=v")
    names = await kubectl.run("get", "secrets", "--chunk-size=2", "-o", "name")
    assert names.split() == ["secret/default-token", "secret/s0", "secret/s1", "secret/s2"]
    assert await kubectl.run("delete", "secret", "s0") == 'secret "s0" deleted\n'
    await kubectl.run("delete", "configmap", "--all")
    assert await kubectl.run("get", "configmap", "-o", "name") == ""


async def test_a_pod_is_patched_by_the_names_of_its_containers(kubectl: Kubectl) -> None:
    await kubectl.run("create", "-f", "-", stdin=CONFLICTING_POD)
    pod = "pod/example-conflict-with-limitrange-cpu"
    await kubectl.run("set", "image", pod, "demo=registry.k8s.io/pause:3.9")
    image = await kubectl.run("get", pod, "-o", "jsonpath={.spec.containers[*].image}")
    assert image == "registry.k8s.io/pause:3.9"
    other = '{"spec":{"containers":[{"name":"demo","command":["x"]}]}}'
    error = await kubectl.run("patch", pod, "-p", other, fails=True)
    assert "pod updates may not change fields other than" in error


async def test_watching_pods(kubectl: Kubectl) -> None:
    watch = ("get", "pods", "-w", "--request-timeout=4s", "--no-headers")
    watching = asyncio.create_task(kubectl.run(*watch))
    await asyncio.sleep(1.5)
    await kubectl.run("run", "a", "--image=busybox")
    await kubectl.run("delete", "pod", "a", "--now", "--wait=false")
    lines = [line.split()[:3] for line in (await watching).splitlines()]
    assert lines == [["a", "0/1", "Pending"], ["a", "0/1", "Terminating"]]


async def test_kinds_of_a_custom_resource_definition(kubectl: Kubectl) -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true,
     additionalPrinterColumns: [{name: Size, type: string, jsonPath: .spec.size}]}
"""
    await kubectl.run("apply", "-f", "-", stdin=definition)
    await kubectl.run("create", "quota", "q", "--hard=count/widgets.example.com=1")
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: %s}\nspec: {size: large}\n"
    await kubectl.run("apply", "-f", "-", stdin=widget % "one")
    assert "exceeded quota: q" in await kubectl.run("apply", "-f", "-", stdin=widget % "two", fails=True)
    assert (await kubectl.run("get", "wd", "--no-headers")).split()[:2] == ["one", "large"]


async def test_who_may_only_read_writes_nothing_and_sees_no_secrets(tmp_path: Path) -> None:
    async with serving(tmp_path, Role.READ_ONLY) as kubectl:
        assert "default" in await kubectl.run("get", "namespaces", "-o", "name")
        assert "may only read" in await kubectl.run("create", "configmap", "a", fails=True)
        assert "may not see them" in await kubectl.run("get", "secrets", fails=True)


async def test_scaling_and_what_may_not_change(kubectl: Kubectl) -> None:
    await kubectl.run("create", "deployment", "web", "--image=nginx")
    scaled = await kubectl.run("scale", "deployment", "web", "--replicas=3", "--current-replicas=1")
    assert scaled == "deployment.apps/web scaled\n"
    assert await kubectl.run("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    await kubectl.run("create", "priorityclass", "high", "--value=1000")
    value = ("patch", "priorityclass", "high", "--type=merge", "-p", '{"value":5}')
    error = await kubectl.run(*value, fails=True)
    assert "value: Forbidden: may not be changed in an update." in error
    assert await kubectl.run("get", "--raw", "/readyz") == "ok"


async def test_events_are_found_by_the_object_that_they_are_about(kubectl: Kubectl) -> None:
    recorder = EventRecorder(kubectl.store, SystemClock(), "n1")
    wanted = {"metadata": {"name": "a"}, "spec": {"containers": CONTAINERS}}
    made = kubectl.cluster.create(POD, "default", wanted)
    pod = kubectl.cluster.reports.pods()[0]
    for _ in range(3):
        recorder.pod(pod, "BackOff", "Back-off restarting failed container", warning=True)
    recorder.node("Starting", "Starting nodeagent.")
    described = (await kubectl.run("describe", "pod", "a")).splitlines()
    assert described[-1].split()[:2] == ["Warning", "BackOff"]
    assert described[-1].endswith("Back-off restarting failed container") and "(x3 over" in described[-1]
    of_pod = f"involvedObject.uid={made['metadata']['uid']}"
    (line,) = (await kubectl.run("get", "events", "--field-selector", of_pod, "--no-headers")).splitlines()
    assert line.split()[1:4] == ["Warning", "BackOff", "pod/a"]


async def test_elastic_quotas_by_kubectl(kubectl: Kubectl) -> None:
    group = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: {name}
  namespace: default
  labels:
    quota.scheduling.koordinator.sh/parent: "{parent}"
    quota.scheduling.koordinator.sh/is-parent: "{is_parent}"
spec:
  max: {{cpu: 40, memory: 40Gi}}
  min: {{cpu: {cpu}, memory: 10Mi}}
"""
    parent = group.format(name="quota-parent-example", parent="", is_parent="true", cpu=10)
    applied = await kubectl.run("apply", "-f", "-", stdin=parent)
    assert applied == "elasticquota.scheduling.sigs.k8s.io/quota-parent-example created\n"
    child = group.format(name="quota-example", parent="quota-parent-example", is_parent="false", cpu=20)
    refused = await kubectl.run("apply", "-f", "-", stdin=child, fails=True)
    assert refused.strip() == (
        'Error from server: error when creating "STDIN": '
        'admission webhook "vquota.kb.io" denied the request: '
        "checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: quota-parent-example"
    )
    await kubectl.run("apply", "-f", "-", stdin=child.replace("cpu: 20", "cpu: 5"))
    names = (await kubectl.run("get", "eqs", "-n", "default", "--no-headers")).split()[::2]
    assert names == ["quota-example", "quota-parent-example"]
    label = "quota.scheduling.koordinator.sh/name=quota-parent-example"
    pod = await kubectl.run("run", "a", "--image=busybox", f"--labels={label}", fails=True)
    assert "pod can not be linked to a parentQuotaGroup,quota:quota-parent-example, pod:a" in pod
    stays = await kubectl.run("delete", "eq", "quota-parent-example", fails=True)
    assert "has 1 child quotas" in stays


async def test_what_an_applied_file_leaves_out_goes(kubectl: Kubectl) -> None:
    service = """
apiVersion: v1
kind: Service
metadata: {name: web, labels: {tier: web}}
spec:
  selector: {app: web}
  ports:
  - {name: http, port: 80}
  - {name: https, port: 443}
"""
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: nginx
        env:
        - {name: A, value: "1"}
        - {name: B, value: "2"}
      - name: sidecar
        image: busybox
"""
    await kubectl.run("apply", "-f", "-", stdin=service)
    await kubectl.run("apply", "-f", "-", stdin=deployment)
    less = service.replace("  - {name: https, port: 443}\n", "").replace(", labels: {tier: web}", "")
    assert await kubectl.run("apply", "-f", "-", stdin=less) == "service/web configured\n"
    shown = await kubectl.run(
        "get", "service", "web", "-o", "jsonpath={.spec.ports[*].port} {.metadata.labels}"
    )
    assert shown.strip() == "80"
    start, _, _ = deployment.partition("        - {name: B")
    await kubectl.run("apply", "-f", "-", stdin=start)
    path = "jsonpath={.spec.template.spec.containers[*].name} {.spec.template.spec.containers[0].env[*].name}"
    assert await kubectl.run("get", "deployment", "web", "-o", path) == "main A"
    assert await kubectl.run("apply", "-f", "-", stdin=start) == "deployment.apps/web unchanged\n"


async def test_the_node_is_described_with_what_its_pods_ask_for(kubectl: Kubectl) -> None:
    amounts = {"cpu": Quantity.parse("2"), "memory": Quantity.parse("4Gi")}
    system = read_system_info()
    now = SystemClock().now()
    facts = NodeFacts("n1", "10.0.0.1", {"zone": "a"}, amounts, amounts, system, 10255, now)
    kubectl.cluster.reports.publish_node(node_object(facts, (), None, now))
    kubectl.cluster.reports.renew_lease("n1", now, 600)
    requests = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    spec = {"nodeName": "n1", "containers": [{**CONTAINERS[0], "resources": requests}]}
    kubectl.cluster.create(POD, "default", {"metadata": {"name": "a"}, "spec": spec})
    described = [
        " ".join(line.split()) for line in (await kubectl.run("describe", "node", "n1")).splitlines()
    ]
    assert "Labels: zone=a" in described
    assert "HolderIdentity: n1" in described
    assert "default a 500m (25%) 0 (0%) 1Gi (25%) 0 (0%) 0s" in [
        re.sub(r"\d+s$", "0s", line) for line in described
    ]
    assert "cpu 500m (25%) 0 (0%)" in described
    await kubectl.run("cordon", "n1")
    assert (await kubectl.run("get", "nodes", "--no-headers")).split()[:2] == [
        "n1",
        "Ready,SchedulingDisabled",
    ]


async def test_tables_have_the_columns_that_users_know(kubectl: Kubectl) -> None:
    claim = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: gold, resources: {requests: {storage: 1Gi}}}
"""
    await kubectl.run("apply", "-f", "-", stdin=claim)
    await kubectl.run("create", "service", "clusterip", "web", "--tcp=80:8080")
    await kubectl.run("create", "job", "j", "--image=x")
    headers = {
        "pvc": "NAME STATUS VOLUME CAPACITY ACCESS MODES STORAGECLASS VOLUMEATTRIBUTESCLASS AGE",
        "svc": "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
        "job": "NAME STATUS COMPLETIONS DURATION AGE",
        "pc": "NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY",
        "ns": "NAME STATUS AGE",
        "sa": "NAME SECRETS AGE",
    }
    for kind, header in headers.items():
        table = (await kubectl.run("get", kind)).splitlines()
        assert " ".join(table[0].split()) == header
    row = (await kubectl.run("get", "pvc", "data", "--no-headers")).split()
    assert row[:4] == ["data", "Pending", "gold", "<unset>"]
