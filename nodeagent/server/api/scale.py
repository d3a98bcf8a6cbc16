"""The subresource `scale` of what has replicas (autoscaling/v1): `kubectl scale`."""

from collections.abc import Mapping
from typing import Any

from nodeagent.cluster.codec import Json
from nodeagent.cluster.errors import bad_request
from nodeagent.cluster.kinds import DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, Kind

SCALE = "scale"
_SCALABLE = (DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET)


def is_scalable(kind: Kind) -> bool:
    """Whether objects of a kind have replicas to scale."""
    return kind in _SCALABLE


def scale_of(plain: Mapping[str, Any]) -> Json:
    """Return the Scale of an object."""
    spec, status = plain["spec"], plain.get("status", {})
    selector = spec.get("selector") or {}
    labels = selector.get("matchLabels", selector) if isinstance(selector, dict) else {}
    metadata = {
        key: plain["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in plain["metadata"]
    }
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }


def scaled(plain: Json, scale: Mapping[str, Any]) -> Json:
    """Return an object with the replicas that a Scale asks for; raises ApiError 400."""
    spec = scale.get("spec")
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("spec.replicas: expected a number")
    metadata = scale.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    kept = plain["metadata"] | ({"resourceVersion": version} if version else {})
    return {**plain, "metadata": kept, "spec": {**plain["spec"], "replicas": replicas}}
