"""`nodeagent get`: pods, nodes and events of a running agent, as tables or as data."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nodeagent.api.ages import UNKNOWN, age, moment
from nodeagent.api.event import Event
from nodeagent.api.node import Node
from nodeagent.api.pod import Pod
from nodeagent.api.pod_state import pod_state
from nodeagent.api.qos import qos_class
from nodeagent.cli.client import DEFAULT_SERVER, AgentClient
from nodeagent.cli.common import CommandError, add_output_option, print_data
from nodeagent.cli.cpus import CGROUP_ROOT, CpuLookup
from nodeagent.cli.objects import Fetched, fetch_events, fetch_nodes, fetch_pods, goes_by, last_seen
from nodeagent.cli.table import NONE, columns

HELP = "list pods, nodes or events of the running agent"
EXAMPLES = """
  nodeagent get pods
  nodeagent get pods -o wide               with IP, node, QoS class and CPUs
  nodeagent get pods web -n shop -o yaml
  nodeagent get nodes -o json
  nodeagent get events
"""

KINDS = {
    **dict.fromkeys(("pods", "pod", "po"), "pods"),
    **dict.fromkeys(("nodes", "node", "no"), "nodes"),
    **dict.fromkeys(("events", "event", "ev"), "events"),
}
_DEFAULT_NAMESPACE = "default"
_ROLE_LABEL = "node-role.kubernetes.io/"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=sorted(KINDS), metavar="pods|nodes|events")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("-n", "--namespace", help="only this namespace; default: all of them")
    parser.add_argument(
        "-A", "--all-namespaces", action="store_true", help="show the namespace even where all are 'default'"
    )
    add_output_option(parser, "wide", "json", "yaml", "name")
    add_server_options(parser)


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add `--server`, and `--cgroup-root` for what is read from the tree beside it."""
    parser.add_argument(
        "--server", default=DEFAULT_SERVER, help="the agent's read-only server; default: %(default)s"
    )
    parser.add_argument(
        "--cgroup-root",
        type=Path,
        default=CGROUP_ROOT,
        metavar="DIR",
        help="cgroup mount; default: %(default)s",
    )


def run(arguments: argparse.Namespace) -> int:
    client = AgentClient(arguments.server)
    kind = KINDS[arguments.kind]
    found: Sequence[Fetched[Any]]
    if kind == "pods":
        found = _named(fetch_pods(client, arguments.namespace), kind, arguments.names)
    elif kind == "nodes":
        found = _named(fetch_nodes(client), kind, arguments.names)
    else:
        found = _named(fetch_events(client, arguments.namespace), kind, arguments.names)
    if arguments.output in ("json", "yaml"):
        print_data(_as_data(found, single=len(arguments.names) == 1), arguments.output)
    elif arguments.output == "name":
        for item in found:
            print(f"{kind.removesuffix('s')}/{item.value.metadata.name}")
    elif not found:
        where = f" in namespace {arguments.namespace}" if arguments.namespace else ""
        print(f"No {kind} found{where}.")
    else:
        print(_table(kind, [item.value for item in found], arguments))
    return 0


def _named(found: Sequence[Fetched[Any]], kind: str, names: Sequence[str]) -> Sequence[Fetched[Any]]:
    def means(item: Fetched[Any], name: str) -> bool:
        return goes_by(item.value, name) if kind == "pods" else item.value.metadata.name == name

    missing = [name for name in names if not any(means(item, name) for item in found)]
    if missing:
        known = sorted({item.value.metadata.name for item in found})
        there = f"there are {', '.join(known)}" if known else "there are none"
        raise CommandError(f"{kind} {', '.join(missing)} not found; {there}")
    return [item for item in found if not names or any(means(item, name) for name in names)]


def _as_data(found: Sequence[Fetched[Any]], *, single: bool) -> dict[str, Any]:
    if single and len(found) == 1:
        return found[0].raw
    return {"apiVersion": "v1", "kind": "List", "items": [item.raw for item in found]}


def _table(kind: str, objects: Sequence[Any], arguments: argparse.Namespace) -> str:
    wide, now = arguments.output == "wide", datetime.now(UTC)
    if kind == "nodes":
        return node_table(objects, now, wide=wide)
    namespaces = {item.metadata.namespace for item in objects}
    named = arguments.all_namespaces or (not arguments.namespace and namespaces != {_DEFAULT_NAMESPACE})
    if kind == "events":
        return event_table(objects, now, wide=wide, with_namespace=named)
    lookup = CpuLookup(arguments.cgroup_root) if wide else None
    return pod_table(objects, now, lookup, with_namespace=named)


def pod_table(
    pods: Sequence[Pod], now: datetime, lookup: CpuLookup | None = None, *, with_namespace: bool = False
) -> str:
    """The pods as kubectl lists them; a lookup of CPUs makes the table wide."""
    header = ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    rows = []
    for pod in pods:
        state = pod_state(pod, now)
        born = moment(pod.metadata.creation_timestamp or pod.status.start_time)
        row = [pod.metadata.name, state.ready, state.status, state.restarts, age(born, now)]
        if lookup is not None:
            node = pod.spec.node_name or NONE
            row += [pod.status.pod_ip or NONE, node, str(qos_class(pod)), lookup.cpus(pod)]
        rows.append([pod.metadata.namespace, *row] if with_namespace else row)
    header += ["IP", "NODE", "QOS", "CPUS"] if lookup is not None else []
    return columns(["NAMESPACE", *header] if with_namespace else header, rows)


def node_table(nodes: Sequence[Node], now: datetime, *, wide: bool = False) -> str:
    """The nodes as kubectl lists them; wide adds where and what they are."""
    header = ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    rows = []
    for node in nodes:
        born, info = moment(node.metadata.creation_timestamp), node.status.node_info
        row = [
            node.metadata.name,
            node_status(node),
            node_roles(node),
            age(born, now),
            info.kubelet_version or UNKNOWN,
        ]
        if wide:
            address = next((a.address for a in node.status.addresses if a.type == "InternalIP"), NONE)
            row += [address, info.os_image or UNKNOWN, info.kernel_version or UNKNOWN]
            row += [info.container_runtime_version or UNKNOWN]
        rows.append(row)
    header += ["INTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"] if wide else []
    return columns(header, rows)


def node_status(node: Node) -> str:
    """Ready or NotReady, then what limits the node at the moment."""
    conditions = {condition.type: condition.status for condition in node.status.conditions}
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    limits = [pressure for pressure in _PRESSURES if conditions.get(pressure) == "True"]
    return ",".join([ready, *limits, *(["SchedulingDisabled"] if node.spec.unschedulable else [])])


def node_roles(node: Node) -> str:
    """The roles in the node's labels."""
    roles = sorted(
        label.removeprefix(_ROLE_LABEL) for label in node.metadata.labels if label.startswith(_ROLE_LABEL)
    )
    return ",".join(roles) or NONE


def event_table(
    events: Sequence[Event], now: datetime, *, wide: bool = False, with_namespace: bool = False
) -> str:
    """The events as kubectl lists them, oldest first."""
    header = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    rows = []
    for event in events:
        about = event.involved_object
        row = [
            age(moment(last_seen(event)), now),
            event.type or "Normal",
            event.reason or NONE,
            f"{(about.kind or 'object').lower()}/{about.name or NONE}",
            " ".join((event.message or "").split()),
        ]
        if wide:
            row += [str(event.count or 1), event.source.component or event.reporting_component or NONE]
        rows.append([event.metadata.namespace, *row] if with_namespace else row)
    header += ["COUNT", "SOURCE"] if wide else []
    return columns(["NAMESPACE", *header] if with_namespace else header, rows)
