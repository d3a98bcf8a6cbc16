"""State files as tables."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nodeagent.cli.client import AgentClient
from nodeagent.cli.common import CommandError
from nodeagent.cli.objects import fetch_pods
from nodeagent.cli.table import NONE, columns, size
from nodeagent.resources.checkpoint import LARGEST_FILE_BYTES

Names = Mapping[str, str]


class _Cpus(msgspec.Struct, rename="camel"):
    policy_name: str = ""
    default_cpu_set: str = ""
    # Before Kubernetes 1.18: container id -> CPUs.
    entries: dict[str, dict[str, str] | str] = {}


class _Table(msgspec.Struct, rename="camel"):
    total: int = 0
    system_reserved: int = 0
    allocatable: int = 0
    reserved: int = 0
    free: int = 0


class _Node(msgspec.Struct, rename="camel"):
    memory_map: dict[str, _Table] = {}


class _Block(msgspec.Struct, rename={"nodes": "numaAffinity", "kind": "type"}):
    nodes: tuple[int, ...] = ()
    kind: str = ""
    size: int = 0


class _Memory(msgspec.Struct, rename="camel"):
    policy_name: str = ""
    machine_state: dict[str, _Node] = {}
    entries: dict[str, dict[str, tuple[_Block, ...]]] = {}


class _Devices(msgspec.Struct):
    entries: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {}


def read_state(path: Path) -> dict[str, Any]:
    """Return a file's content, whether its checksum is right or not. Raises CommandError, OSError."""
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE_BYTES)
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CommandError(
            f"{path}: is no JSON: {error}; 'nodeagent state verify' tells what to do"
        ) from error
    if not isinstance(content, dict):
        raise CommandError(f"{path}: expected a JSON object; 'nodeagent state verify' tells what to do")
    return content


def pod_names(server: str) -> Names:
    """Return the pods' names by UID; none when no agent answers."""
    try:
        pods = [pod.value.metadata for pod in fetch_pods(AgentClient(server))]
    except CommandError:
        return {}
    return {pod.uid: f"{pod.namespace}/{pod.name}" for pod in pods}


def state_text(manager: str, path: Path, state: Mapping[str, Any], names: Names) -> str:
    """Return a file as text. Raises CommandError where it holds something else."""
    try:
        match manager:
            case "cpu":
                lines = _cpus(msgspec.convert(state, _Cpus), names)
            case "memory":
                lines = _memory(msgspec.convert(state, _Memory), names)
            case _:
                lines = _devices(msgspec.convert(state, _Devices), names)
    except msgspec.ValidationError as error:
        raise CommandError(f"{path}: is no {manager} state: {error}; -o json shows it as it is") from error
    return "\n".join([str(path), *lines])


def _cpus(state: _Cpus, names: Names) -> Iterator[str]:
    yield f"  policy:      {state.policy_name or NONE}"
    yield f"  shared pool: {state.default_cpu_set or NONE}"
    rows = [
        [names.get(uid, uid), container, cpus]
        for uid, held in sorted(state.entries.items())
        for container, cpus in (sorted(held.items()) if isinstance(held, dict) else [(NONE, held)])
    ]
    yield from _rows(["POD", "CONTAINER", "CPUS"], rows)


def _memory(state: _Memory, names: Names) -> Iterator[str]:
    yield f"  policy:      {state.policy_name or NONE}"
    tables = [
        [number, kind, *map(size, (t.total, t.system_reserved, t.allocatable, t.reserved, t.free))]
        for number, node in sorted(state.machine_state.items(), key=lambda item: (len(item[0]), item[0]))
        for kind, t in sorted(node.memory_map.items())
    ]
    if tables:
        header = ["NUMA NODE", "KIND", "TOTAL", "SYSTEM", "ALLOCATABLE", "ASSIGNED", "FREE"]
        yield columns(header, tables, indent="  ")
    rows = [
        [names.get(uid, uid), container, block.kind, size(block.size), ",".join(map(str, block.nodes))]
        for uid, held in sorted(state.entries.items())
        for container, blocks in sorted(held.items())
        for block in blocks
    ]
    yield from _rows(["POD", "CONTAINER", "KIND", "SIZE", "NUMA NODES"], rows)


def _devices(state: _Devices, names: Names) -> Iterator[str]:
    rows = [
        [names.get(uid, uid), container, resource, ", ".join(ids)]
        for uid, held in sorted(state.entries.items())
        for container, resources in sorted(held.items())
        for resource, ids in sorted(resources.items())
    ]
    yield from _rows(["POD", "CONTAINER", "RESOURCE", "DEVICES"], rows)


def _rows(header: list[str], rows: list[list[str]]) -> Iterator[str]:
    if rows:
        yield columns(header, rows, indent="  ")
    else:
        yield "  no container holds anything of its own"
