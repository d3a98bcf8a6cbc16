"""Labels, annotations and reserved names, and what they mean when they are missing or broken."""

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeagent.api.decode import decode_hook
from nodeagent.api.elastic_quota import PREFIX, ElasticQuota
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.pod import Pod
from nodeagent.api.quantity import Quantity, QuantityError

IS_PARENT = PREFIX + "is-parent"
PARENT = PREFIX + "parent"
ALLOW_LENT = PREFIX + "allow-lent-resource"
SHARED_WEIGHT = PREFIX + "shared-weight"
NAMESPACES = PREFIX + "namespaces"
TREE_ID = PREFIX + "tree-id"
IS_ROOT = PREFIX + "is-root"
PROFILE = PREFIX + "profile"
IGNORE_DEFAULT_TREE = PREFIX + "ignore-default-tree"
ALLOW_FORCE_UPDATE = PREFIX + "allow-force-update"
STRICT_KEYS = PREFIX + "max-strict-check-resource-keys"
TOTAL_RESOURCE = PREFIX + "total-resource"
UNSCHEDULABLE_RESOURCE = PREFIX + "unschedulable-resource"
RESOURCE_KEYS = PREFIX + "resource-keys"
GUARANTEED = PREFIX + "guaranteed"
QUOTA_NAME = PREFIX + "name"
PREEMPTIBLE = PREFIX + "preemptible"

ROOT = "koordinator-root-quota"
SYSTEM = "koordinator-system-quota"
DEFAULT = "koordinator-default-quota"
SPECIAL = (ROOT, SYSTEM, DEFAULT)

TRUE, FALSE = "true", "false"


def parent_of(meta: ObjectMeta) -> str:
    """Return the parent's name; the root quota where none is given."""
    return meta.labels.get(PARENT) or ROOT


def is_parent(meta: ObjectMeta) -> bool:
    return meta.labels.get(IS_PARENT) == TRUE


def lends(meta: ObjectMeta) -> bool:
    """Tell whether others may use what the group does not."""
    return meta.labels.get(ALLOW_LENT) != FALSE


def bound_namespaces(meta: ObjectMeta) -> tuple[str, ...]:
    """Return the namespaces whose pods use the quota; a list that cannot be read binds none."""
    try:
        return msgspec.json.decode(meta.annotations.get(NAMESPACES) or "[]", type=tuple[str, ...])
    except msgspec.DecodeError:
        return ()


def shared_weight(quota: ElasticQuota) -> dict[str, Quantity]:
    """Return the weights by resource: the annotation's, or `max` where it says nothing."""
    try:
        weights = read_amounts(quota.metadata.annotations.get(SHARED_WEIGHT, ""))
    except ValueError:
        weights = {}
    return weights if any(weights.values()) else dict(quota.spec.max)


def read_amounts(text: str) -> dict[str, Quantity]:
    """Read an annotation's amounts; raises ValueError."""
    if not text:
        return {}
    found = msgspec.json.decode(text, type=dict[str, Any] | None)
    try:
        return msgspec.convert(found or {}, dict[str, Quantity], dec_hook=decode_hook)
    except (msgspec.ValidationError, QuantityError) as error:
        raise ValueError(str(error)) from error


def amounts_text(amounts: Mapping[str, Quantity]) -> str:
    """Write amounts as an annotation holds them: compact JSON, keys in order."""
    return msgspec.json.encode({name: str(amounts[name]) for name in sorted(amounts)}).decode()


def is_preemptible(pod: Pod) -> bool:
    return pod.metadata.labels.get(PREEMPTIBLE) != FALSE


def pod_key(pod: Pod) -> str:
    """Return namespace/name."""
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
