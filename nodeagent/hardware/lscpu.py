"""Read a machine from what `lscpu` printed on it."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from nodeagent.hardware.cpuset import CpuSet, CpuSetError
from nodeagent.hardware.machine import Cpu, NumaNode, Topology, TopologyError

Row = Mapping[str, str]


def parse_lscpu(text: str, memory_bytes_per_node: int = 0) -> Topology:
    """Read `lscpu -J`, `lscpu -J -e` (both JSON) or `lscpu -p` (columns). Raises TopologyError.

    lscpu knows no memory: each NUMA node is given `memory_bytes_per_node`.
    """
    try:
        if not text.lstrip().startswith("{"):
            return _from_rows(_parsable_rows(text), memory_bytes_per_node)
        document = json.loads(text)
        if "cpus" in document:
            return _from_rows(_json_rows(document["cpus"]), memory_bytes_per_node)
        return _from_summary(_fields(document["lscpu"]), memory_bytes_per_node)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, TopologyError):
            raise
        raise TopologyError(
            "not the output of `lscpu -J`, `lscpu -J -e` or `lscpu -p=cpu,core,socket,node,cache,online`: "
            f"{type(error).__name__}: {error}"
        ) from None


def _json_rows(cpus: Iterable[Mapping[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for cpu in cpus:
        row = {key.lower(): str(value) for key, value in cpu.items() if value is not None}
        for names, values in [(key, row[key]) for key in row if ":" in key]:
            row.update(zip(names.split(":"), values.split(":"), strict=False))
        rows.append(row)
    return rows


def _parsable_rows(text: str) -> list[Row]:
    lines = text.splitlines()
    comments = [line for line in lines if line.startswith("#") and "," in line]
    header = (comments[-1] if comments else "# CPU,Core,Socket,Node").lstrip("# ").lower()
    names = [name for column in header.split(",") for name in column.split(":")]
    return [
        dict(zip(names, re.split("[,:]", line.lower()), strict=False))
        for line in lines
        if line and not line.startswith("#")
    ]


def _from_rows(rows: list[Row], memory_bytes: int) -> Topology:
    """One row a CPU. Where lscpu leaves a column out or empty, the machine has one of it."""
    offline = CpuSet.from_iterable(
        int(row["cpu"]) for row in rows if row.get("online") in ("n", "no", "False")
    )
    online = [row for row in rows if int(row["cpu"]) not in offline]
    if not online:
        raise TopologyError("lscpu: no CPU is online; expected one row a CPU")
    members: dict[tuple[int, str], int] = {}
    for row in online:
        key = (_column(row, "socket"), row.get("core") or row["cpu"])
        members[key] = min(int(row["cpu"]), members.get(key, int(row["cpu"])))
    cpus = tuple(
        Cpu(
            cpu=int(row["cpu"]),
            core=members[_column(row, "socket"), row.get("core") or row["cpu"]],
            socket=_column(row, "socket"),
            numa=_column(row, "node"),
            uncore=_column(row, "l3", _column(row, "socket")),
        )
        for row in sorted(online, key=lambda row: int(row["cpu"]))
    )
    return Topology(cpus, _nodes(sorted({cpu.numa for cpu in cpus}), memory_bytes), offline)


def _column(row: Row, name: str, missing: int = 0) -> int:
    text = row.get(name, "")
    return int(text) if text.isdigit() else missing


def _fields(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Flatten the field/data pairs; newer versions nest them in sections."""
    fields: dict[str, str] = {}
    for entry in entries:
        fields[str(entry["field"]).rstrip(":")] = str(entry.get("data", ""))
        fields.update(_fields(entry.get("children", ())))
    return fields


def _from_summary(fields: Mapping[str, str], memory_bytes: int) -> Topology:
    """Work out the machine from the summary, which counts cores but does not say which CPUs share one.

    It is taken to be even, with its NUMA nodes (or, without any, its CPUs) shared out over the sockets in
    order. A node whose CPUs are one run while other nodes exist has adjacent siblings; else they are offset.
    """
    threads = int(fields["Thread(s) per core"])
    # "Socket(s)" is "-" where the firmware does not tell.
    sockets = int(fields["Socket(s)"]) if fields.get("Socket(s)", "-") != "-" else 1
    listed = fields.get("On-line CPU(s) list") or f"0-{int(fields['CPU(s)']) - 1}"
    online = _list(listed)
    nodes = {
        int(match[1]): _list(text) & online
        for name, text in fields.items()
        if (match := re.fullmatch(r"NUMA node(\d+) CPU\(s\)", name))
    } or {0: online}
    caches = re.search(r"\((\d+) instances?\)", fields.get("L3 cache", fields.get("L3", "")))
    adjacent = len(nodes) > 1 and all("," not in str(cpus) for cpus in nodes.values())
    cpus: list[Cpu] = []
    if not online or threads < 1 or sockets < 1:
        raise TopologyError("lscpu: expected at least one online CPU, one thread a core and one socket")
    positions = _in_socket_order(nodes, threads, adjacent)
    cores_per_socket = max(1, -(-len(positions) // sockets))
    cores_per_cache = max(1, -(-len(positions) // (int(caches[1]) if caches else sockets)))
    for index, (node, siblings) in enumerate(positions):
        cpus += (
            Cpu(cpu, siblings[0], index // cores_per_socket, node, index // cores_per_cache)
            for cpu in siblings
        )
    return Topology(
        tuple(sorted(cpus, key=lambda cpu: cpu.cpu)),
        _nodes(sorted(nodes), memory_bytes),
        _list(fields.get("Off-line CPU(s) list", "")),
    )


def _in_socket_order(
    nodes: Mapping[int, CpuSet], threads: int, adjacent: bool
) -> list[tuple[int, tuple[int, ...]]]:
    cores = []
    for node, cpus in sorted(nodes.items()):
        numbers = list(cpus)
        count = -(-len(numbers) // threads)
        for index in range(count):
            siblings = numbers[index * threads :][:threads] if adjacent else numbers[index::count]
            cores.append((node, tuple(siblings)))
    return cores


def _nodes(numbers: list[int], memory_bytes: int) -> tuple[NumaNode, ...]:
    return tuple(NumaNode(number, memory_bytes) for number in numbers)


def _list(text: str) -> CpuSet:
    try:
        return CpuSet.parse(text)
    except CpuSetError as error:
        raise TopologyError(f"lscpu: {text!r} is not a CPU list such as 0-3,8: {error}") from None
