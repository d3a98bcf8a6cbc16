"""What a scrape of a full node costs: 1,000 pods of one container (`pytest -m bench -s tests/bench`)."""

import resource
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric

from nodeagent.metrics.cadvisor import cadvisor_families
from nodeagent.metrics.exposition import exposition
from nodeagent.metrics.kubelet import kubelet_families
from nodeagent.metrics.resource import resource_families
from nodeagent.metrics.scrape import Scrape, begin_scrape
from nodeagent.metrics.source import MeteredCgroup
from tests.unit.shown_node import BURSTABLE, ShownNode, cgroup_files, make_pod, write_cgroup

pytestmark = pytest.mark.bench

PODS = 1000
MOST_SECONDS = 5.0
MOST_MEMORY_MIB = 40


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ShownNode]:
    shown = ShownNode(tmp_path)
    files = cgroup_files(quota="50000")
    for number in range(PODS):
        pod = f"{BURSTABLE}/kubepods-burstable-pod{number}.slice"
        container = f"{pod}/nodeagent-c{number}.scope"
        write_cgroup(shown.cgroup_root, pod, files)
        write_cgroup(shown.cgroup_root, container, files)
        shown.listed.append(MeteredCgroup(pod, "shop", f"web-{number}"))
        shown.listed.append(MeteredCgroup(container, "shop", f"web-{number}", "main", f"c{number}"))
        shown.desired.append(make_pod(f"web-{number}", "shop"))
    yield shown
    shown.close()


@pytest.mark.parametrize("families", [cadvisor_families, resource_families, kubelet_families])
def test_a_scrape_of_a_thousand_pods(node: ShownNode, families: Callable[[Scrape], Iterable[Metric]]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    longest = size = pieces = 0.0
    last = started
    for piece in exposition(families(begin_scrape(node))):
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
        size += len(piece)
        pieces += 1
    seconds = time.perf_counter() - started
    memory_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"\n{families.__name__}: {seconds:.2f} s, longest of {pieces:.0f} pieces {longest * 1000:.0f} ms, "
        f"{size / 1e6:.1f} MB, {memory_mib:+.1f} MiB of peak memory"
    )
    assert seconds < MOST_SECONDS
    assert memory_mib < MOST_MEMORY_MIB
