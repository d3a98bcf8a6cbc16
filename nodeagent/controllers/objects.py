"""Objects as the controllers see them, and what they want done."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.cluster.kinds import Kind

Json = dict[str, Any]

HASH_LABEL = "pod-template-hash"
ENDED = ("Succeeded", "Failed")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object, for the sake of its owner."""

    kind: Kind
    object: Json


@dataclass(frozen=True, slots=True)
class Scale:
    """Give an object another number of replicas."""

    kind: Kind
    object: Json
    replicas: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object."""

    kind: Kind
    object: Json


@dataclass(frozen=True, slots=True)
class Tell:
    """Write an object's status."""

    kind: Kind
    object: Json
    status: Json


Action = Create | Scale | Delete | Tell


def uid_of(item: Json) -> str:
    return str(item["metadata"].get("uid", ""))


def is_going(item: Json) -> bool:
    return "deletionTimestamp" in item["metadata"]


def controller_of(item: Json) -> Json | None:
    """Return the reference to the object that manages this one."""
    references: list[Json] = item["metadata"].get("ownerReferences", [])
    return next((each for each in references if each.get("controller")), None)


def owned_by(owner: Json, items: Iterable[Json]) -> list[Json]:
    """Return what an object manages, oldest first."""
    uid = uid_of(owner)
    found = [each for each in items if (reference := controller_of(each)) and reference.get("uid") == uid]
    return sorted(
        found, key=lambda each: (each["metadata"].get("creationTimestamp", ""), each["metadata"]["name"])
    )


def _age(item: Json) -> tuple[str, str]:
    return item["metadata"].get("creationTimestamp", ""), item["metadata"]["name"]


def reference_to(kind: Kind, owner: Json) -> Json:
    """Return what a managed object says of its manager."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def from_template(
    kind: Kind, owner: Json, template: Mapping[str, Any], labels: Mapping[str, str], name: str = ""
) -> Json:
    """Return a pod of a template; without `name` the API gives one that begins with its owner's."""
    meta: Mapping[str, Any] = template.get("metadata") or {}
    own = owner["metadata"]
    metadata: Json = {
        "namespace": own["namespace"],
        "labels": {**(meta.get("labels") or {}), **labels},
        "annotations": dict(meta.get("annotations") or {}),
        "ownerReferences": [reference_to(kind, owner)],
    }
    metadata |= {"name": name} if name else {"generateName": f"{own['name']}-"}
    return {"metadata": metadata, "spec": dict(template.get("spec") or {})}


def template_hash(template: Mapping[str, Any]) -> str:
    """Return a short name for what a template says."""
    number = int.from_bytes(hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()[:8])
    letters = []
    for _ in range(10):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(letters)


def is_ready(pod: Json) -> bool:
    conditions: list[Json] = pod.get("status", {}).get("conditions", [])
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def phase_of(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))
