"""What is there before anybody asks for it: first namespaces, what each of them has, system classes."""

import base64
from collections.abc import Iterator
from typing import Any

from nodeagent.admission.priority_class import SYSTEM_CLASSES
from nodeagent.api.decode import to_builtins
from nodeagent.cluster.kinds import NAMESPACE, PRIORITY_CLASS, SECRET, SERVICE_ACCOUNT, Kind

First = tuple[Kind, str, dict[str, Any]]
"""An object to make: its kind, namespace and content."""

LEASE_NAMESPACE = "kube-node-lease"
FIRST_NAMESPACES = ("default", LEASE_NAMESPACE, "kube-public", "kube-system")
SERVICE_ACCOUNT_NAME = "default"
TOKEN_SECRET = "default-token"


def first_objects() -> Iterator[First]:
    """Yield what every cluster begins with."""
    for priority_class in SYSTEM_CLASSES:
        yield PRIORITY_CLASS, "", to_builtins(priority_class)
    for name in FIRST_NAMESPACES:
        yield NAMESPACE, "", {"metadata": {"name": name}}


def furniture(namespace: str) -> Iterator[First]:
    """Yield what Kubernetes' controllers put into a namespace: a ServiceAccount and its Secret."""
    yield SERVICE_ACCOUNT, namespace, {"metadata": {"name": SERVICE_ACCOUNT_NAME}}
    annotations = {"kubernetes.io/service-account.name": SERVICE_ACCOUNT_NAME}
    secret = {
        "metadata": {"name": TOKEN_SECRET, "annotations": annotations},
        "type": "kubernetes.io/service-account-token",
        "data": {"namespace": base64.b64encode(namespace.encode()).decode()},
    }
    yield SECRET, namespace, secret
