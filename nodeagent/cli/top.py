"""`nodeagent top`: which containers use most, how near their limits, and how often they are held back."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.cli.common import CommandError, add_output_option, print_data
from nodeagent.cli.get import add_server_options
from nodeagent.cli.settings import add_config_option, checked_config
from nodeagent.cli.table import columns, size
from nodeagent.cli.tree import known_pods, measured, open_tree, pod_names, title
from nodeagent.stats.live_tree import Bound, LiveCgroup, read_machine

HELP = "show the containers that use most, again and again"
EXAMPLES = """
  nodeagent top                       every two seconds, until Ctrl-C
  nodeagent top --sort memory --once
  nodeagent top -o json               once, as data

OF LIMIT compares with the limit that would be met first, wherever it stands. THROTTLED is the share of
periods in which the container waited for its CPU quota: it may wait often though it looks idle on average.
"""
UNSET = "-"
CLEAR_SCREEN = "\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class Row:
    """One container; None is what is not known or not limited."""

    pod: str
    container: str
    cpu_milli: int | None
    cpu_share: float | None
    throttled_share: float | None
    memory_bytes: int | None
    memory_share: float | None
    memory_left_bytes: int | None
    pids: int | None


ORDERS: Mapping[str, Callable[[Row], float]] = {
    "cpu": lambda row: row.cpu_milli or 0,
    "memory": lambda row: row.memory_bytes or 0,
    "throttled": lambda row: row.throttled_share or 0,
    "limit": lambda row: max(row.cpu_share or 0, row.memory_share or 0),
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_output_option(parser, "json", "yaml")
    add_server_options(parser)
    parser.add_argument(
        "--sort", choices=ORDERS, default="cpu", help="most of what first; default: %(default)s"
    )
    parser.add_argument("--once", action="store_true", help="show it once, and end")
    parser.add_argument("--interval", type=float, default=2, metavar="SECONDS", help="default: %(default)s")
    parser.add_argument(
        "--proc-root", type=Path, default=Path("/proc"), metavar="DIR", help="default: %(default)s"
    )


def run(arguments: argparse.Namespace) -> int:
    if not 0.1 <= arguments.interval <= 3600:
        raise CommandError(f"--interval {arguments.interval:g}: expected 0.1 to 3600 seconds")
    layout = CgroupLayout(checked_config(arguments.config).kubelet.cgroup_root)
    tree = open_tree(arguments.cgroup_root)
    while True:
        levels = measured(tree, layout, arguments.proc_root, arguments.interval)
        rows = container_rows(levels, pod_names(known_pods(arguments.server), layout), layout)
        rows.sort(key=ORDERS[arguments.sort], reverse=True)
        if arguments.output:
            print_data([_as_data(row) for row in rows], arguments.output)
            return 0
        text = f"{_machine(read_machine(tree, arguments.proc_root))}\n\n{top_table(rows)}"
        print(text if arguments.once or not sys.stdout.isatty() else CLEAR_SCREEN + text, flush=True)
        if arguments.once:
            return 0


def container_rows(levels: Sequence[LiveCgroup], names: Mapping[str, str], layout: CgroupLayout) -> list[Row]:
    """One row a container, with the pod that it belongs to."""
    rows, pod = [], ""
    for level in levels:
        if level.kind == "pod":
            pod = title(level, names, layout)
        elif level.kind == "container":
            rows.append(_row(pod, title(level, names, layout), level))
    return rows


def top_table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    header = ["POD", "CONTAINER", "CPU", "OF LIMIT", "THROTTLED", "MEMORY", "OF LIMIT", "LEFT", "PIDS"]
    return columns(header, [_cells(row) for row in rows]) if rows else "No container is running."


def _row(pod: str, container: str, level: LiveCgroup) -> Row:
    usage, cpu, memory = level.usage, level.bounds.get("cpu"), level.bounds.get("memory")
    return Row(
        pod=pod,
        container=container,
        cpu_milli=level.cpu_milli,
        cpu_share=level.cpu_milli / cpu.limit if cpu and cpu.limit and level.cpu_milli is not None else None,
        throttled_share=level.throttled_share,
        memory_bytes=usage.memory_bytes,
        memory_share=1 - memory.left / memory.limit if memory and memory.limit else None,
        memory_left_bytes=memory.left if memory else None,
        pids=usage.pids,
    )


def _cells(row: Row) -> list[str]:
    return [
        row.pod,
        row.container,
        UNSET if row.cpu_milli is None else f"{row.cpu_milli}m",
        _percent(row.cpu_share),
        _percent(row.throttled_share),
        UNSET if row.memory_bytes is None else size(row.memory_bytes),
        _percent(row.memory_share),
        UNSET if row.memory_left_bytes is None else size(row.memory_left_bytes),
        UNSET if row.pids is None else str(row.pids),
    ]


def _percent(share: float | None) -> str:
    return UNSET if share is None else f"{100 * share:.0f}%"


def _machine(bounds: Mapping[str, Bound]) -> str:
    memory, pids = bounds.get("memory"), bounds.get("pids")
    parts = [f"{size(memory.left)} of {size(memory.limit)} of memory"] if memory else []
    parts += [f"{pids.left} of {pids.limit} PIDs"] if pids else []
    return f"The machine has {' and '.join(parts) or 'an unknown amount'} left."


def _as_data(row: Row) -> dict[str, Any]:
    data = {
        "pod": row.pod,
        "container": row.container,
        "cpuMillicores": row.cpu_milli,
        "cpuOfLimit": row.cpu_share,
        "throttledOfPeriods": row.throttled_share,
        "memoryBytes": row.memory_bytes,
        "memoryOfLimit": row.memory_share,
        "memoryLeftBytes": row.memory_left_bytes,
        "pids": row.pids,
    }
    return {name: value for name, value in data.items() if value is not None}
