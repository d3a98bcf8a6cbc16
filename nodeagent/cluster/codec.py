"""Objects from JSON and back: decoded strictly where a type exists, with their defaults."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from msgspec import structs

from nodeagent.admission.limit_range_validation import default_limit_range, validate_limit_range
from nodeagent.admission.priority_class import default_priority_class, validate_priority_class
from nodeagent.admission.quota.validation import default_resource_quota, validate_resource_quota
from nodeagent.admission.refusal import invalid
from nodeagent.api.base import ApiObject
from nodeagent.api.decode import InvalidObject, from_builtins, from_json, to_builtins, to_json
from nodeagent.api.defaults import default_pod
from nodeagent.api.errors import FieldError
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.persistent_volume_claim import PersistentVolumeClaimStatus
from nodeagent.api.pod_status import PodStatus
from nodeagent.api.qos import qos_class
from nodeagent.api.service import ServiceSpec, ServiceStatus
from nodeagent.api.validation import metadata_errors
from nodeagent.cluster.errors import refused
from nodeagent.cluster.generic import content_errors, with_defaults
from nodeagent.cluster.kinds import NAMESPACE, PERSISTENT_VOLUME_CLAIM, POD, SERVICE, Kind
from nodeagent.store import Key

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_HEAD = ("apiVersion", "kind", "metadata")
_DEFAULTS: Mapping[str, Callable[[Any], Any]] = {
    "pods": default_pod,
    "limitranges": default_limit_range,
    "resourcequotas": default_resource_quota,
    "priorityclasses.scheduling.k8s.io": default_priority_class,
}
_VALIDATION: Mapping[str, Callable[[Any], tuple[FieldError, ...]]] = {
    "limitranges": validate_limit_range,
    "resourcequotas": validate_resource_quota,
    "priorityclasses.scheduling.k8s.io": validate_priority_class,
}


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object of a kind without a type: its metadata, and all the rest as it came."""

    metadata: ObjectMeta
    content: Json


Object = Any
"""An ApiObject of the kind's type with `metadata`, or a JsonObject."""


def decode(kind: Kind, plain: Mapping[str, Any]) -> Object:
    """Return an object with its defaults; raises ApiError 422 with every fault."""
    content = {key: part for key, part in plain.items() if key not in ("apiVersion", "kind")}
    name = _name(content)
    try:
        if kind.object_type is not None:
            typed: Any = from_builtins(content, kind.object_type)
            default = _DEFAULTS.get(kind.resource)
            return default(typed) if default else typed
        metadata = from_builtins(content.pop("metadata", None) or {}, ObjectMeta, "metadata")
    except InvalidObject as error:
        raise refused(invalid(kind.qualified, name, error.errors), kind, name) from error
    return JsonObject(metadata, with_defaults(kind, content))


def validate(kind: Kind, item: Object) -> None:
    """Raise ApiError 422 if the object is wrong in itself; a pod is checked later, as admission made it."""
    errors: tuple[FieldError, ...]
    check = _VALIDATION.get(kind.resource)
    if check is not None:
        errors = check(item)
    else:
        errors = tuple(metadata_errors(item.metadata, namespaced=kind.namespaced))
        if isinstance(item, JsonObject):
            errors += tuple(content_errors(kind, item.metadata, item.content))
    if errors:
        name = item.metadata.name
        raise refused(invalid(kind.qualified, name, errors), kind, name)


def as_new(kind: Kind, item: Object) -> Object:
    """Return an object without the status that its writer gave it: a new one has none yet."""
    if kind is POD:
        status = PodStatus(phase="Pending", qos_class=str(qos_class(item)))
        return structs.replace(item, status=status)
    if kind is PERSISTENT_VOLUME_CLAIM:
        return structs.replace(item, status=PersistentVolumeClaimStatus(phase="Pending"))
    if kind is SERVICE:
        return structs.replace(item, status=ServiceStatus(), spec=_service_spec(item.spec))
    if isinstance(item, JsonObject) and kind.has_status and kind is not NAMESPACE:
        return replace(item, content={key: part for key, part in item.content.items() if key != "status"})
    return item


def _service_spec(spec: ServiceSpec) -> ServiceSpec:
    ports = tuple(
        structs.replace(
            port,
            protocol=port.protocol or "TCP",
            target_port=port.port if port.target_port is None else port.target_port,
        )
        for port in spec.ports
    )
    return structs.replace(
        spec, ports=ports, type=spec.type or "ClusterIP", session_affinity=spec.session_affinity or "None"
    )


def with_metadata(item: Object, **changes: object) -> Object:
    """Return the object with some of its metadata changed."""
    metadata = structs.replace(item.metadata, **changes)
    if isinstance(item, JsonObject):
        return replace(item, metadata=metadata)
    return structs.replace(item, metadata=metadata)


def encode(kind: Kind, item: Object, version: int) -> bytes:
    """Write an object out as it is stored under a resource version."""
    item = with_metadata(item, resource_version=str(version))
    if isinstance(item, JsonObject):
        head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": to_builtins(item.metadata)}
        return msgspec.json.encode({**head, **item.content})
    if kind.object_type is None or (body := to_json(item)).startswith(b'{"apiVersion"'):
        return body
    # The manifest decoder does not know every kind.
    head_text = f'{{"apiVersion":"{kind.api_version}","kind":"{kind.kind}",'
    return head_text.encode() + body[1:]


def stored(kind: Kind, body: bytes) -> Object:
    """Read an object that was stored."""
    if kind.object_type is not None:
        typed: ApiObject = from_json(body, kind.object_type)
        return typed
    plain = to_plain(body)
    metadata = from_builtins(plain["metadata"], ObjectMeta)
    return JsonObject(
        metadata, {k: v for k, v in plain.items() if k not in ("apiVersion", "kind", "metadata")}
    )


def readable(kind: Kind, rows: Iterable[tuple[Key, bytes]]) -> Iterator[tuple[Key, Object]]:
    """Read stored objects; what cannot be read (another version wrote it) is reported and left out."""
    for key, body in rows:
        try:
            yield key, stored(kind, body)
        except (InvalidObject, msgspec.DecodeError) as error:
            logger.error("%s %s/%s cannot be read and is left out: %s", *key, error)


def to_plain(body: bytes) -> Json:
    """Return a stored object as JSON."""
    plain: Json = msgspec.json.decode(body)
    return plain


def _name(content: Mapping[str, Any]) -> str:
    metadata = content.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""
