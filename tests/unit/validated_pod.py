"""A pod to change one thing in, and what validation says of it."""

from typing import Any

from nodeagent.api.decode import from_builtins
from nodeagent.api.defaults import default_pod
from nodeagent.api.pod import Pod
from nodeagent.api.validation import validate_pod


def pod(spec: dict[str, Any] | None = None, container: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    """Return a defaulted pod: one container `a`, changed as the arguments say."""
    fields = {"containers": [{"name": "a", **(container or {})}], **(spec or {})}
    value = {"metadata": {"name": "web", "namespace": "default", **metadata}, "spec": fields}
    return default_pod(from_builtins(value, Pod))


def said(of: Pod) -> list[str]:
    return [str(error) for error in validate_pod(of)]
