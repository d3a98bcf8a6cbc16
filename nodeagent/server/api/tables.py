"""Tables with the columns that kubectl's users know (meta.k8s.io/v1)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nodeagent.api.ages import UNKNOWN, age, moment
from nodeagent.api.decode import from_builtins
from nodeagent.api.pod import Pod
from nodeagent.api.pod_state import pod_state
from nodeagent.cluster.codec import Json
from nodeagent.cluster.kinds import EVENT, Kind

NONE = "<none>"
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
Cell = str | int | bool


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, what stands in it, and whether it is shown only on request (`-o wide`)."""

    name: str
    value: Callable[[Json, datetime], Cell]
    wide: bool = False
    type: str = "string"


def table(kind: Kind, items: Iterable[Json], metadata: Json, now: datetime, include: str) -> Json:
    """Return objects as a Table; `include` says how much of each goes with its row."""
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.type,
                "format": "name" if column.name == "Name" else "",
                "description": "",
                "priority": int(column.wide),
            }
            for column in columns
        ],
        "rows": [_row(columns, item, now, include) for item in items],
    }


def columns_of(kind: Kind) -> Sequence[Column]:
    """Return a kind's columns: those known here, those of its definition, or name and age."""
    if kind is EVENT:
        return _OF_EVENTS
    known = _COLUMNS.get(kind.resource)
    if known is not None:
        return (_NAME, *known)
    if kind.columns:
        return (_NAME, *(_of_path(name, path) for name, path in kind.columns), _AGE)
    return (_NAME, _AGE)


def _row(columns: Sequence[Column], item: Json, now: datetime, include: str) -> Json:
    row: Json = {"cells": [column.value(item, now) for column in columns]}
    if include == "Object":
        row["object"] = item
    elif include != "None":
        head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        row["object"] = {**head, "metadata": item["metadata"]}
    return row


def _get(item: object, path: str) -> Any:
    for part in path.split("."):
        item = item.get(part) if isinstance(item, Mapping) else None
    return item


def _items(item: object, path: str) -> list[Json]:
    """Return the objects of a list; whatever else stands there is none."""
    found = _get(item, path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _text(name: str, path: str, wide: bool = False, default: str = NONE) -> Column:
    def value(item: Json, now: datetime) -> Cell:
        found = _get(item, path)
        return default if found in (None, "") else str(found)

    return Column(name, value, wide)


def _number(name: str, path: str, wide: bool = False) -> Column:
    def value(item: Json, now: datetime) -> Cell:
        found = _get(item, path)
        return found if isinstance(found, int) else 0

    return Column(name, value, wide, "integer")


def _size(name: str, path: str) -> Column:
    def value(item: Json, now: datetime) -> Cell:
        found = _get(item, path)
        return len(found) if isinstance(found, (list, dict)) else 0

    return Column(name, value, type="integer")


def _since(name: str, *paths: str, default: str = UNKNOWN) -> Column:
    def value(item: Json, now: datetime) -> Cell:
        text = next((found for path in paths if isinstance(found := _get(item, path), str)), None)
        return age(moment(text), now) if text else default

    return Column(name, value)


def _of_path(name: str, path: str) -> Column:
    """Make the column of a definition; of JSONPath, plain field paths are understood."""
    plain = path.removeprefix(".").replace("\\.", "\0")
    keys = [key.replace("\0", ".") for key in plain.split(".")]

    def value(item: Json, now: datetime) -> Cell:
        found: Any = item
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, str) and keys[-1].lower().endswith("timestamp"):
            return age(moment(found), now)
        return found if isinstance(found, (str, int, bool)) else ""

    return Column(name, value)


def _ready(item: Json, now: datetime) -> Cell:
    return f"{_get(item, 'status.readyReplicas') or 0}/{_get(item, 'spec.replicas') or 0}"


def _selector(path: str) -> Callable[[Json, datetime], Cell]:
    def value(item: Json, now: datetime) -> Cell:
        labels = _get(item, path)
        if not isinstance(labels, Mapping) or not labels:
            return NONE
        return ",".join(f"{key}={wanted}" for key, wanted in sorted(labels.items()))

    return value


def _containers(field: str) -> Callable[[Json, datetime], Cell]:
    def value(item: Json, now: datetime) -> Cell:
        containers = _items(item, "spec.template.spec.containers")
        return ",".join(str(each.get(field, "")) for each in containers)

    return value


def _template(selector: str) -> tuple[Column, ...]:
    return (
        Column("Containers", _containers("name"), wide=True),
        Column("Images", _containers("image"), wide=True),
        Column("Selector", _selector(selector), wide=True),
    )


def _pod(part: str) -> Callable[[Json, datetime], Cell]:
    def value(item: Json, now: datetime) -> Cell:
        content = {key: field for key, field in item.items() if key not in ("apiVersion", "kind")}
        return str(getattr(pod_state(from_builtins(content, Pod), now), part))

    return value


def _node_status(item: Json, now: datetime) -> Cell:
    conditions = _items(item, "status.conditions")
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    closed = ",SchedulingDisabled" if _get(item, "spec.unschedulable") else ""
    return f"{'Ready' if ready else 'NotReady'}{closed}"


def _node_address(item: Json, now: datetime) -> Cell:
    addresses = _items(item, "status.addresses")
    return next((str(each.get("address")) for each in addresses if each.get("type") == "InternalIP"), NONE)


def _roles(item: Json, now: datetime) -> Cell:
    prefix = "node-role.kubernetes.io/"
    labels = _get(item, "metadata.labels") or {}
    return ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or NONE


def _access_modes(item: Json, now: datetime) -> Cell:
    if not _get(item, "status.capacity"):
        return ""
    return ",".join(_ACCESS_MODES.get(mode, mode) for mode in _get(item, "spec.accessModes") or ())


def _ports(item: Json, now: datetime) -> Cell:
    return ",".join(map(_port, _items(item, "spec.ports"))) or NONE


def _port(port: Json) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"


def _quota(prefix: str) -> Callable[[Json, datetime], Cell]:
    def value(item: Json, now: datetime) -> Cell:
        hard, used = _get(item, "status.hard") or {}, _get(item, "status.used") or {}
        return ", ".join(
            f"{name}: {used.get(name, '0')}/{amount}"
            for name, amount in sorted(hard.items())
            if name.startswith("limits.") is (prefix == "limits.")
        )

    return value


def _object(item: Json, now: datetime) -> Cell:
    about = item.get("involvedObject", {})
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _completions(item: Json, now: datetime) -> Cell:
    wanted = _get(item, "spec.completions")
    return f"{_get(item, 'status.succeeded') or 0}/{1 if wanted is None else wanted}"


def _job_status(item: Json, now: datetime) -> Cell:
    conditions = _items(item, "status.conditions")
    for kind in ("Complete", "Failed", "Suspended"):
        if any(each.get("type") == kind and each.get("status") == "True" for each in conditions):
            return kind
    return "Running"


def _duration(item: Json, now: datetime) -> Cell:
    found = (_get(item, f"status.{name}Time") for name in ("start", "completion"))
    start, end = (moment(text) if isinstance(text, str) else None for text in found)
    return age(start, end or now) if start else ""


_NAME = Column("Name", lambda item, now: str(item["metadata"].get("name", "")))
_AGE = _since("Age", "metadata.creationTimestamp")
_OF_EVENTS = (
    _since("Last Seen", "lastTimestamp", "eventTime", "firstTimestamp", "metadata.creationTimestamp"),
    _text("Type", "type"),
    _text("Reason", "reason"),
    Column("Object", _object),
    _text("Subobject", "involvedObject.fieldPath", wide=True, default=""),
    _text("Source", "source.component", wide=True),
    _text("Message", "message"),
    Column("First Seen", _since("First Seen", "firstTimestamp").value, wide=True),
    _number("Count", "count", wide=True),
    Column("Name", _NAME.value, wide=True),
)
_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "pods": (
        Column("Ready", _pod("ready")),
        Column("Status", _pod("status")),
        Column("Restarts", _pod("restarts")),
        _AGE,
        _text("IP", "status.podIP", wide=True),
        _text("Node", "spec.nodeName", wide=True),
        _text("Nominated Node", "status.nominatedNodeName", wide=True),
        Column("Readiness Gates", lambda item, now: NONE, wide=True),
    ),
    "namespaces": (_text("Status", "status.phase"), _AGE),
    "nodes": (
        Column("Status", _node_status),
        Column("Roles", _roles),
        _AGE,
        _text("Version", "status.nodeInfo.kubeletVersion"),
        Column("Internal-IP", _node_address, wide=True),
        Column("External-IP", lambda item, now: NONE, wide=True),
        _text("OS-Image", "status.nodeInfo.osImage", wide=True),
        _text("Kernel-Version", "status.nodeInfo.kernelVersion", wide=True),
        _text("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", wide=True),
    ),
    "limitranges": (_text("Created At", "metadata.creationTimestamp"),),
    "resourcequotas": (Column("Request", _quota("")), Column("Limit", _quota("limits.")), _AGE),
    "priorityclasses.scheduling.k8s.io": (
        _number("Value", "value"),
        Column("Global-Default", lambda item, now: bool(item.get("globalDefault")), type="boolean"),
        _AGE,
        _text("PreemptionPolicy", "preemptionPolicy"),
    ),
    "configmaps": (_size("Data", "data"), _AGE),
    "secrets": (_text("Type", "type"), _size("Data", "data"), _AGE),
    "serviceaccounts": (_size("Secrets", "secrets"), _AGE),
    "services": (
        _text("Type", "spec.type"),
        _text("Cluster-IP", "spec.clusterIP"),
        Column("External-IP", lambda item, now: NONE),
        Column("Port(s)", _ports),
        _AGE,
        Column("Selector", _selector("spec.selector"), wide=True),
    ),
    "persistentvolumeclaims": (
        _text("Status", "status.phase"),
        _text("Volume", "spec.volumeName", default=""),
        _text("Capacity", "status.capacity.storage", default=""),
        Column("Access Modes", _access_modes),
        _text("StorageClass", "spec.storageClassName", default=""),
        _text("VolumeAttributesClass", "spec.volumeAttributesClassName", default="<unset>"),
        _AGE,
    ),
    "deployments.apps": (
        Column("Ready", _ready),
        _number("Up-to-date", "status.updatedReplicas"),
        _number("Available", "status.availableReplicas"),
        _AGE,
        *_template("spec.selector.matchLabels"),
    ),
    "replicasets.apps": (
        _number("Desired", "spec.replicas"),
        _number("Current", "status.replicas"),
        _number("Ready", "status.readyReplicas"),
        _AGE,
        *_template("spec.selector.matchLabels"),
    ),
    "replicationcontrollers": (
        _number("Desired", "spec.replicas"),
        _number("Current", "status.replicas"),
        _number("Ready", "status.readyReplicas"),
        _AGE,
        *_template("spec.selector"),
    ),
    "statefulsets.apps": (
        Column("Ready", _ready),
        _AGE,
        Column("Containers", _containers("name"), wide=True),
        Column("Images", _containers("image"), wide=True),
    ),
    "jobs.batch": (
        Column("Status", _job_status),
        Column("Completions", _completions),
        Column("Duration", _duration),
        _AGE,
        *_template("spec.selector.matchLabels"),
    ),
    "cronjobs.batch": (
        _text("Schedule", "spec.schedule"),
        _text("Timezone", "spec.timeZone"),
        Column("Suspend", lambda item, now: str(bool(_get(item, "spec.suspend")))),
        _size("Active", "status.active"),
        _since("Last Schedule", "status.lastScheduleTime", default=NONE),
        _AGE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (_text("Created At", "metadata.creationTimestamp"),),
}
