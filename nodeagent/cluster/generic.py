"""Kinds without a type of their own: the defaults that clients show, and the little that must hold."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from nodeagent.api import names
from nodeagent.api.errors import FieldError, invalid, not_supported, required
from nodeagent.api.meta import ObjectMeta
from nodeagent.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, Kind

Json = dict[str, Any]

NAME_LABEL = "kubernetes.io/metadata.name"
_REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
_WITH_SPEC = (*_REPLICATED, "Job", "CronJob", CUSTOM_RESOURCE_DEFINITION.kind)
_SPEC_DEFAULTS: Mapping[str, Json] = {
    "Deployment": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    },
    "ReplicaSet": {"replicas": 1},
    "ReplicationController": {"replicas": 1},
    "StatefulSet": {"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10},
    "Job": {"backoffLimit": 6, "completions": 1, "parallelism": 1, "suspend": False},
    "CronJob": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
}


def with_defaults(kind: Kind, content: Json) -> Json:
    """Return the content of an object with what the API server would fill in."""
    match kind.kind:
        case "Namespace":
            status = content.get("status")
            return {
                **content,
                "spec": content.get("spec") or {"finalizers": ["kubernetes"]},
                "status": status if status else {"phase": "Active"},
            }
        case "Secret":
            return _secret(content)
    defaults, spec = _SPEC_DEFAULTS.get(kind.kind), content.get("spec")
    if defaults is None or not isinstance(spec, dict):
        return content
    filled = {name: value for name, value in defaults.items() if spec.get(name) is None}
    return {**content, "spec": {**spec, **filled}}


def content_errors(kind: Kind, metadata: ObjectMeta, content: Json) -> Iterator[FieldError]:
    """Find what would make the object useless to those who read it here."""
    spec = content.get("spec")
    for part in ("spec", "status"):
        if not isinstance(content.get(part, {}), dict):
            yield invalid(part, content[part], "expected a mapping")
    if kind.kind in ("ConfigMap", "Secret"):
        yield from _data_errors(kind, content)
    if kind.kind not in _WITH_SPEC:
        return
    if not isinstance(spec, dict):
        if spec is None:
            yield required("spec")
        return
    if kind is CUSTOM_RESOURCE_DEFINITION:
        yield from _definition_errors(metadata, spec)
    for field in ("replicas", "parallelism", "completions", "backoffLimit"):
        value = spec.get(field)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            yield invalid(f"spec.{field}", value, "must be greater than or equal to 0")
    if kind.kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        yield from _selector_errors(spec)


def _selector_errors(spec: Json) -> Iterator[FieldError]:
    selector = spec.get("selector")
    wanted = selector.get("matchLabels") if isinstance(selector, dict) else None
    if not isinstance(selector, dict) or not selector:
        yield required("spec.selector")
        return
    template = spec.get("template")
    metadata = template.get("metadata") if isinstance(template, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    labels = labels if isinstance(labels, dict) else {}
    if wanted is not None and not isinstance(wanted, dict):
        yield invalid("spec.selector.matchLabels", wanted, "expected a mapping")
    elif wanted and any(labels.get(key) != value for key, value in wanted.items()):
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, detail)


def _definition_errors(metadata: ObjectMeta, spec: Json) -> Iterator[FieldError]:
    group, given = spec.get("group"), spec.get("names")
    named: Json = given if isinstance(given, dict) else {}
    values = {
        "spec.group": group,
        "spec.names.plural": named.get("plural"),
        "spec.names.kind": named.get("kind"),
    }
    for path, value in values.items():
        if not value:
            yield required(path)
        elif not isinstance(value, str) or (path != "spec.names.kind" and names.subdomain(value)):
            yield invalid(path, value, "expected a DNS subdomain")
        elif "." not in value and path == "spec.group":
            yield invalid(path, value, "should be a domain with at least one dot")
    if metadata.name != f"{named.get('plural')}.{group}":
        yield invalid("metadata.name", metadata.name, 'must be spec.names.plural+"."+spec.group')
    short = named.get("shortNames") or []
    if not isinstance(short, list) or not all(isinstance(each, str) for each in short):
        yield invalid("spec.names.shortNames", short, "expected a list of strings")
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        yield not_supported("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced"))
    versions = spec.get("versions")
    if not isinstance(versions, list) or not versions:
        yield required("spec.versions")
        return
    for index, version in enumerate(versions):
        name = version.get("name") if isinstance(version, dict) else None
        if not isinstance(name, str) or names.label(name):
            yield invalid(f"spec.versions[{index}].name", name, "expected a DNS label")
            continue
        columns = version.get("additionalPrinterColumns") or []
        if not isinstance(columns, list) or not all(_is_column(column) for column in columns):
            path = f"spec.versions[{index}].additionalPrinterColumns"
            yield invalid(path, columns, "expected a list of columns with name and jsonPath")


def _is_column(column: object) -> bool:
    return isinstance(column, dict) and all(isinstance(column.get(key), str) for key in ("name", "jsonPath"))


def _secret(content: Json) -> Json:
    """Fold `stringData` into `data`, as it is kept; what is no text is left for validation."""
    filled = {"type": "Opaque", **content}
    texts = filled.pop("stringData", None)
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        return {**filled, **({"stringData": texts} if texts is not None else {})}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
    data = filled.get("data")
    return {**filled, "data": {**(data if isinstance(data, dict) else {}), **encoded}}


def _data_errors(kind: Kind, content: Json) -> Iterator[FieldError]:
    for field in ("data", "binaryData", "stringData"):
        values = content.get(field)
        if values is None:
            continue
        if not isinstance(values, dict):
            yield invalid(field, values, "expected a mapping")
            continue
        for key, value in values.items():
            for fault in names.config_key(key):
                yield invalid(f"{field}[{key}]", key, fault)
            if not isinstance(value, str):
                yield invalid(f"{field}[{key}]", value, "expected a string")
            elif (field == "binaryData" or kind.kind == "Secret") and not _is_base64(value):
                yield FieldError(f"{field}[{key}]", "Invalid value", "", "expected base64")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
