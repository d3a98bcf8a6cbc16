"""One scrape: memory's part is taken at once on the event loop, the kernel's is read afterwards."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nodeagent.api.node import Node
from nodeagent.cgroup.files import CgroupTree
from nodeagent.hardware.topology import Topology
from nodeagent.metrics.instruments import Instruments
from nodeagent.metrics.source import AgentState, MeteredCgroup, MetricsSource
from nodeagent.stats.cgroup import CgroupSample, MemorySample, read_cgroup
from nodeagent.stats.node import NodeMemory, NodeSample, read_node

Number = int | float
# A family that does not apply to a cgroup has no series for it.
Value = Number | None


@dataclass(frozen=True, slots=True)
class Scrape:
    """A picture of the agent's memory; safe to use in another thread."""

    time: datetime
    node: Node
    state: AgentState
    cgroups: Sequence[MeteredCgroup]
    instruments: Instruments
    topology: Topology
    tree: CgroupTree
    proc_root: Path


def begin_scrape(source: MetricsSource) -> Scrape:
    """Take the picture; nothing here waits for the kernel."""
    return Scrape(
        time=source.clock.now(),
        node=source.node(),
        state=source.state(),
        cgroups=tuple(source.cgroups()),
        instruments=source.instruments,
        topology=source.topology,
        tree=source.tree,
        proc_root=source.proc_root,
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """A cgroup with what was read of it."""

    cgroup: MeteredCgroup
    sample: CgroupSample
    cpu_quota_microseconds: int | None = None
    cpu_period_microseconds: int | None = None


def measure_node(scrape: Scrape) -> NodeSample:
    return read_node(scrape.proc_root, scrape.tree, scrape.time)


def measure_cgroups(scrape: Scrape) -> Iterator[Measured]:
    """Read the cgroups one after the other; one that has gone meanwhile is left out."""
    for cgroup in scrape.cgroups:
        sample = read_cgroup(scrape.tree, cgroup.path)
        if sample is not None:
            quota, _, period = (scrape.tree.read(cgroup.path, "cpu.max") or "").partition(" ")
            yield Measured(
                cgroup,
                sample,
                int(quota) if quota.isdecimal() else None,
                int(period) if period.isdecimal() else None,
            )


def node_as_cgroup(sample: NodeSample) -> Measured:
    """Show the node as the cgroup `/`, whose own files lack most of the figures."""
    return Measured(
        MeteredCgroup(""),
        CgroupSample(
            cpu=sample.cpu,
            memory=_node_memory(sample.memory) if sample.memory else None,
            tasks=sample.processes.current if sample.processes else None,
            tasks_limit=sample.processes.maximum if sample.processes else None,
            io_pressure=sample.io_pressure,
            populated=True,
            dying_descendants=0,
        ),
    )


def _node_memory(memory: NodeMemory) -> MemorySample:
    return MemorySample(
        usage_bytes=memory.usage_bytes,
        anon_bytes=memory.rss_bytes,
        file_bytes=memory.usage_bytes - memory.rss_bytes,
        inactive_file_bytes=memory.usage_bytes - memory.working_set_bytes,
        swap_bytes=memory.swap_total_bytes - memory.swap_free_bytes,
        swap_limit_bytes=memory.swap_total_bytes,
        limit_bytes=memory.capacity_bytes,
        page_faults=memory.page_faults,
        major_page_faults=memory.major_page_faults,
    )


def seconds(microseconds: int) -> float:
    return microseconds / 1_000_000


def of_cpu(get: Callable[..., Value]) -> Callable[[Measured], Value]:
    """Turn a getter of CpuSample into one that tolerates its absence."""
    return lambda measured: get(measured.sample.cpu) if measured.sample.cpu else None


def of_memory(get: Callable[..., Value]) -> Callable[[Measured], Value]:
    """Turn a getter of MemorySample into one that tolerates its absence."""
    return lambda measured: get(measured.sample.memory) if measured.sample.memory else None
