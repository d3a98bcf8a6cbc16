"""The metric families, read back with prometheus-client's parser; the figures are worked out by hand."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from nodeagent.eviction.record import EvictionRecord, Pressure
from nodeagent.metering import Meter
from nodeagent.metrics.cadvisor import cadvisor_families
from nodeagent.metrics.exposition import exposition
from nodeagent.metrics.kubelet import health_families, kubelet_families, probe_families
from nodeagent.metrics.resource import resource_families
from nodeagent.metrics.scrape import Scrape, begin_scrape
from nodeagent.metrics.source import MeteredCgroup
from tests.unit.shown_node import BURSTABLE, GIB, KUBEPODS, NOW, WEB, WEB_MAIN, ShownNode

Families = Callable[[Scrape], Iterable[Metric]]
SIX = {"id", "name", "image", "container", "pod", "namespace"}


class Page:
    """A scraped page: samples by name and labels, types by family."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        self.types = {
            line.split()[2]: line.split()[3] for line in text.splitlines() if line.startswith("# TYPE")
        }

    def value(self, name: str, /, **labels: str) -> float:
        # The parser gives every counter the suffix that OpenMetrics wants; the text has the plain name.
        if self.types[name] == "counter" and not name.endswith("_total"):
            assert f"\n{name}{{" in self.text
            name += "_total"
        return float(self.samples[name, frozenset(labels.items())].value)

    def of_id(self, name: str, path: str) -> list[float]:
        return [
            float(sample.value)
            for (sample_name, labels), sample in self.samples.items()
            if sample_name == name and ("id", path) in labels
        ]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ShownNode]:
    shown = ShownNode(tmp_path)
    yield shown
    shown.close()


def scrape(node: ShownNode, families: Families) -> Page:
    return Page(b"".join(exposition(families(begin_scrape(node)))).decode())


def test_every_cadvisor_series_has_the_six_labels(node: ShownNode) -> None:
    page = scrape(node, cadvisor_families)
    for name, labels in page.samples:
        if name.startswith("container_"):
            assert {label for label, _ in labels} >= SIX, name


def test_a_container_s_figures(node: ShownNode) -> None:
    page = scrape(node, cadvisor_families)
    of_main = {
        "id": f"/{WEB_MAIN}",
        "name": "c1",
        "image": "nodeagent/process",
        "container": "main",
        "pod": "web",
        "namespace": "shop",
    }
    expected = {
        "container_cpu_user_seconds_total": 2.0,
        "container_cpu_system_seconds_total": 0.5,
        "container_cpu_cfs_periods_total": 40,
        "container_cpu_cfs_throttled_periods_total": 10,
        "container_cpu_cfs_throttled_seconds_total": 0.75,
        "container_memory_working_set_bytes": 800,
        "container_memory_usage_bytes": 1000,
        "container_memory_rss": 700,
        "container_memory_cache": 300,
        "container_memory_swap": 64,
        "container_memory_mapped_file": 30,
        "container_memory_kernel_usage": 40,
        "container_memory_total_active_file_bytes": 100,
        "container_memory_total_inactive_file_bytes": 200,
        "container_memory_max_usage_bytes": 1200,
        "container_memory_failcnt": 5,
        "container_oom_events_total": 1,
        "container_pressure_cpu_waiting_seconds_total": 1.5,
        "container_pressure_memory_stalled_seconds_total": 0.25,
        "container_pressure_io_waiting_seconds_total": 1.5,
        "container_threads": 3,
        "container_threads_max": 0,
        "container_spec_cpu_period": 100000,
        "container_spec_cpu_quota": 50000,
        "container_spec_memory_limit_bytes": 4096,
        "container_spec_memory_swap_limit_bytes": 0,
        "container_start_time_seconds": 1_772_000_000.5,
        "container_last_seen": NOW.timestamp(),
    }
    assert {name: page.value(name, **of_main) for name in expected} == expected
    assert page.value("container_cpu_usage_seconds_total", cpu="total", **of_main) == 2.5
    failures = {"failure_type": "pgmajfault", "scope": "container"}
    assert page.value("container_memory_failures_total", **failures, **of_main) == 2


def test_pods_and_slices_have_no_image_and_the_image_of_a_container_is_its_own(node: ShownNode) -> None:
    node.listed[3] = MeteredCgroup(WEB_MAIN, "shop", "web", "main", "c1", image="registry/web:1")
    page = scrape(node, cadvisor_families)
    images = {
        dict(labels)["id"]: dict(labels)["image"]
        for name, labels in page.samples
        if name == "container_memory_rss"
    }
    assert images == {
        "/": "",
        f"/{KUBEPODS}": "",
        f"/{BURSTABLE}": "",
        f"/{WEB}": "",
        f"/{WEB_MAIN}": "registry/web:1",
    }


def test_the_node_is_the_cgroup_of_the_root(node: ShownNode) -> None:
    page = scrape(node, cadvisor_families)
    assert page.of_id("container_cpu_usage_seconds_total", "/") == [90]
    assert page.of_id("container_memory_usage_bytes", "/") == [1.5 * GIB]
    assert page.of_id("container_memory_working_set_bytes", "/") == [1.25 * GIB]
    assert page.of_id("container_memory_rss", "/") == [GIB]
    assert page.of_id("container_memory_cache", "/") == [0.5 * GIB]
    assert page.of_id("container_memory_swap", "/") == [1.5 * GIB]
    assert page.of_id("container_network_receive_bytes_total", "/") == [5000]
    assert page.of_id("container_network_transmit_packets_total", "/") == [70]
    assert page.of_id("container_network_transmit_packets_dropped_total", "/") == [4]
    assert page.of_id("container_network_receive_errors_total", "/") == [1]


def test_no_quota_means_no_throttling_series(node: ShownNode) -> None:
    page = scrape(node, cadvisor_families)
    assert page.of_id("container_cpu_cfs_periods_total", f"/{KUBEPODS}") == []
    assert page.of_id("container_cpu_cfs_periods_total", f"/{WEB}") == [40]


def test_what_kube_prometheus_drops_is_not_emitted(node: ShownNode) -> None:
    page = scrape(node, cadvisor_families)
    dropped = ("container_spec_", "container_threads", "container_start_time", "container_last_seen")
    for name, labels in page.samples:
        if name.startswith(dropped):
            assert dict(labels)["pod"], name


def test_a_container_that_has_gone_leaves_no_series(node: ShownNode) -> None:
    shutil.rmtree(node.cgroup_root / WEB_MAIN)
    for families in (cadvisor_families, resource_families):
        page = scrape(node, families)
        assert 'container="main"' not in page.text
        assert 'pod="web"' in page.text


def test_types_are_cadvisor_s(node: ShownNode) -> None:
    types = scrape(node, cadvisor_families).types
    for name, kind in types.items():
        is_counter = name.endswith("_total") or name == "container_memory_failcnt"
        assert kind == ("counter" if is_counter else "gauge"), name


def test_the_machine(node: ShownNode) -> None:
    page = scrape(node, cadvisor_families)
    identity = {"machine_id": "m1", "system_uuid": "s1", "boot_id": "b1"}
    assert page.value("machine_cpu_cores", **identity) == 4
    assert page.value("machine_cpu_physical_cores", **identity) == 2
    assert page.value("machine_cpu_sockets", **identity) == 1
    assert page.value("machine_memory_bytes", **identity) == 4 * GIB
    assert page.value("machine_swap_bytes", **identity) == 3 * GIB


def test_the_resource_page_is_what_metrics_server_reads(node: ShownNode) -> None:
    page = scrape(node, resource_families)
    pod = {"pod": "web", "namespace": "shop"}
    container = {"container": "main", **pod}
    assert page.value("node_cpu_usage_seconds_total") == 90
    assert page.value("node_memory_working_set_bytes") == 1.25 * GIB
    assert page.value("pod_cpu_usage_seconds_total", **pod) == 2.5
    assert page.value("pod_memory_working_set_bytes", **pod) == 800
    assert page.value("container_cpu_usage_seconds_total", **container) == 2.5
    assert page.value("container_memory_working_set_bytes", **container) == 800
    assert page.value("container_swap_usage_bytes", **container) == 64
    assert page.value("container_swap_limit_bytes", **container) == 0
    assert page.value("container_start_time_seconds", **container) == 1_772_000_000.5
    assert page.value("resource_scrape_error") == 0
    assert page.samples["node_cpu_usage_seconds_total", frozenset()].timestamp == NOW.timestamp()
    # Nothing but the node and its pods.
    assert not [name for name, labels in page.samples if "slice" in str(labels)]


def test_the_resource_page_says_when_the_node_could_not_be_read(node: ShownNode) -> None:
    (node.proc_root / "meminfo").unlink()
    page = scrape(node, resource_families)
    assert page.value("resource_scrape_error") == 1
    assert page.value("pod_cpu_usage_seconds_total", pod="web", namespace="shop") == 2.5


def test_what_kubelet_says_of_itself(node: ShownNode) -> None:
    node.instruments.evictions.increase("memory.available")
    node.instruments.terminated_containers.increase("container", "137", "OOMKilled")
    page = scrape(node, kubelet_families)
    assert page.value("kubelet_node_name", node="n1") == 1
    assert page.value("kubelet_running_pods") == 1
    assert page.value("kubelet_running_containers", container_state="running") == 1
    assert page.value("kubelet_running_containers", container_state="exited") == 2
    assert page.value("kubelet_desired_pods", static="true") == 3
    assert page.value("kubelet_desired_pods", static="") == 0
    assert page.value("kubelet_working_pods", lifecycle="sync", config="desired", static="true") == 3
    assert page.value("kubelet_cpu_manager_shared_pool_size_millicores") == 3000
    assert page.value("kubelet_cpu_manager_exclusive_cpu_allocation_count") == 1
    assert page.value("kubelet_cpu_manager_allocation_per_numa", numa_node="0") == 1
    assert page.value("kubelet_evictions", eviction_signal="memory.available") == 1
    pids = {"eviction_signal": "pid.available", "kind": "hard"}
    assert page.value("nodeagent_eviction_headroom", **pids) == 250
    assert page.value("nodeagent_eviction_predicted_seconds", **pids) == 12.5
    red = {"quota": "red", "parent": "koordinator-root-quota"}
    assert page.value("nodeagent_elastic_quota", resource="cpu", type="used", **red) == 8
    assert page.value("nodeagent_elastic_quota", resource="memory", type="used", **red) == 1 << 30
    ended = {"container_type": "container", "exit_code": "137", "reason": "OOMKilled"}
    assert page.value("kubelet_terminated_containers_total", **ended) == 1
    assert page.types["kubelet_evictions"] == "counter"
    assert page.types["kubelet_pleg_relist_duration_seconds"] == "histogram"


def test_how_long_a_hard_eviction_took(node: ShownNode) -> None:
    meter = Meter(node.instruments)
    began = datetime(2026, 1, 1, tzinfo=UTC)
    for hard, seconds in ((True, 0.04), (False, 30.0)):
        pressure = Pressure(
            signal="memory.available",
            hard=hard,
            threshold="100Mi",
            available=1,
            capacity=2,
            rate_per_second=0,
            measured_at=began,
            crossed_at=began,
        )
        meter.pod_dead(
            EvictionRecord(
                namespace="default",
                name="hog",
                uid="u",
                cause="memory.available",
                message="",
                grace_seconds=1,
                decided_at=began,
                dead_at=began + timedelta(seconds=seconds),
                pressure=pressure,
            )
        )
    page = scrape(node, kubelet_families)
    name, labels = "nodeagent_eviction_crossing_to_dead_seconds", {"eviction_signal": "memory.available"}
    # Grace that was granted is no delay.

    def count(part: str, **more: str) -> float:
        return float(page.samples[f"{name}_{part}", frozenset((labels | more).items())].value)

    assert count("count") == 1
    assert (count("bucket", le="0.025"), count("bucket", le="0.05")) == (0, 1)


def test_the_process_s_own_figures_come_from_proc(node: ShownNode) -> None:
    node.proc_root = Path("/proc")
    page = scrape(node, kubelet_families)
    assert page.value("process_resident_memory_bytes") > 1_000_000
    assert page.types["process_cpu_seconds_total"] == "counter"
    assert page.value("process_start_time_seconds") > 1_000_000_000
    probes = scrape(node, probe_families)
    assert set(probes.types) == {
        "prober_probe_total",
        "prober_probe_duration_seconds",
        "process_start_time_seconds",
    }


def test_health_as_service_level_indicators() -> None:
    families = health_families({"ping": True, "syncloop": False}, {("syncloop", "error"): 2})
    page = Page(b"".join(exposition(families)).decode())
    assert page.value("kubernetes_healthcheck", name="ping", type="healthz") == 1
    assert page.value("kubernetes_healthcheck", name="syncloop", type="healthz") == 0
    assert page.value("kubernetes_healthchecks_total", name="syncloop", status="error", type="healthz") == 2


def test_no_family_is_announced_twice(node: ShownNode) -> None:
    for families in (cadvisor_families, kubelet_families, resource_families):
        names = [line for line in scrape(node, families).text.splitlines() if line.startswith("# TYPE")]
        assert len(names) == len(set(names))
