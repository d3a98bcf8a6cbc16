"""Objects as the agent's server gives them, with the JSON they came in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nodeagent.api.base import ApiObject
from nodeagent.api.decode import InvalidObject, from_builtins
from nodeagent.api.event import Event
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError

T = TypeVar("T", bound=ApiObject)


@dataclass(frozen=True, slots=True)
class Fetched(Generic[T]):
    """One object, and the JSON it was made of."""

    value: T
    raw: dict[str, Any]


def fetch_pods(client: AgentClient, namespace: str | None = None) -> list[Fetched[Pod]]:
    """All pods, or those of a namespace, by namespace and name."""
    path = ("namespaces", namespace, "pods") if namespace else ("pods",)
    pods = _list(client.get("api", "v1", *path), "Pod", Pod)
    return sorted(pods, key=lambda pod: (pod.value.metadata.namespace, pod.value.metadata.name))


def fetch_pod(client: AgentClient, namespace: str, name: str) -> Fetched[Pod]:
    """One pod. Raises CommandError when there is none."""
    for pod in fetch_pods(client, namespace):
        if goes_by(pod.value, name):
            return pod
    return _object(client.get("api", "v1", "namespaces", namespace, "pods", name), "Pod", Pod)


def goes_by(pod: Pod, name: str) -> bool:
    """Whether a name means this pod: its own, or that of its manifest, to which the node's was added."""
    return pod.metadata.name in (name, f"{name}-{pod.spec.node_name}")


def fetch_nodes(client: AgentClient) -> list[Fetched[Node]]:
    """The nodes: this one."""
    return _list(client.get("api", "v1", "nodes"), "Node", Node)


def fetch_events(client: AgentClient, namespace: str | None = None) -> list[Fetched[Event]]:
    """All events, or those of a namespace, oldest first."""
    path = ("namespaces", namespace, "events") if namespace else ("events",)
    return sorted(
        _list(client.get("api", "v1", *path), "Event", Event), key=lambda e: last_seen(e.value) or ""
    )


def events_about(events: Iterable[Fetched[Event]], kind: str, namespace: str, name: str) -> list[Event]:
    """The events whose object is the one named; a node's events can be in any namespace."""
    return [
        event.value
        for event in events
        if event.value.involved_object.kind == kind
        and event.value.involved_object.name == name
        and namespace in ("", event.value.involved_object.namespace)
    ]


def last_seen(event: Event) -> str | None:
    """When an event happened last, as RFC 3339 text."""
    series = event.series.last_observed_time if event.series else None
    return series or event.last_timestamp or event.event_time or event.first_timestamp


def _list(answer: dict[str, Any], kind: str, wanted: type[T]) -> list[Fetched[T]]:
    items = answer.get("items")
    if not isinstance(items, list):
        raise CommandError(f"the server did not answer with a list of {kind}s; is it a nodeagent?")
    return [_object(item, kind, wanted) for item in items]


def _object(raw: Any, kind: str, wanted: type[T]) -> Fetched[T]:
    if not isinstance(raw, dict):
        raise CommandError(f"the server did not answer with a {kind}; is it a nodeagent?")
    content = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
    try:
        value = from_builtins(content, wanted)
    except InvalidObject as error:
        raise CommandError(
            f"the server's answer is not a {kind} as this version knows it: {error}"
        ) from error
    return Fetched(value, {"apiVersion": "v1", "kind": kind, **content})
