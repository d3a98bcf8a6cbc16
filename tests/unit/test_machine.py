"""The machine as the agent takes it: hosts it refuses, and what a configuration makes of one."""

from pathlib import Path

import pytest

from nodeagent.config import Config, ConfigError, parse_config
from nodeagent.hardware.node import NodeInfo
from nodeagent.hardware.topology import parse_short
from nodeagent.machine import (
    Roots,
    UnsuitableMachine,
    manager_settings,
    node_amounts,
    require_fit_host,
    set_own_oom_score_adj,
)
from nodeagent.resources.managers import ResourceManagers
from nodeagent.scheduling.fit import NodeView, fit
from tests.unit.host_files import HostFiles
from tests.unit.resource_pods import container, pod

GIB = 1 << 30


@pytest.fixture
def host(tmp_path: Path) -> HostFiles:
    return HostFiles(tmp_path)


def refusal(host: HostFiles, text: str = "") -> str:
    with pytest.raises(UnsuitableMachine) as caught:
        require_fit_host(host.parsed(text), Roots(host.proc, host.sys, host.cgroup), host.user)
    return str(caught.value)


def test_a_fit_host_is_taken(host: HostFiles) -> None:
    require_fit_host(host.parsed(), Roots(host.proc, host.sys, host.cgroup), 0)


def test_every_refusal_is_one_sentence_that_names_the_lack_the_way_out_and_the_doctor(
    host: HostFiles,
) -> None:
    host.write("proc/swaps", "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 100\n")
    said = refusal(host)
    assert said.startswith("this host cannot be a node: swap is on: /dev/zram0")
    assert "running with swap on is not supported, please disable swap or set failSwapOn: false" in said
    assert said.endswith("'nodeagent doctor' checks everything")
    require_fit_host(host.parsed("failSwapOn: false"), Roots(host.proc, host.sys, host.cgroup), 0)

    host.write("cgroup/cgroup.controllers", "cpu io pids")
    assert "cgroup controllers missing: cpuset, memory" in refusal(host)
    assert "cgroup_disable=" in refusal(host)

    host.write("proc/self/mountinfo", f"30 23 0:26 / {host.cgroup}/memory rw - cgroup cgroup rw,memory\n")
    assert f"v1 hierarchy: {host.cgroup} is not a cgroup2 mount" in refusal(host)

    host.write("proc/sys/kernel/osrelease", "5.10.0-28-amd64\n")
    assert "Linux 5.10.0-28-amd64" in refusal(host)
    assert "5.14 or later: cgroup.kill" in refusal(host)

    host.user = 1000
    assert "running as user 1000" in refusal(host)
    assert "needs root" in refusal(host)
    assert "\n" not in refusal(host)


def test_the_agents_own_oom_score_adj_is_set(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/oom_score_adj").write_text("0")
    set_own_oom_score_adj(tmp_path, -999)
    assert (tmp_path / "self/oom_score_adj").read_text() == "-999"


def config(text: str) -> Config:
    return parse_config(
        f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{text}".encode(), "c.yaml"
    )


def test_reservations_and_hard_thresholds_are_kept_from_pods() -> None:
    info = NodeInfo(cpu_milli=4000, memory_bytes=8 * GIB, pids=30000)
    amounts = node_amounts(
        config(
            "systemReserved: {cpu: 500m, memory: 1Gi}\nkubeReserved: {memory: 512Mi}\n"
            "evictionHard: {memory.available: 512Mi}\nmaxPods: 7"
        ),
        info,
    )
    assert {name: str(amount) for name, amount in amounts.capacity.items()} == {
        "cpu": "4",
        "memory": "8Gi",
        "pods": "7",
    }
    assert str(amounts.allocatable["cpu"]) == "3500m"
    assert amounts.allocatable["memory"].value() == 6 * GIB
    # The limit of kubepods leaves the eviction threshold to those who are to be evicted.
    assert amounts.resources.kubepods["memory"].value() == 6 * GIB + 512 * (1 << 20)


def test_more_than_there_is_cannot_be_reserved() -> None:
    info = NodeInfo(cpu_milli=1000, memory_bytes=GIB, pids=30000)
    with pytest.raises(UnsuitableMachine, match="Resource 'memory': 2148Mi is reserved"):
        node_amounts(config("systemReserved: {memory: 2Gi}"), info)


def test_the_resource_managers_follow_configuration_and_reservation() -> None:
    kubelet = config("cpuManagerPolicy: static\nreservedSystemCPUs: 0,2\ntopologyManagerScope: pod")
    amounts = node_amounts(kubelet, NodeInfo(cpu_milli=4000, memory_bytes=8 * GIB, pids=30000))
    settings = manager_settings(kubelet, amounts.resources.reservation)
    assert (settings.cpu_manager_policy, settings.topology_manager_scope) == ("static", "pod")
    assert str(settings.reserved_system_cpus) == "0,2"
    assert str(settings.node_reservation["cpu"]) == "2"


DEVICES = """
apiVersion: nodeagent.io/v1alpha1
kind: AgentConfiguration
devices:
- name: example.com/gpu
  devices:
  - {id: gpu0, numaNodes: [0], deviceNodes: [/dev/gpu0], env: {GPU: "0"}}
  - {id: gpu1, numaNodes: [1], deviceNodes: [/dev/gpu1], env: {GPU: "1"}}
"""


def test_listed_devices_can_be_asked_for_until_they_are_all_taken() -> None:
    chosen = parse_config(DEVICES.encode(), "c.yaml")
    amounts = node_amounts(chosen, NodeInfo(cpu_milli=4000, memory_bytes=8 * GIB, pids=30000))
    assert amounts.capacity["example.com/gpu"].value() == 2
    assert amounts.allocatable["example.com/gpu"].value() == 2
    settings = manager_settings(chosen, amounts.resources.reservation)
    managers = ResourceManagers(parse_short("2x2x1"), settings, None)
    wanted = container("main", "1", more={"example.com/gpu": "1"})
    running = []
    for name in ("a", "b"):
        newcomer = pod(name, wanted)
        assert fit(newcomer, NodeView("n1", amounts.allocatable), running).fits
        assert managers.admit(newcomer, running).admitted
        running.append(newcomer)
    held = [managers.container_devices(name, "main")[0] for name in ("a", "b")]
    assert sorted(device.environment["GPU"] for device in held) == ["0", "1"]
    refused = fit(pod("c", wanted), NodeView("n1", amounts.allocatable), running)
    assert refused.reason == "OutOfexample.com/gpu"


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("{name: gpu}", "devices[0].name"),
        ("{name: example.com/a b}", "must be an extended resource"),
        ("{name: kubernetes.io/gpu}", "of a domain of its own"),
        ("{name: example.com/gpu, devices: [{}]}", "devices[0].devices[0].id"),
        ("{name: example.com/gpu, devices: [{id: a}, {id: a}]}", "that no other device has"),
        (
            "{name: example.com/gpu, devices: [{id: a, deviceNodes: [/etc/passwd]}]}",
            "must be a path below /dev",
        ),
        ("{name: example.com/gpu, devices: [{id: a, deviceNodes: [/dev/../etc/x]}]}", "path below /dev"),
        ("{name: example.com/gpu, devices: [{id: a, mounts: [{hostPath: /a}]}]}", "containerPath"),
        ("{name: example.com/gpu, devices: [{id: a, nodes: []}]}", "devices[0].devices[0].nodes"),
    ],
)
def test_a_device_list_with_a_fault_is_refused_with_its_place(device: str, message: str) -> None:
    text = f"apiVersion: nodeagent.io/v1alpha1\nkind: AgentConfiguration\ndevices: [{device}]\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text.encode(), "c.yaml")
    assert message in str(caught.value)
