"""Patches: JSON (RFC 6902), merge (RFC 7386) and Kubernetes' strategic merge; pure."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from nodeagent.cluster.codec import Json
from nodeagent.cluster.errors import ApiError, bad_request

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
MOST_OPERATIONS = 10_000
DEEPEST = 100

# Lists whose items are told apart by a field, as the API's types say (`patchMergeKey`).
_MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "secrets": ("name",),
    "taints": ("key",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_SET_LISTS = ("finalizers",)
_DIRECTIVE = "$patch"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def apply_patch(content_type: str, target: Json, patch: object) -> Json:
    """Return what a patch makes of an object; raises ApiError 400, 415 or 422."""
    if content_type == JSON_PATCH:
        return _object(json_patch(target, patch))
    if not isinstance(patch, dict):
        raise bad_request("a merge patch is a JSON object")
    if content_type == MERGE_PATCH:
        return _object(merge(target, patch))
    if content_type == STRATEGIC_MERGE_PATCH:
        return _object(strategic_merge(target, patch))
    if content_type.startswith("application/apply-patch"):
        why = (
            "server-side apply is not done here: use client-side apply (kubectl apply without --server-side)"
        )
        raise ApiError(415, "UnsupportedMediaType", why)
    known = ", ".join((JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH))
    message = f"the body of the request was in an unknown format - accepted media types include: {known}"
    raise ApiError(415, "UnsupportedMediaType", message)


def merge(target: object, patch: object, depth: int = 0) -> object:
    """Merge as RFC 7386 says: a null removes."""
    if not isinstance(patch, dict):
        return patch
    _limit(depth)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value, depth + 1)
    return result


def strategic_merge(target: object, patch: object, depth: int = 0) -> object:
    """Merge objects field by field, and lists that have a merge key item by item."""
    if not isinstance(patch, dict):
        return patch
    _limit(depth)
    directive = patch.get(_DIRECTIVE)
    plain = {key: value for key, value in patch.items() if not key.startswith("$")}
    if directive == "replace":
        return plain
    if directive == "delete":
        return {}
    result = dict(target) if isinstance(target, dict) else {}
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in plain.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, list):
            result[key] = _merged_list(key, result.get(key), value, depth + 1)
        else:
            result[key] = strategic_merge(result.get(key), value, depth + 1)
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM) and isinstance(value, list):
            field = key.removeprefix(_DELETE_FROM)
            result[field] = [item for item in result.get(field) or [] if item not in value]
        if key.startswith(_ORDER) and isinstance(value, list):
            field = key.removeprefix(_ORDER)
            if isinstance(result.get(field), list):
                result[field] = _ordered(field, result[field], value)
    return result


def json_patch(target: Json, patch: object) -> object:
    """Apply operations one after another, all or none."""
    if not isinstance(patch, list) or len(patch) > MOST_OPERATIONS:
        raise bad_request(f"a JSON patch is a list of at most {MOST_OPERATIONS} operations")
    document: object = copy.deepcopy(target)
    for index, operation in enumerate(patch):
        if not isinstance(operation, dict):
            raise bad_request(f"operation {index} of the JSON patch is no object")
        document = _operated(document, operation)
    return document


def _operated(document: object, operation: Json) -> object:
    name, path = operation.get("op"), _pointer(operation.get("path"))
    match name:
        case "add":
            return _changed(
                document, path, lambda part, key: _add(part, key, operation.get("value")), operation
            )
        case "remove":
            return _changed(document, path, _remove, operation)
        case "replace":
            found = _found(document, path)
            return _changed(
                document, path, lambda part, key: _replace(part, key, operation.get("value")), found
            )
        case "test":
            if _found(document, path) != operation.get("value"):
                raise _unprocessable(f"testing path {operation.get('path')} failed")
            return document
        case "move" | "copy":
            origin = _pointer(operation.get("from"))
            value = copy.deepcopy(_found(document, origin))
            if name == "move":
                document = _changed(document, origin, _remove, operation)
            return _changed(document, path, lambda part, key: _add(part, key, value), operation)
    raise bad_request(f"unknown operation in a JSON patch: {str(name)[:40]!r}")


def _changed(document: object, path: list[str], change: Callable[[Any, str], None], whole: object) -> object:
    if not path:
        return whole.get("value") if isinstance(whole, dict) else document
    change(_found(document, path[:-1]), path[-1])
    return document


def _found(document: object, path: list[str]) -> object:
    for key in path:
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            raise _unprocessable(f"the path /{'/'.join(path)[:200]} does not exist")
    return document


def _add(part: object, key: str, value: object) -> None:
    if isinstance(part, dict):
        part[key] = value
    elif isinstance(part, list) and key == "-":
        part.append(value)
    elif isinstance(part, list) and key.isdecimal() and int(key) <= len(part):
        part.insert(int(key), value)
    else:
        raise _unprocessable(f"nothing can be added at {key[:100]!r}")


def _remove(part: object, key: str) -> None:
    _found(part, [key])
    if isinstance(part, dict):
        del part[key]
    elif isinstance(part, list):
        del part[int(key)]


def _replace(part: object, key: str, value: object) -> None:
    _found(part, [key])
    if isinstance(part, dict):
        part[key] = value
    elif isinstance(part, list):
        part[int(key)] = value


def _pointer(text: object) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise bad_request(f"not a JSON pointer: {str(text)[:100]!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _merged_list(field: str, old: object, patch: list[Any], depth: int) -> list[Any]:
    _limit(depth)
    present = old if isinstance(old, list) else []
    if field in _SET_LISTS:
        return [*present, *(item for item in patch if item not in present)]
    keys = _MERGE_KEYS.get(field, ())
    key = next((key for key in keys if patch and all(isinstance(i, dict) and key in i for i in patch)), None)
    replaces = any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch)
    if replaces or key is None:
        return [item for item in patch if not (isinstance(item, dict) and _DIRECTIVE in item)]
    result = list(present)
    for item in patch:
        place = next(
            (i for i, o in enumerate(result) if isinstance(o, dict) and o.get(key) == item[key]), None
        )
        if item.get(_DIRECTIVE) == "delete":
            result = [other for index, other in enumerate(result) if index != place]
        elif place is None:
            result.append(strategic_merge({}, item, depth))
        else:
            result[place] = strategic_merge(result[place], item, depth)
    return result


def _ordered(field: str, items: list[Any], order: list[Any]) -> list[Any]:
    """Put the items that are named into the order named, the others behind them."""
    keys = _MERGE_KEYS.get(field, ())

    def place(item: object) -> int:
        for index, wanted in enumerate(order):
            if item == wanted:
                return index
            if isinstance(item, dict) and isinstance(wanted, dict):
                key = next((key for key in keys if key in wanted), None)
                if key is not None and item.get(key) == wanted[key]:
                    return index
        return len(order)

    return sorted(items, key=place)


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise _unprocessable("the patch leaves no object")
    return value


def _limit(depth: int) -> None:
    if depth > DEEPEST:
        raise bad_request(f"a patch may be nested at most {DEEPEST} levels deep")


def _unprocessable(why: str) -> ApiError:
    message = f"the server rejected our request due to an error in our request: {why}"
    return ApiError(422, "Invalid", message)
