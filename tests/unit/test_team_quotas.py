"""Elastic quotas on the node: refusals at the door, pods taken back, what operators are shown."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from nodeagent.__main__ import main
from nodeagent.admission.elastic_quota.quotas import QuotaSettings
from nodeagent.api.pod import Pod
from nodeagent.config import parse_config
from nodeagent.pods.team_quotas import QuotaPod, TeamQuotas, quota_settings
from nodeagent.scheduling.fit import NodeView
from nodeagent.server.app import create_app
from nodeagent.sources.manifests import ManifestReader
from tests.unit.agent_server import serving
from tests.unit.elastic_quotas import amounts, quota, quota_pod
from tests.unit.shown_node import ShownNode

QUOTA = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: {name}
  labels: {{quota.scheduling.koordinator.sh/parent: "{parent}",
            quota.scheduling.koordinator.sh/is-parent: "{is_parent}"}}
spec:
  min: {{cpu: 2, memory: 2Gi}}
  max: {{cpu: {most}, memory: 8Gi}}
"""


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Teams:
    """Two teams on ten CPUs, five guaranteed to each."""

    def __init__(self, **chosen: Any) -> None:
        self.pods: list[QuotaPod] = []
        self.clock = Clock()
        view = NodeView("n1", amounts(10, 10))
        self.quotas = TeamQuotas(QuotaSettings(**chosen), lambda: view, lambda: self.pods, self.clock)
        self.quotas.groups = (quota("red", (5, 5), (10, 10)), quota("blue", (5, 5), (10, 10)))

    def run(self, pod: Pod) -> None:
        self.pods.append(QuotaPod(pod, holds_resources=True))


def test_without_quotas_nobody_is_judged() -> None:
    teams = Teams()
    teams.quotas.groups = ()
    assert teams.quotas.judge(quota_pod("p", "red", 100, 1)) is None


def test_a_pod_that_waits_calls_back_what_its_team_lent() -> None:
    teams = Teams()
    teams.run(quota_pod("borrower", "red", 8, 1, node="n1"))
    more = teams.quotas.judge(quota_pod("more", "red", 2, 1, node="n1"))
    assert more is not None and more.admits
    teams.pods.append(QuotaPod(quota_pod("owner", "blue", 5, 1, node="n1"), holds_resources=False))
    more = teams.quotas.judge(quota_pod("more", "red", 2, 1, node="n1"))
    assert more is not None and not more.admits
    assert "runtime: cpu:5," in more.message and "used: cpu:8," in more.message


def test_what_was_lent_is_taken_back_only_where_that_is_asked_for() -> None:
    for revokes, expected in ((False, {}), (True, {"red": ["borrower"]})):
        teams = Teams(revokes=revokes, delay_evict_seconds=60)
        teams.run(quota_pod("borrower", "red", 8, 1, node="n1"))
        assert teams.quotas.to_revoke() == {}
        teams.pods.append(QuotaPod(quota_pod("owner", "blue", 5, 1), holds_resources=False))
        teams.clock.seconds = 61
        found = teams.quotas.to_revoke()
        names = {group: [each.pod.metadata.name for each in pods] for group, pods in found.items()}
        assert names == expected


def test_the_configuration_is_koordinators() -> None:
    text = """
apiVersion: nodeagent.io/v1alpha1
kind: AgentConfiguration
elasticQuota: {monitorAllQuotas: true, delayEvictTime: 5m, enableCheckParentQuota: true}
"""
    settings = quota_settings(parse_config(text.encode(), "test").agent.elastic_quota)
    assert (settings.revokes, settings.delay_evict_seconds, settings.check_parents) == (True, 300.0, True)
    assert settings.runtime_quota and settings.min_quota_scale


def test_groups_in_manifests_find_their_parents_in_any_file(tmp_path: Path) -> None:
    child = QUOTA.format(name="leaf", parent="dept", is_parent="false", most=8)
    parent = QUOTA.format(name="dept", parent="", is_parent="true", most=8)
    lost = QUOTA.format(name="lost", parent="nowhere", is_parent="false", most=8)
    (tmp_path / "a.yaml").write_text(child)
    (tmp_path / "b.yaml").write_text(parent)
    (tmp_path / "c.yaml").write_text(lost)
    (tmp_path / "d.yaml").write_text(QUOTA.format(name="greedy", parent="", is_parent="false", most=1))
    found = ManifestReader(tmp_path, "n1").read()
    assert [each.metadata.name for each in found.policies.elastic_quotas] == ["dept", "leaf"]
    assert {Path(error.file).name: error.text.partition("request: ")[2] for error in found.errors} == {
        "c.yaml": "fill quota lost failed, parent not exist",
        "d.yaml": "resourceKey cpu of quota greedy min 2 > max 1",
    }


class TestShown:
    @pytest.fixture
    async def client(self, tmp_path: Path) -> Any:
        async with TestClient(TestServer(create_app(ShownNode(tmp_path / "node")))) as client:
            yield client

    async def test_one_group_in_both_spellings(self, client: Any) -> None:
        old = await (await client.get("/apis/v1/plugins/ElasticQuota/quota/red")).json()
        new = await (await client.get("/apis/v1/plugins/ElasticQuota/quotas/red")).json()
        assert old.pop("podCache") == {
            "teams/web": {"isAssigned": True, "resource": {"cpu": "8", "memory": "1Gi"}}
        }
        assert old == new
        assert (new["used"]["cpu"], new["runtime"]["cpu"], new["parentName"]) == (
            "8",
            "8",
            "koordinator-root-quota",
        )

    async def test_an_unknown_group_is_named(self, client: Any) -> None:
        answer = await client.get("/apis/v1/plugins/ElasticQuota/quotas/nobody")
        assert (answer.status, await answer.json()) == (404, {"message": "cannot find quota nobody"})

    async def test_the_tree_on_the_command_line(
        self, client: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        everything = await (await client.get("/apis/v1/plugins/ElasticQuota/quotas")).json()
        with serving({"/apis/v1/plugins/ElasticQuota/quotas": everything}) as server:
            assert main(["quota", "tree", f"--server={server}"]) == 0
            lines = capsys.readouterr().out.splitlines()
            red = next(line.split() for line in lines if line.startswith("red"))
            # five guaranteed, eight in use: three borrowed, and blue lends all of its five to the node
            assert red == ["red", "cpu", "5", "10", "8", "8", "8", "-", "3"]
            blue = next(line.split() for line in lines if line.startswith("blue"))
            assert blue[-2:] == ["5", "-"]
            assert main(["quota", "tree", "-o", "json", f"--server={server}"]) == 0
        shown = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
        assert shown["red"]["borrowed"] == {"cpu": "3"}

    async def test_a_group_is_explained_in_sentences(
        self, client: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = "/apis/v1/plugins/ElasticQuota/quotas?includePods=true"
        with serving({path: await (await client.get(path)).json()}) as server:
            assert main(["explain", "quota/red", f"--server={server}"]) == 0
            text = capsys.readouterr().out
            assert main(["explain", "quota/blue", f"--server={server}"]) == 0
            lender = capsys.readouterr().out
            assert main(["explain", "quota/green", f"--server={server}"]) == 1
            refused = capsys.readouterr().err
        assert "5 is guaranteed, 10 the most it may ever use" in text
        assert "8 may be used now, 8 is asked for, 8 is used" in text
        assert "3 is borrowed: others may call it back" in text
        assert "teams/web: cpu 8, memory 1Gi" in text
        assert "5 of what is guaranteed is lent to others until its pods ask for it" in lender
        assert "quota/green: no such group; there are: " in refused and "blue" in refused
