"""The node in full, laid out as `kubectl describe node` does."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from nodeagent.api.ages import age, moment
from nodeagent.api.event import Event
from nodeagent.api.node import Node, Taint
from nodeagent.api.pod import Pod
from nodeagent.api.quantity import ZERO, Quantity
from nodeagent.api.resources import amount, pod_limits, pod_requests
from nodeagent.cli.describe_pod import describe_events
from nodeagent.cli.get import node_roles
from nodeagent.cli.layout import Block, Entry, given, pairs, render
from nodeagent.cli.table import NONE, columns

_TERMINAL = ("Succeeded", "Failed")
_COUNTED = ("cpu", "memory")


def describe_node(node: Node, pods: Sequence[Pod], events: Sequence[Event], now: datetime) -> str:
    """Everything an operator asks about the node."""
    meta, status, info = node.metadata, node.status, node.status.node_info
    head: list[Entry] = [
        ("Name", meta.name),
        ("Roles", node_roles(node)),
        ("Labels", pairs(meta.labels)),
        ("Annotations", pairs(meta.annotations, ": ")),
        ("CreationTimestamp", meta.creation_timestamp or NONE),
        ("Taints", [_taint(taint) for taint in node.spec.taints]),
        ("Unschedulable", str(node.spec.unschedulable).lower()),
    ]
    system = given(
        ("Machine ID", info.machine_id),
        ("Boot ID", info.boot_id),
        ("Kernel Version", info.kernel_version),
        ("OS Image", info.os_image),
        ("Operating System", info.operating_system),
        ("Architecture", info.architecture),
        ("Container Runtime Version", info.container_runtime_version),
        ("Kubelet Version", info.kubelet_version),
    )
    tail: list[Entry] = [
        ("Addresses", Block((address.type, address.address) for address in status.addresses)),
        ("Capacity", _amounts(status.capacity)),
        ("Allocatable", _amounts(status.allocatable)),
        ("System Info", Block(system)),
    ]
    active = [pod for pod in pods if pod.status.phase not in _TERMINAL]
    parts = [render(head), _conditions(node), render(tail), _pods(node, active, now), _totals(node, active)]
    return "\n".join([*parts, describe_events(events, now)])


def _conditions(node: Node) -> str:
    header = ["Type", "Status", "LastHeartbeatTime", "LastTransitionTime", "Reason", "Message"]
    rows = [
        [
            c.type,
            c.status,
            c.last_heartbeat_time or NONE,
            c.last_transition_time or NONE,
            c.reason or "",
            c.message or "",
        ]
        for c in node.status.conditions
    ]
    return "Conditions:\n" + columns(header, rows, indent="  ")


def _amounts(amounts: Mapping[str, Quantity]) -> Block:
    return Block((name, str(quantity)) for name, quantity in sorted(amounts.items()))


def _pods(node: Node, pods: Sequence[Pod], now: datetime) -> str:
    header = ["Namespace", "Name", "CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "Age"]
    rows = []
    for pod in pods:
        requests, limits = pod_requests(pod), pod_limits(pod)
        shares = [_share(node, name, amount(kind, name)) for name in _COUNTED for kind in (requests, limits)]
        born = moment(pod.metadata.creation_timestamp or pod.status.start_time)
        rows.append([pod.metadata.namespace, pod.metadata.name, *shares, age(born, now)])
    return f"Non-terminated Pods:  ({len(rows)} in total)\n" + columns(header, rows, indent="  ")


def _totals(node: Node, pods: Sequence[Pod]) -> str:
    names = [*_COUNTED, *sorted(n for n in node.status.allocatable if n not in (*_COUNTED, "pods"))]
    rows = []
    for name in names:
        asked = sum((amount(pod_requests(pod), name) for pod in pods), ZERO)
        limit = sum((amount(pod_limits(pod), name) for pod in pods), ZERO)
        rows.append([name, _share(node, name, asked), _share(node, name, limit)])
    return "Allocated resources:\n" + columns(["Resource", "Requests", "Limits"], rows, indent="  ")


def _share(node: Node, name: str, quantity: Quantity) -> str:
    whole = amount(node.status.allocatable, name).milli_value()
    return f"{quantity} ({100 * quantity.milli_value() // whole if whole else 0}%)"


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
