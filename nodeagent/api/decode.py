"""Manifests to objects and back: every kind that this node knows, decoded strictly."""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from nodeagent.api.admission_configuration import AdmissionConfiguration
from nodeagent.api.base import ApiObject
from nodeagent.api.documents import read_documents
from nodeagent.api.elastic_quota import ElasticQuota
from nodeagent.api.errors import ErrorKind, FieldError, ObjectError, invalid, required
from nodeagent.api.event import Event
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.api.policy import LimitRange, PriorityClass, ResourceQuota
from nodeagent.api.typed import InvalidObject, decode_hook, encode_hook, from_builtins

__all__ = [
    "KINDS",
    "InvalidObject",
    "decode_documents",
    "decode_hook",
    "encode_hook",
    "from_builtins",
    "from_json",
    "to_builtins",
    "to_json",
]

T = TypeVar("T", bound=ApiObject)

# apiVersion and kind.
Kind = tuple[str, str]

# A further kind of object needs one line here.
KINDS: dict[Kind, type[ApiObject]] = {
    ("apiserver.config.k8s.io/v1", "AdmissionConfiguration"): AdmissionConfiguration,
    ("scheduling.k8s.io/v1", "PriorityClass"): PriorityClass,
    ("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota"): ElasticQuota,
    ("v1", "Event"): Event,
    ("v1", "LimitRange"): LimitRange,
    ("v1", "Node"): Node,
    ("v1", "Pod"): Pod,
    ("v1", "ResourceQuota"): ResourceQuota,
}
_KIND_OF: dict[type, Kind] = {type: kind for kind, type in KINDS.items()}

# The longest name that Kubernetes allows.
LONGEST_NAME = 253

_encoder = msgspec.json.Encoder(enc_hook=encode_hook)


def decode_documents(data: bytes, source: str) -> list[Any]:
    """Return the objects in `data` (YAML, JSON, several documents, Lists) in order, ObjectErrors among them.

    `source` names where the data come from and stands in the errors. Nothing in `data` raises.
    """
    results: list[Any] = []
    for index, document in enumerate(read_documents(data)):
        if document.error is not None:
            fault = FieldError("", ErrorKind.UNREADABLE, None, document.error)
            results.append(ObjectError(source, index, errors=(fault,)))
        else:
            results.extend(_Expansion(source, index).objects(document.value, "", None))
    return results


def from_json(data: bytes, type: type[T]) -> T:
    """Return one object that was written out by `to_json`; raises InvalidObject or msgspec.DecodeError."""
    plain = msgspec.json.decode(data, type=dict[str, Any])
    return from_builtins({k: part for k, part in plain.items() if k not in ("apiVersion", "kind")}, type)


def to_builtins(value: ApiObject) -> dict[str, Any]:
    """Return `value` as plain dicts, lists and scalars, beginning with apiVersion and kind if it has them."""
    plain: dict[str, Any] = msgspec.json.decode(to_json(value))
    return plain


def to_json(value: ApiObject) -> bytes:
    """Return `value` as JSON, beginning with apiVersion and kind if it has them."""
    encoded = _encoder.encode(value)
    kind = _KIND_OF.get(type(value))
    if kind is None:
        return encoded
    head = b'{"apiVersion":"%b","kind":"%b"' % (kind[0].encode(), kind[1].encode())
    return head + (b"}" if encoded == b"{}" else b"," + encoded[1:])


class _Expansion:
    """Takes one document apart into the objects in it."""

    def __init__(self, source: str, index: int) -> None:
        self._source = source
        self._index = index

    def objects(self, value: object, path: str, item_of: Kind | None) -> list[Any]:
        """Return the object in `value`, or those of its items; `item_of` is the kind that items may omit."""
        if not isinstance(value, dict):
            fault = invalid(path, value, "expected an object: a mapping with apiVersion, kind and metadata")
            return [ObjectError(self._source, self._index, errors=(fault,))]
        stated = (value.get("apiVersion"), value.get("kind"))
        kind = item_of if stated == (None, None) and item_of is not None else stated
        match kind:
            case ("v1", "List"):
                return self._items(value, path, None)
            case (str(api_version), str(name)) if (api_version, name.removesuffix("List")) in KINDS:
                if name.endswith("List"):
                    return self._items(value, path, (api_version, name.removesuffix("List")))
                return [self._object(value, path, (api_version, name))]
        faults = tuple(_kind_faults(kind[0], kind[1], path))
        return [ObjectError(self._source, self._index, _text(kind[1]), _name(value), faults)]

    def _items(self, value: dict[str, object], path: str, item_of: Kind | None) -> list[Any]:
        items = value.get("items") or []
        if not isinstance(items, list):
            fault = invalid(_child(path, "items"), items, "expected a list of objects")
            return [ObjectError(self._source, self._index, "List", errors=(fault,))]
        return [
            result
            for position, item in enumerate(items)
            for result in self.objects(item, _child(path, f"items[{position}]"), item_of)
        ]

    def _object(self, value: dict[str, object], path: str, kind: Kind) -> ApiObject | ObjectError:
        content = {key: part for key, part in value.items() if key not in ("apiVersion", "kind")}
        try:
            return from_builtins(content, KINDS[kind], path)
        except InvalidObject as error:
            return ObjectError(self._source, self._index, kind[1], _name(value), error.errors)


def _kind_faults(api_version: object, kind: object, path: str) -> Iterator[FieldError]:
    complete = True
    for name, value in (("apiVersion", api_version), ("kind", kind)):
        if value is None or value == "":
            complete = False
            yield required(_child(path, name))
        elif not isinstance(value, str):
            complete = False
            yield invalid(_child(path, name), value, "expected a string")
    if complete:
        known = ", ".join(f"{kind} ({api_version})" for api_version, kind in sorted(KINDS))
        detail = f'no kind "{kind}" in version "{api_version}" is known here; known are {known}'
        yield FieldError(_child(path, "kind"), ErrorKind.NOT_SUPPORTED, kind, detail)


def _name(value: dict[str, object]) -> str:
    """Return the name that an object gives itself, for messages."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return _text(metadata.get("name")) or _text(metadata.get("generateName"))


def _text(value: object) -> str:
    return value[:LONGEST_NAME] if isinstance(value, str) else ""


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
