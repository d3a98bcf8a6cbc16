"""Label and field selectors as a URL spells them: `app=web,tier in (a,b),!old` and `status.phase!=Failed`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.cluster.errors import bad_request
from nodeagent.cluster.kinds import Kind

LONGEST_SELECTOR = 4096
_REQUIREMENT = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<absent_key>[\w./-]+)"
    r"|(?P<key>[\w./-]+)\s*(?:(?P<operator>==|=|!=|<|>)\s*(?P<value>[\w.-]*)"
    r"|\s(?P<set>in|notin)\s*\((?P<values>[\w.,\s-]*)\))?)\s*(?:,|$)"
)
_EVERYWHERE = ("metadata.name", "metadata.namespace")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "jobs.batch": ("status.successful",),
    "replicasets.apps": ("status.replicas",),
    "replicationcontrollers": ("status.replicas",),
}

Matches = Callable[[Mapping[str, Any]], bool]
"""Whether an object, as JSON, is selected."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
        return value is not None and _is_beyond(value, self.operator, next(iter(self.values)))


def label_selector(text: str) -> tuple[Requirement, ...]:
    """Read a label selector; raises ApiError 400."""
    if len(text) > LONGEST_SELECTOR:
        raise bad_request(f"a label selector may have at most {LONGEST_SELECTOR} characters")
    found: list[Requirement] = []
    position = 0
    while position < len(text):
        match = _REQUIREMENT.match(text, position)
        if match is None or match.end() == position:
            raise bad_request(f"unable to parse requirement: {text[position : position + 100]!r}")
        position = match.end()
        found.append(_requirement(match))
    return tuple(found)


def matcher(kind: Kind, labels: str, fields: str) -> Matches | None:
    """Return what selects objects, None where everything is; raises ApiError 400."""
    requirements = label_selector(labels)
    conditions = _field_conditions(kind, fields)
    if not requirements and not conditions:
        return None

    def matches(plain: Mapping[str, Any]) -> bool:
        own = plain["metadata"].get("labels", {})
        return all(each.holds(own) for each in requirements) and all(
            (field_text(plain, path) == value) is wanted for path, value, wanted in conditions
        )

    return matches


def field_text(plain: Mapping[str, Any], path: str) -> str:
    """Return a field as a selector compares it; what is not there is empty, or false for a switch."""
    value: Any = plain
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if path == "source":
        value = plain.get("source", {}).get("component")
    if path in ("spec.hostNetwork", "spec.unschedulable"):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent_key"], "absent", frozenset())
    key = match["key"]
    if match["set"]:
        return Requirement(key, match["set"], frozenset(part.strip() for part in match["values"].split(",")))
    operator = match["operator"]
    if operator is None:
        return Requirement(key, "exists", frozenset())
    name = {"=": "in", "==": "in", "!=": "notin"}.get(operator, operator)
    return Requirement(key, name, frozenset((match["value"],)))


def _is_beyond(value: str, operator: str, bound: str) -> bool:
    if not (value.lstrip("-").isdecimal() and bound.lstrip("-").isdecimal()):
        return False
    return int(value) > int(bound) if operator == ">" else int(value) < int(bound)


def _field_conditions(kind: Kind, text: str) -> list[tuple[str, str, bool]]:
    if len(text) > LONGEST_SELECTOR:
        raise bad_request(f"a field selector may have at most {LONGEST_SELECTOR} characters")
    conditions = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"([\w.]+)(==|=|!=)(.*)", part, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: {part[:100]!r}; can't understand it")
        path, operator, value = match.groups()
        if path not in (*_EVERYWHERE, *_FIELDS.get(kind.resource, ())):
            raise bad_request(f"field label not supported: {path}")
        conditions.append((path, value, operator != "!="))
    return conditions
