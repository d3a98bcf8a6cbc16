"""The live tree below kubepods: what is written, what is used, and which limit would be met first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.layout import CgroupLayout
from nodeagent.hardware.cpuset import CpuSet, CpuSetError
from nodeagent.stats.kernel_files import parse_flat_keyed, parse_limit
from nodeagent.stats.node import parse_meminfo

VALUE_FILES = (
    "cpu.weight",
    "cpu.max",
    "cpuset.cpus",
    "cpuset.cpus.effective",
    "cpuset.mems",
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.max",
    "memory.oom.group",
    "pids.max",
)
MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a cgroup and all below it use; None where the controller is not enabled."""

    cpu_usec: int | None = None
    memory_bytes: int | None = None
    pids: int | None = None
    throttled_usec: int | None = None
    periods: int | None = None
    throttled_periods: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """The limit that stops a cgroup first: where it stands, what it is, and how much is left below it.

    cpu in millicores (nothing is used up, so `left` is the limit), memory in bytes, pids in tasks.
    """

    path: str
    limit: int
    left: int
    file: str


@dataclass(frozen=True, slots=True)
class LiveCgroup:
    """One cgroup. `kind` is kubepods, qos, pod, container or other."""

    path: str
    kind: str
    values: Mapping[str, str]
    usage: Usage
    cpu_milli: int | None = None
    throttled_share: float | None = None
    bounds: Mapping[str, Bound] = field(default_factory=dict)


def read_machine(tree: CgroupTree, proc_root: Path) -> dict[str, Bound]:
    """The machine itself as the widest limit."""
    bounds = {}
    meminfo_kib = parse_meminfo(_text(proc_root / "meminfo"))
    if "MemTotal" in meminfo_kib:
        total = meminfo_kib["MemTotal"]
        left = meminfo_kib.get("MemAvailable", total)
        bounds["memory"] = Bound(MACHINE, 1024 * total, 1024 * left, "MemTotal")
    cpus = _cpus(tree.read("", "cpuset.cpus.effective"))
    if cpus:
        bounds["cpu"] = Bound(MACHINE, 1000 * cpus, 1000 * cpus, "cpuset.cpus.effective")
    limits = [
        int(text)
        for name in ("pid_max", "threads-max")
        if (text := _text(proc_root / "sys/kernel" / name)).isdigit()
    ]
    if limits:
        running = _text(proc_root / "loadavg").split("/")[-1].split(" ")[0]
        used = int(running) if running.isdigit() else 0
        bounds["pids"] = Bound(MACHINE, min(limits), min(limits) - used, "pid_max")
    return bounds


def read_tree(tree: CgroupTree, layout: CgroupLayout, machine: Mapping[str, Bound]) -> list[LiveCgroup]:
    """Every cgroup from kubepods down to the containers, parents before children; empty if there is none."""
    if not tree.exists(layout.kubepods):
        return []
    found: list[LiveCgroup] = []
    pending: list[tuple[str, Mapping[str, Bound]]] = [(layout.kubepods, machine)]
    while pending:
        path, above = pending.pop()
        level = _read(tree, layout, path, above)
        found.append(level)
        # What a container makes below its leaf is its own affair.
        if level.kind != "container":
            pending += [(child, level.bounds) for child in reversed(tree.children(path))]
    return found


def bound_place(level: LiveCgroup, bound: Bound, layout: CgroupLayout) -> str:
    """Where a limit stands, seen from a cgroup: self, pod, the name of a slice further up, or machine."""
    if bound.path == level.path:
        return "self"
    if bound.path == MACHINE:
        return MACHINE
    if layout.pod_uid_of(bound.path) is not None:
        return "pod"
    return bound.path.rpartition("/")[2].removesuffix(".slice")


def with_rates(before: list[LiveCgroup], after: list[LiveCgroup], seconds: float) -> list[LiveCgroup]:
    """The later reading, with the millicores used between the two and the share of periods held back."""
    earlier = {level.path: level.usage for level in before}
    return [
        replace(
            level,
            cpu_milli=_rate(then.cpu_usec, level.usage.cpu_usec, seconds),
            throttled_share=_throttled(then, level.usage),
        )
        if (then := earlier.get(level.path)) is not None
        else level
        for level in after
    ]


def _rate(before: int | None, after: int | None, seconds: float) -> int | None:
    if before is None or after is None or seconds <= 0:
        return None
    return round((after - before) / (1000 * seconds))


def _throttled(before: Usage, after: Usage) -> float | None:
    periods = (after.periods or 0) - (before.periods or 0)
    throttled = (after.throttled_periods or 0) - (before.throttled_periods or 0)
    return throttled / periods if periods > 0 else None


def _read(tree: CgroupTree, layout: CgroupLayout, path: str, above: Mapping[str, Bound]) -> LiveCgroup:
    texts = ((file, tree.read(path, file)) for file in VALUE_FILES)
    values = {file: text for file, text in texts if text is not None}
    stat = parse_flat_keyed(tree.read(path, "cpu.stat") or "")
    usage = Usage(
        cpu_usec=stat.get("usage_usec"),
        memory_bytes=parse_limit(tree.read(path, "memory.current")),
        pids=parse_limit(tree.read(path, "pids.current")),
        throttled_usec=stat.get("throttled_usec"),
        periods=stat.get("nr_periods"),
        throttled_periods=stat.get("nr_throttled"),
    )
    bounds = dict(above)
    for name, own in _own_bounds(path, values, usage):
        # A tie goes to the closer one: raising it is what would help first.
        if name not in bounds or own.left <= bounds[name].left:
            bounds[name] = own
    return LiveCgroup(path, _kind(layout, path), values, usage, bounds=bounds)


def _own_bounds(path: str, values: Mapping[str, str], usage: Usage) -> Iterator[tuple[str, Bound]]:
    quota, _, period = values.get("cpu.max", "max").partition(" ")
    if quota.isdigit() and period.isdigit() and int(period):
        milli = 1000 * int(quota) // int(period)
        yield "cpu", Bound(path, milli, milli, "cpu.max")
    cpus = _cpus(values.get("cpuset.cpus"))
    if cpus:
        yield "cpu", Bound(path, 1000 * cpus, 1000 * cpus, "cpuset.cpus")
    for file in ("memory.max", "memory.high"):
        limit = parse_limit(values.get(file))
        if limit is not None:
            yield "memory", Bound(path, limit, limit - (usage.memory_bytes or 0), file)
    tasks = parse_limit(values.get("pids.max"))
    if tasks is not None:
        yield "pids", Bound(path, tasks, tasks - (usage.pids or 0), "pids.max")


def _kind(layout: CgroupLayout, path: str) -> str:
    if path == layout.kubepods:
        return "kubepods"
    if layout.container_id_of(path) is not None:
        return "container"
    uid, parent = layout.pod_uid_of(path), path.rpartition("/")[0]
    if uid is None:
        return "qos" if parent == layout.kubepods else "other"
    return "pod" if layout.pod_uid_of(parent) is None else "other"


def _cpus(text: str | None) -> int:
    try:
        return len(CpuSet.parse(text or ""))
    except CpuSetError:
        return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
