"""The API on a real node: a pod comes by it, has its cgroups, is counted by a quota, and goes."""

import json
from typing import Any

import pytest

from tests.integration.node import Node
from tests.integration.workload import container, pod

pytestmark = pytest.mark.shape("small")

PODS = "/api/v1/namespaces/default/pods"
ASK = """
import asyncio, sys
from aiohttp import ClientSession, UnixConnector

async def ask(method, path, body):
    async with ClientSession(connector=UnixConnector("/run/nodeagent/api.sock")) as session:
        async with session.request(method, "http://node" + path, data=body) as response:
            print(await response.text())

asyncio.run(ask(sys.argv[1], sys.argv[2], sys.stdin.buffer.read() or None))
"""


@pytest.fixture
def node(shared_node: Node) -> Node:
    return shared_node


def ask(node: Node, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """Ask over the socket, with the agent's own Python and client library."""
    python = "$(sed -n '1s/^#!//p' $(command -v nodeagent))"
    data = json.dumps(body) if body is not None else ""
    answer: dict[str, Any] = json.loads(node.run(f"{python} /tmp/ask.py {method} '{path}'", data=data))
    return answer


def test_a_pod_of_the_api_lives_and_goes(node: Node) -> None:
    node.write("/tmp/ask.py", ASK)
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2", "requests.cpu": "1"}}}
    ask(node, "POST", "/api/v1/namespaces/default/resourcequotas", quota)
    wanted = pod("by-api", container(requests={"cpu": "100m", "memory": "16Mi"}))
    made = ask(node, "POST", PODS, wanted)
    shown = node.wait(
        lambda: (found := ask(node, "GET", f"{PODS}/by-api"))["status"]["phase"] == "Running" and found,
        what="the pod to run",
    )
    uid = made["metadata"]["uid"].replace("-", "_")
    assert node.exists(
        f"/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
    )
    assert shown["spec"]["nodeName"] == ask(node, "GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    used = ask(node, "GET", "/api/v1/namespaces/default/resourcequotas/q")["status"]["used"]
    assert used == {"pods": "1", "requests.cpu": "100m"}
    top = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
    (usage,) = node.wait(lambda: ask(node, "GET", top)["items"], what="what the pod uses")
    assert usage["metadata"]["name"] == "by-api"
    assert usage["containers"][0]["usage"]["memory"].endswith("Ki")
    refused = ask(node, "POST", PODS, pod("more", container(requests={"cpu": "1"})))
    assert "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=100m" in refused["message"]
    node.restart()
    assert ask(node, "GET", f"{PODS}/by-api")["status"]["phase"] == "Running"
    ask(node, "DELETE", f"{PODS}/by-api?gracePeriodSeconds=1")
    node.wait(lambda: ask(node, "GET", f"{PODS}/by-api").get("reason") == "NotFound", what="the pod to go")
    used = ask(node, "GET", "/api/v1/namespaces/default/resourcequotas/q")["status"]["used"]
    assert used == {"pods": "0", "requests.cpu": "0"}
    ask(node, "DELETE", "/api/v1/namespaces/default/resourcequotas/q")


CERTIFICATES = """
import base64, sys, yaml
found = yaml.safe_load(open(sys.argv[1]))
user, cluster = found["users"][0]["user"], found["clusters"][0]["cluster"]
for name, data in (
    ("ca", cluster["certificate-authority-data"]),
    ("crt", user["client-certificate-data"]),
    ("key", user["client-key-data"]),
):
    open(f"/tmp/client.{name}", "wb").write(base64.b64decode(data))
print(cluster["server"])
"""


def test_a_deployment_by_command_line_its_log_and_a_certificate(node: Node) -> None:
    labels = {"app": "greeter"}
    template = pod("t", container("sh", "-c", "echo hello; exec sleep infinity"))["spec"]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "greeter"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    }
    node.write("/root/greeter.json", json.dumps(deployment))
    assert node.run("nodeagent apply -f /root/greeter.json") == "deployment.apps/greeter created\n"

    def running() -> list[str]:
        pods = [each for each in node.pods() if each["metadata"]["name"].startswith("greeter-")]
        return [each["metadata"]["name"] for each in pods if each["status"].get("phase") == "Running"]

    node.wait(lambda: len(running()) == 2, what="both replicas to run")
    name = running()[0]
    node.wait(lambda: node.run(f"nodeagent logs {name}") == "hello\n", what="what the container said")

    # over the network a certificate is asked for
    node.write("/tmp/certificates.py", CERTIFICATES)
    node.run("rm -f /root/kubeconfig; nodeagent kubeconfig --role read-only /root/kubeconfig")
    python = "$(sed -n '1s/^#!//p' $(command -v nodeagent))"
    server = node.run(f"{python} /tmp/certificates.py /root/kubeconfig").strip()
    curl = "curl -s --cacert /tmp/client.ca"
    with_certificate = f"{curl} --cert /tmp/client.crt --key /tmp/client.key"
    seen = json.loads(node.run(f"{with_certificate} {server}{PODS}"))
    assert name in [each["metadata"]["name"] for each in seen["items"]]
    assert json.loads(node.run(f"{curl} {server}{PODS}"))["code"] == 401
    refused = json.loads(node.run(f"{with_certificate} -X DELETE {server}{PODS}/{name}"))
    assert refused["code"] == 403 and "may only read" in refused["message"]

    assert node.run("nodeagent delete deployment greeter") == 'deployment.apps "greeter" deleted\n'
    node.wait(lambda: not running(), what="the replicas to go with their deployment")
