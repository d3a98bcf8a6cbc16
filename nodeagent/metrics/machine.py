"""The machine's own families, as cAdvisor names them."""

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric

from nodeagent.metrics.exposition import Labels
from nodeagent.metrics.scrape import Number, Scrape
from nodeagent.stats.node import NodeSample

Row = tuple[dict[str, str], Number]


def machine_families(scrape: Scrape, node: NodeSample) -> Iterator[Metric]:
    """Give the machine's CPUs, memory and NUMA nodes, labelled with its identity."""
    topology = scrape.topology
    rows: list[tuple[str, str, Iterable[Row]]] = [
        ("machine_cpu_cores", "Online logical CPUs.", [({}, len(topology.cpus))]),
        ("machine_cpu_physical_cores", "Physical cores.", [({}, len(topology.cores))]),
        ("machine_cpu_sockets", "Sockets.", [({}, len(topology.sockets))]),
        (
            "machine_node_memory_capacity_bytes",
            "Memory of a NUMA node.",
            [({"node_id": str(numa.node)}, numa.memory_bytes) for numa in topology.numa_nodes],
        ),
        ("machine_node_hugepages_count", "Huge pages of a NUMA node, by size in KiB.", _huge_pages(scrape)),
        (
            "machine_node_distance",
            "Distance between NUMA nodes, as the firmware gives it.",
            _distances(scrape),
        ),
    ]
    if node.memory is not None:
        rows.append(("machine_memory_bytes", "Memory.", [({}, node.memory.capacity_bytes)]))
        rows.append(("machine_swap_bytes", "Swap space.", [({}, node.memory.swap_total_bytes)]))
    info = scrape.node.status.node_info
    identity = Labels(machine_id=info.machine_id, system_uuid=info.system_uuid, boot_id=info.boot_id)
    for name, documentation, values in rows:
        metric = Metric(name, documentation, "gauge")
        for extras, value in values:
            metric.add_sample(name, Labels(identity, **extras) if extras else identity, value)
        yield metric


def _huge_pages(scrape: Scrape) -> Iterator[Row]:
    for numa in scrape.topology.numa_nodes:
        for pages in numa.huge_pages:
            yield {"node_id": str(numa.node), "page_size": str(pages.page_size_kib)}, pages.pages


def _distances(scrape: Scrape) -> Iterator[Row]:
    nodes = scrape.topology.numa_nodes
    for numa in nodes:
        for target, distance in zip(nodes, numa.distances, strict=False):
            yield {"node_id": str(numa.node), "target_node_id": str(target.node)}, distance
