"""The compact pods of the resource managers' golden files."""

import dataclasses
import re
from typing import Any

from nodeagent.api.decode import from_builtins
from nodeagent.api.pod import Pod
from nodeagent.resources.requests import ContainerRequest, PodRequest, pod_request


def request(uid: str, compact: dict[str, Any]) -> PodRequest:
    """Make the API object, and take from it what the managers look at."""
    spec: dict[str, Any] = {
        "initContainers": [_container(entry) for entry in compact["init"]],
        "containers": [_container(entry) for entry in compact["containers"]],
    }
    if "resources" in compact:
        spec["resources"] = compact["resources"]
    asked = pod_request(from_builtins({"metadata": {"name": "p", "uid": uid}, "spec": spec}, Pod))
    written = {entry["name"]: entry.get("requests", {}) for entry in compact["init"] + compact["containers"]}
    containers = tuple(_as_go_reads(container, written[container.name]) for container in asked.containers)
    return PodRequest(uid, containers)


def _container(entry: dict[str, Any]) -> dict[str, Any]:
    resources = {"requests": entry.get("requests", {}), "limits": entry.get("limits", {})}
    restart = {"restartPolicy": "Always"} if entry.get("restart_always") else {}
    return {"name": entry["name"], "image": "x", "resources": resources, **restart}


def _as_go_reads(container: ContainerRequest, written: dict[str, str]) -> ContainerRequest:
    """Go has no int64 for a decimal point with a binary suffix; through the API server none comes."""
    if any(re.search(r"\..*i$", written[name]) for name, _ in container.memory or ()):
        return dataclasses.replace(container, memory=None)
    return container
