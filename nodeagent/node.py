"""The Node object as kubelet writes it: what the machine has, what pods may use, how it stands."""

import os
import platform
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from nodeagent import __version__
from nodeagent.api.meta import ObjectMeta, format_time, parse_time
from nodeagent.api.node import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)
from nodeagent.api.quantity import ResourceList
from nodeagent.config import Config
from nodeagent.eviction.signals import Condition

LONGEST_SILENCE_SECONDS = 300
KUBELET_VERSION = "v1.36.2"
MACHINE_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# Condition -> (reason and message when it is false, reason and message when it is true).
_WORDS: Mapping[Condition, tuple[str, str, str, str]] = {
    Condition.MEMORY_PRESSURE: (
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
        "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available",
    ),
    Condition.DISK_PRESSURE: (
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
        "KubeletHasDiskPressure",
        "kubelet has disk pressure",
    ),
    Condition.PID_PRESSURE: (
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
        "KubeletHasInsufficientPID",
        "kubelet has insufficient PID available",
    ),
}
_READY_WORDS = (
    "KubeletNotReady",
    "node is shutting down",
    "KubeletReady",
    "nodeagent is posting ready status",
)
_TAINTS = {
    Condition.MEMORY_PRESSURE: "node.kubernetes.io/memory-pressure",
    Condition.DISK_PRESSURE: "node.kubernetes.io/disk-pressure",
    Condition.PID_PRESSURE: "node.kubernetes.io/pid-pressure",
}


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What does not change while the agent runs."""

    name: str
    address: str
    labels: Mapping[str, str]
    capacity: ResourceList
    allocatable: ResourceList
    system: NodeSystemInfo
    port: int
    started: datetime


def read_node_facts(
    config: Config, capacity: ResourceList, allocatable: ResourceList, started: datetime
) -> NodeFacts:
    """Look up what the node is called, where it is, and what it runs on."""
    own = config.agent
    return NodeFacts(
        name=own.node_name,
        address=node_address(),
        labels=node_labels(own.node_name, own.node_labels),
        capacity=capacity,
        allocatable=allocatable,
        system=read_system_info(),
        port=config.kubelet.read_only_port,
        started=started,
    )


def node_object(
    facts: NodeFacts,
    pressures: Iterable[Condition],
    before: Node | None,
    now: datetime,
    *,
    shutting_down: bool = False,
) -> Node:
    """Return the Node as it stands now; transition times move only where `before` said otherwise."""
    pressures = frozenset(pressures)
    known = {condition.type: condition for condition in before.status.conditions} if before else {}
    conditions = [
        _condition(str(kind), kind in pressures, _WORDS[kind], known.get(str(kind)), now) for kind in _WORDS
    ]
    conditions.append(_condition("Ready", not shutting_down, _READY_WORDS, known.get("Ready"), now))
    return Node(
        metadata=ObjectMeta(
            name=facts.name,
            uid=facts.name,
            labels=dict(facts.labels),
            creation_timestamp=format_time(facts.started),
        ),
        spec=NodeSpec(
            taints=tuple(
                Taint(key=_TAINTS[kind], effect="NoSchedule") for kind in _WORDS if kind in pressures
            )
        ),
        status=NodeStatus(
            capacity=dict(facts.capacity),
            allocatable=dict(facts.allocatable),
            conditions=tuple(conditions),
            addresses=(
                NodeAddress(type="InternalIP", address=facts.address),
                NodeAddress(type="Hostname", address=facts.name),
            ),
            daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=facts.port)),
            node_info=facts.system,
        ),
    )


def is_worth_telling(told: Node | None, node: Node) -> bool:
    """Whether more than the heartbeat has changed since the Node was told, or five minutes have passed."""
    if told is None or _without_heartbeats(told) != _without_heartbeats(node):
        return True
    beats = (each.status.conditions[0].last_heartbeat_time for each in (told, node))
    before, now = (parse_time(beat) if beat else None for beat in beats)
    return before is None or now is None or (now - before).total_seconds() >= LONGEST_SILENCE_SECONDS


def _without_heartbeats(node: Node) -> Node:
    conditions = tuple(replace(each, last_heartbeat_time=None) for each in node.status.conditions)
    return replace(node, status=replace(node.status, conditions=conditions))


def node_labels(name: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that kubelet gives a node, and the configured ones over them."""
    architecture = MACHINE_ARCHITECTURES.get(platform.machine(), platform.machine())
    return {
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        **own,
    }


def read_system_info(root: Path = Path("/")) -> NodeSystemInfo:
    """Read what identifies the machine and its software; what cannot be read is left empty."""
    os_release = _assignments(_text(root / "etc/os-release"))
    return NodeSystemInfo(
        architecture=MACHINE_ARCHITECTURES.get(platform.machine(), platform.machine()),
        boot_id=_text(root / "proc/sys/kernel/random/boot_id").strip(),
        container_runtime_version=f"nodeagent://{__version__}",
        kernel_version=os.uname().release,
        kubelet_version=KUBELET_VERSION,
        machine_id=_text(root / "etc/machine-id").strip(),
        operating_system="linux",
        os_image=os_release.get("PRETTY_NAME", ""),
        system_uuid=_text(root / "sys/class/dmi/id/product_uuid").strip(),
    )


def node_address() -> str:
    """Return the address by which this machine would talk to others; loopback where it has no route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: connecting a datagram socket only asks the routing table.
            probe.connect(("192.0.2.1", 9))
            address: str = probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"
    return address


def _condition(
    kind: str, holds: bool, words: tuple[str, str, str, str], before: NodeCondition | None, now: datetime
) -> NodeCondition:
    status = "True" if holds else "False"
    changed = before is None or before.status != status
    stamp = format_time(now)
    return NodeCondition(
        type=kind,
        status=status,
        reason=words[2] if holds else words[0],
        message=words[3] if holds else words[1],
        last_heartbeat_time=stamp,
        last_transition_time=stamp if before is None or changed else before.last_transition_time,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _assignments(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name: value.strip('"') for name, _, value in pairs}
