"""What is shipped for Prometheus and Grafana: rules that fire, on metrics that there are."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer

from nodeagent.server.app import create_app
from tests.unit.shown_node import ShownNode

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "systemd" / "prometheus"
RULES = yaml.safe_load((SHIPPED / "rules.yaml").read_text())
PATHS = ("/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes", "/metrics/slis")
# Made by Prometheus itself.
OWN = {"up", "ALERTS"}
# kubelet's and cAdvisor's names, which boards know.
GIVEN_NAMES = {
    "kubelet_cpu_manager_exclusive_cpu_allocation_count",
    "kubelet_topology_manager_admission_duration_ms",
    "container_memory_failcnt",
}
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")


def expressions() -> Iterator[str]:
    for group in RULES["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    board = json.loads((SHIPPED / "grafana-dashboard.json").read_text())
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def metrics_of(expression: str) -> set[str]:
    """The names of the series that an expression reads: neither functions, nor labels, nor their values."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(by|on|without)\s*\([^)]*\)", "", expression)
    return set(re.findall(r"\b[a-z][a-z_:0-9]*\b(?!\s*\()", bare)) - {"sum", "rate", "by"}


@pytest.fixture
async def pages(tmp_path: Path) -> dict[str, str]:
    async with TestClient(TestServer(create_app(ShownNode(tmp_path)))) as client:
        return {path: await (await client.get(path)).text() for path in PATHS}


async def test_every_series_that_is_asked_for_is_served_or_recorded(pages: dict[str, str]) -> None:
    served = set(re.findall(r"^# TYPE (\S+)", "\n".join(pages.values()), re.MULTILINE))
    recorded = {rule["record"] for group in RULES["groups"] for rule in group["rules"] if "record" in rule}
    asked_for = set().union(*map(metrics_of, expressions()))
    assert asked_for - served - recorded - OWN == set()
    assert "kubelet_evictions" in asked_for and "container_cpu_cfs_periods_total" in asked_for


def test_every_alert_says_what_it_means_and_what_to_do() -> None:
    alerts: list[dict[str, Any]] = [r for group in RULES["groups"] for r in group["rules"] if "alert" in r]
    assert len(alerts) >= 7
    for alert in alerts:
        assert set(alert["annotations"]) == {"summary", "description", "action"}
        assert alert["labels"]["severity"] in ("critical", "warning", "info")


@needs_promtool
async def test_prometheus_finds_no_fault_but_names_that_are_given(
    pages: dict[str, str],
) -> None:
    for text in pages.values():
        command = ["promtool", "check", "metrics"]
        done = subprocess.run(command, input=text, text=True, capture_output=True, timeout=30)  # noqa: ASYNC221
        faults = {line.split()[0] for line in (done.stdout + done.stderr).splitlines() if line}
        assert faults <= GIVEN_NAMES


@needs_promtool
def test_each_alert_fires_on_what_it_is_for(tmp_path: Path) -> None:
    shutil.copy(SHIPPED / "rules.yaml", tmp_path)
    shutil.copy(ROOT / "tests" / "fixtures" / "prometheus_rules_test.yaml", tmp_path / "tests.yaml")
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "tests.yaml")],
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_the_example_configuration_is_prometheus_own() -> None:
    command = ["promtool", "check", "config", "--syntax-only", str(SHIPPED / "scrape.yaml")]
    done = subprocess.run(command, text=True, capture_output=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
