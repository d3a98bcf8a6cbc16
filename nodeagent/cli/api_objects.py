"""Objects in files, and where the API has them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nodeagent.api.documents import read_documents
from nodeagent.cli.common import CommandError
from nodeagent.cluster.kinds import BUILT_IN, Kind
from nodeagent.sources.manifests import LARGEST_FILE_BYTES, SUFFIXES

STANDARD_INPUT = "-"
DEFAULT_NAMESPACE = "default"
Json = dict[str, Any]


def read_objects(names: list[str]) -> Iterator[Json]:
    """Yield the objects in files, in directories' manifests and on standard input, lists taken apart."""
    for name in names:
        for source, data in _texts(name):
            for document in read_documents(data):
                if document.error is not None:
                    raise CommandError(f"{source}: {document.error}")
                yield from _unpacked(document.value, source)


def kind_named(word: str) -> Kind:
    """Return the kind that a user means: pod, pods, po, deployments.apps."""
    wanted = word.lower()
    for kind in BUILT_IN:
        if wanted in (kind.kind.lower(), kind.plural, kind.resource, *kind.short_names):
            return kind
    raise CommandError(f"the server doesn't have a resource type {word!r}")


def address(kind: Kind, namespace: str, name: str = "") -> tuple[str, ...]:
    """Return the path of a kind's objects, or of one of them, in pieces."""
    root = ("apis", kind.group, kind.version) if kind.group else ("api", kind.version)
    scope = ("namespaces", namespace) if kind.namespaced else ()
    return (*root, *scope, kind.plural, *((name,) if name else ()))


def kind_of(item: Json) -> Kind:
    """Return the kind of an object; raises CommandError."""
    for kind in BUILT_IN:
        if (item.get("apiVersion"), item.get("kind")) == (kind.api_version, kind.kind):
            return kind
    raise CommandError(f"no matches for kind {item.get('kind')!r} in version {item.get('apiVersion')!r}")


def name_and_namespace(item: Json, kind: Kind, namespace: str) -> tuple[str, str]:
    """Return where an object belongs; what it says itself counts more than the command line."""
    meta = item.get("metadata") or {}
    own = meta.get("namespace") or namespace if kind.namespaced else ""
    return str(meta.get("name") or ""), str(own)


def _texts(name: str) -> Iterator[tuple[str, bytes]]:
    if name == STANDARD_INPUT:
        yield "standard input", sys.stdin.buffer.read(LARGEST_FILE_BYTES)
        return
    path = Path(name)
    files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES) if path.is_dir() else [path]
    for file in files:
        with file.open("rb") as stream:
            yield str(file), stream.read(LARGEST_FILE_BYTES)


def _unpacked(value: object, source: str) -> Iterator[Json]:
    if not isinstance(value, dict):
        raise CommandError(f"{source}: expected an object with apiVersion, kind and metadata")
    if value.get("kind") == "List" and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _unpacked(item, source)
    else:
        yield value
