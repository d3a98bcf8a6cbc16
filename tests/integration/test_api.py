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
    refused = ask(node, "POST", PODS, pod("more", container(requests={"cpu": "1"})))
    assert "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=100m" in refused["message"]
    node.restart()
    assert ask(node, "GET", f"{PODS}/by-api")["status"]["phase"] == "Running"
    ask(node, "DELETE", f"{PODS}/by-api?gracePeriodSeconds=1")
    node.wait(lambda: ask(node, "GET", f"{PODS}/by-api").get("reason") == "NotFound", what="the pod to go")
    used = ask(node, "GET", "/api/v1/namespaces/default/resourcequotas/q")["status"]["used"]
    assert used == {"pods": "0", "requests.cpu": "0"}
    ask(node, "DELETE", "/api/v1/namespaces/default/resourcequotas/q")
