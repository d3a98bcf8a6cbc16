"""`tree` on cgroups made of files: values, usage, names, and the limit that would be met first."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.__main__ import main
from tests.unit.agent_server import NOBODY, serving

UID = "11111111-2222-3333-4444-555555555555"
POD = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
LEAF = f"{POD}/nodeagent-abc.scope"
MIB = 1 << 20


def cgroup(root: Path, path: str, **files: str) -> None:
    directory = root / path
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("_", ".", 1).replace("__", ".")).write_text(text + "\n")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[list[str]]:
    root, proc = tmp_path / "cgroup", tmp_path / "proc"
    cgroup(root, "", cpuset_cpus__effective="0-3")
    cgroup(
        root,
        "kubepods.slice",
        cpu_weight="79",
        cpu_max="max 100000",
        cpuset_cpus__effective="0-3",
        memory_max=str(1000 * MIB),
        memory_current=str(900 * MIB),
        pids_max="5000",
        pids_current="30",
        cpu_stat="usage_usec 2500000",
    )
    cgroup(root, "kubepods.slice/kubepods-burstable.slice", memory_max="max", memory_current=str(900 * MIB))
    cgroup(
        root,
        POD,
        cpu_max="50000 100000",
        memory_max=str(200 * MIB),
        memory_current=str(150 * MIB),
        pids_max="100",
        pids_current="4",
    )
    cgroup(
        root,
        LEAF,
        cpu_max="max 100000",
        cpuset_cpus="2-3",
        memory_max=str(180 * MIB),
        memory_current=str(150 * MIB),
        memory_oom__group="1",
        pids_max="max",
        pids_current="4",
    )
    cgroup(root, f"{LEAF}/inner", memory_max="1")
    (proc / "sys/kernel").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal:  2048000 kB\nMemAvailable: 1024000 kB\n")
    (proc / "sys/kernel/pid_max").write_text("32768\n")
    (proc / "loadavg").write_text("0.1 0.1 0.1 2/300 4000\n")
    with serving({"/api/v1/pods": {"kind": "PodList", "items": [pod()]}}) as server:
        yield ["tree", f"--cgroup-root={root}", f"--proc-root={proc}", f"--server={server}", "--interval=0"]


def pod() -> dict[str, Any]:
    status = {
        "name": "app",
        "image": "",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "containerID": "process://abc",
    }
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": UID},
        "spec": {"containers": [{"name": "app"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def data(host: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    assert main([*host, "-o", "json"]) == 0
    return {level["path"]: level for level in json.loads(capsys.readouterr().out)}


def test_the_tree_is_shown_with_names_values_and_usage(
    host: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(host) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["CGROUP", "CPU", "WEIGHT", "CPU"]
    assert [row.split("  ")[0] or row.strip().split("  ")[0] for row in rows] == [
        "kubepods.slice",
        "kubepods-burstable.slice",
        "default/web",
        "app",
    ]
    assert rows[0].split()[:7] == ["kubepods.slice", "2.5s", "79", "max", "100000", "0-3", "900Mi"]
    assert rows[2].startswith("    default/web") and rows[3].startswith("      app")


def test_the_limit_that_would_be_met_first_binds(host: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    levels = data(host, capsys)
    bound = levels[LEAF]["boundBy"]
    # 30 MiB are left in the container, 50 in the pod, 100 in kubepods.
    assert bound["memory"] == {"path": LEAF, "limit": 180 * MIB, "left": 30 * MIB, "file": "memory.max"}
    # Half a CPU by the pod's quota; its own two CPUs and the machine's four are more.
    assert bound["cpu"] == {"path": POD, "limit": 500, "left": 500, "file": "cpu.max"}
    assert bound["pids"]["path"] == POD
    burstable = levels["kubepods.slice/kubepods-burstable.slice"]["boundBy"]
    assert burstable["memory"]["path"] == "kubepods.slice"
    assert burstable["cpu"] == {
        "path": "machine",
        "limit": 4000,
        "left": 4000,
        "file": "cpuset.cpus.effective",
    }
    assert main(host) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("cpu:pod memory:self pids:pod")


def test_the_data_carry_every_value(host: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    level = data(host, capsys)[LEAF]
    assert level["kind"] == "container" and level["name"] == "app"
    assert level["values"]["memory.oom.group"] == "1"
    assert level["usage"] == {"memoryBytes": 150 * MIB, "pids": 4}


def test_what_a_container_makes_below_its_leaf_is_left_out(
    host: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(data(host, capsys)) == [
        "kubepods.slice",
        "kubepods.slice/kubepods-burstable.slice",
        POD,
        LEAF,
    ]


def test_without_the_agent_uids_stand_for_names(host: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*host, f"--server={NOBODY}"]) == 0
    said = capsys.readouterr()
    assert f"pod {UID}" in said.out and "abc" in said.out
    assert "no agent answers" in said.err and "pods are shown by UID" in said.err


def test_cpu_use_is_measured_over_the_interval(host: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*host, "--interval=0.01", "-o", "json"]) == 0
    levels = json.loads(capsys.readouterr().out)
    assert levels[0]["usage"]["cpuMillicores"] == 0


def test_a_host_without_pods_gets_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", f"--cgroup-root={tmp_path}"]) == 1
    assert f"there is no kubepods.slice below {tmp_path}" in capsys.readouterr().err
    assert main(["tree", f"--cgroup-root={tmp_path}/none"]) == 1
    assert "No such file or directory; is cgroup v2 mounted there?" in capsys.readouterr().err
    assert main(["tree", "--interval=-1"]) == 1
    assert "expected 0 to 3600 seconds" in capsys.readouterr().err
