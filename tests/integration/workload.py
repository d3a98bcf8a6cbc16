"""Pods as the tests write them: commands of the machine's own file system, quick to end."""

from typing import Any

Manifest = dict[str, Any]
Resources = dict[str, str]


def container(
    *command: str,
    name: str = "c",
    requests: Resources | None = None,
    limits: Resources | None = None,
    **fields: Any,
) -> Manifest:
    """A container; without a command it sleeps."""
    resources = {kind: amounts for kind, amounts in (("requests", requests), ("limits", limits)) if amounts}
    if resources:
        fields["resources"] = resources
    return {"name": name, "image": "host", "command": list(command or ("sleep", "infinity")), **fields}


def shell(script: str, **fields: Any) -> Manifest:
    """A container that runs a script."""
    return container("sh", "-c", script, **fields)


def pod(name: str, *containers: Manifest, **spec: Any) -> Manifest:
    """A pod, of one sleeping container unless told otherwise. `sleep` ignores SIGTERM: it gets a second."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": list(containers or (container(),)),
            **spec,
        },
    }


def of_each_class() -> dict[str, Manifest]:
    """A pod of each QoS class, by name."""
    exact = {"cpu": "100m", "memory": "32Mi"}
    return {
        "guaranteed": pod("guaranteed", container(limits=exact)),
        "burstable": pod("burstable", container(requests=exact, limits={"cpu": "200m", "memory": "64Mi"})),
        "besteffort": pod("besteffort"),
    }
