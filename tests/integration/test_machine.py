"""The virtual machine itself is what the other tests take it for."""

import pytest

from tests.integration.node import Node


def test_it_has_cgroup_v2_alone_with_every_controller_and_psi(machine: Node) -> None:
    controllers = machine.read("/sys/fs/cgroup/cgroup.controllers").split()
    assert {"cpuset", "cpu", "io", "memory", "hugetlb", "pids"} <= set(controllers)
    assert machine.run("stat -f -c %T /sys/fs/cgroup").strip() == "cgroup2fs"
    assert machine.read("/sys/fs/cgroup/memory.pressure").startswith("some avg10=")


def test_every_unit_came_up_and_the_agent_waits_to_be_started(machine: Node) -> None:
    assert machine.run("systemctl list-units --failed --plain --no-legend") == ""
    assert machine.run("systemctl is-enabled nodeagent.service", check=False).strip() == "disabled"


def test_the_installed_project_is_the_checkouts(machine: Node) -> None:
    from nodevm.paths import CHECKOUT

    script = "import nodeagent.clock as m; print(open(m.__file__).read(), end='')"
    installed = machine.run(f'cd / && /opt/nodeagent/bin/python -c "{script}"')
    assert installed == (CHECKOUT / "nodeagent" / "clock.py").read_text()


@pytest.mark.shape("numa2")
def test_two_sockets_of_two_cores_of_two_threads_on_two_numa_nodes(machine: Node) -> None:
    lines = machine.run("lscpu -p=cpu,core,socket,node | grep -v '#'").split()
    assert lines == ["0,0,0,0", "1,0,0,0", "2,1,0,0", "3,1,0,0", "4,2,1,1", "5,2,1,1", "6,3,1,1", "7,3,1,1"]


@pytest.mark.shape("numa4")
def test_eight_cpus_on_four_numa_nodes(machine: Node) -> None:
    lists = machine.run("cat /sys/devices/system/node/node[0-9]*/cpulist").split()
    assert lists == ["0-1", "2-3", "4-5", "6-7"]


@pytest.mark.shape("small")
def test_a_small_machine_has_little_memory(machine: Node) -> None:
    total_kib = int(machine.run("awk '/MemTotal/ {print $2}' /proc/meminfo"))
    assert 500_000 < total_kib < 700_000


@pytest.mark.shape("kubelet")
def test_the_machine_of_the_recorded_tree(machine: Node) -> None:
    """4 CPUs and, within a thousandth, the memory that kubelet saw: what follows can be compared."""
    total_kib = int(machine.run("awk '/MemTotal/ {print $2}' /proc/meminfo"))
    assert machine.run("nproc").strip() == "4"
    assert total_kib == pytest.approx(2_983_832, rel=1e-3)
