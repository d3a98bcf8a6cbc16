"""Machines read from sysfs trees, lscpu output and short forms."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.hardware.cpuset import HIGHEST_CPU, CpuSet, CpuSetError, lowest_bits
from nodeagent.hardware.topology import (
    Topology,
    TopologyError,
    load_topology,
    parse_lscpu,
    parse_short,
    read_topology,
    regular_topology,
)
from tests.unit.machines import LARGE, machines
from tests.unit.sysfs_trees import CAPTURED, put, unpack, write_sysfs

CPU_SETS = st.frozensets(st.integers(0, 300))


@given(CPU_SETS, CPU_SETS)
def test_a_cpu_set_is_a_set(left: frozenset[int], right: frozenset[int]) -> None:
    one, other = CpuSet.from_iterable(left), CpuSet.from_iterable(right)
    assert set(one | other) == left | right
    assert set(one & other) == left & right
    assert set(one - other) == left - right
    assert (one <= other) == (left <= right)
    assert len(one) == len(left)
    assert list(one) == sorted(left)
    assert all((cpu in one) == (cpu in left) for cpu in range(310))
    assert CpuSet.parse(str(one)) == one
    assert list(CpuSet(lowest_bits(one.mask, 3))) == sorted(left)[:3]


@pytest.mark.parametrize(
    ("text", "cpus"), [("", []), ("5", [5]), ("0-3,8", [0, 1, 2, 3, 8]), ("7,2-3", [2, 3, 7])]
)
def test_the_kernels_list_format(text: str, cpus: list[int]) -> None:
    assert list(CpuSet.parse(text)) == cpus


@pytest.mark.parametrize("text", ["x", "1-", "-1", "3-1", "1,,2", "1 ", "٣", "9" * 40, str(HIGHEST_CPU + 1)])
def test_what_is_no_cpu_list_is_refused(text: str) -> None:
    with pytest.raises(CpuSetError):
        CpuSet.parse(text)


@pytest.mark.parametrize("name", LARGE)
def test_a_machine_is_read_back_as_it_was_written(name: str, tmp_path: Path) -> None:
    assert read_topology(write_sysfs(tmp_path, LARGE[name])) == LARGE[name]


@settings(max_examples=30, deadline=None)
@given(topology=machines())
def test_any_machine_is_read_back(topology: Topology, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert read_topology(write_sysfs(tmp_path_factory.mktemp("sys"), topology)) == topology


def test_the_two_node_virtual_machine(tmp_path: Path) -> None:
    topology = read_topology(unpack("vm-numa2", tmp_path))
    assert topology.online == CpuSet.parse("0-7")
    assert {core: str(CpuSet(cpus)) for core, cpus in topology.cores.items()} == {
        0: "0-1",
        2: "2-3",
        4: "4-5",
        6: "6-7",
    }
    assert {numa: str(CpuSet(cpus)) for numa, cpus in topology.numas.items()} == {0: "0-3", 1: "4-7"}
    assert topology.sockets == topology.numas
    assert list(topology.uncores.values()) == list(topology.numas.values())
    assert [node.distances for node in topology.numa_nodes] == [(10, 20), (20, 10)]
    assert [node.memory_bytes // 1024 for node in topology.numa_nodes] == [1029928, 992900]


def test_a_kernel_that_tells_nothing_but_the_cpus(tmp_path: Path) -> None:
    put(tmp_path, "devices/system/cpu/online", "0-2")
    topology = read_topology(tmp_path, memory_bytes=1024)
    assert len(topology.cores) == 3
    assert len(topology.sockets) == len(topology.numas) == len(topology.uncores) == 1
    assert [node.memory_bytes for node in topology.numa_nodes] == [1024]


def test_a_machine_without_an_l3_cache_has_one_group_a_socket(tmp_path: Path) -> None:
    topology = read_topology(write_sysfs(tmp_path, parse_short("2x2x4x2"), caches=False))
    assert topology.uncores == topology.sockets


def test_arm_cores_of_different_capacity(tmp_path: Path) -> None:
    write_sysfs(tmp_path, parse_short("1x4x1"))
    for cpu, capacity in enumerate((1024, 1024, 512, 512)):
        put(tmp_path, f"devices/system/cpu/cpu{cpu}/cpu_capacity", capacity)
    kinds = {name: str(cpus) for name, cpus in read_topology(tmp_path).core_types}
    assert kinds == {"capacity-1024": "0-1", "capacity-512": "2-3"}


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("online", "0-"),
        ("online", ""),
        ("cpu1/topology/core_cpus_list", "a"),
        ("cpu1/topology/physical_package_id", "x"),
    ],
)
def test_a_damaged_tree_is_refused_with_the_file(file: str, content: str, tmp_path: Path) -> None:
    write_sysfs(tmp_path, parse_short("1x2x1"))
    put(tmp_path, f"devices/system/cpu/{file}", content)
    with pytest.raises(TopologyError, match=file):
        read_topology(tmp_path)


def test_short_forms() -> None:
    assert parse_short("2x4x2") == regular_topology(2, 4, 2)
    numa = parse_short("1x2x4x2", memory_bytes_per_node=8)
    assert (len(numa.sockets), len(numa.numas), len(numa.cores), len(numa.cpus)) == (1, 2, 8, 16)
    assert [node.memory_bytes for node in numa.numa_nodes] == [8, 8]


@pytest.mark.parametrize("text", ["", "2", "2x4", "0x4x2", "2x4x2x", "axbxc", "9999x9999x9", "-1x2x2"])
def test_what_is_no_short_form_is_refused(text: str) -> None:
    with pytest.raises(TopologyError, match=r"expected|more than"):
        parse_short(text)


def lscpu_columns(topology: Topology) -> str:
    rows = [f"{cpu.cpu},{cpu.core},{cpu.socket},{cpu.numa},,0,0,0,{cpu.uncore},Y" for cpu in topology.cpus]
    rows += [f"{cpu},,,,,,,,,N" for cpu in topology.offline]
    return "\n".join(["# comment", "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3,Online", *rows])


def lscpu_extended(topology: Topology) -> str:
    cpus = [
        {
            "cpu": cpu.cpu,
            "node": cpu.numa,
            "socket": cpu.socket,
            "core": cpu.core,
            "l1d:l1i:l2:l3": f"0:0:0:{cpu.uncore}",
            "online": True,
        }
        for cpu in topology.cpus
    ]
    return json.dumps({"cpus": cpus + [{"cpu": cpu, "online": False} for cpu in topology.offline]})


def lscpu_summary(topology: Topology) -> str:
    fields = {
        "CPU(s)": len(topology.cpus),
        "On-line CPU(s) list": topology.online,
        "Thread(s) per core": topology.cpus_per_core,
        "Socket(s)": len(topology.sockets),
        "L3": f"64 MiB ({len(topology.uncores)} instances)",
        **{f"NUMA node{numa} CPU(s)": CpuSet(cpus) for numa, cpus in topology.numas.items()},
    }
    entries = [{"field": f"{name}:", "data": str(value)} for name, value in fields.items()]
    # Newer versions nest the fields in sections.
    return json.dumps({"lscpu": [{"field": "Machine:", "data": None, "children": entries}]})


@settings(max_examples=30, deadline=None)
@given(machines())
def test_lscpu_rows_tell_the_whole_machine(topology: Topology) -> None:
    for dump in (lscpu_columns(topology), lscpu_extended(topology)):
        read = parse_lscpu(dump)
        assert read.cpus == topology.cpus
        assert read.offline == topology.offline


@pytest.mark.parametrize("text", ["1x4x2", "2x4x2", "2x2x4x2", "2x8x1"])
def test_lscpus_summary_tells_an_even_machine(text: str) -> None:
    topology = parse_short(text)
    assert parse_lscpu(lscpu_summary(topology)).cpus == topology.cpus


def test_lscpus_summary_of_a_virtual_machine_with_adjacent_siblings() -> None:
    topology = regular_topology(2, 2, 2, adjacent_siblings=True)
    assert parse_lscpu(lscpu_summary(topology)).cpus == topology.cpus


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"lscpu":[]}', '{"cpus":[]}', '{"lscpu":3}', "a,b,c", "# CPU\nx", "[" * 100_000],
)
def test_what_is_not_from_lscpu_is_refused(text: str) -> None:
    with pytest.raises(TopologyError):
        parse_lscpu(text)


def test_a_source_is_a_tree_a_file_or_a_short_form(tmp_path: Path) -> None:
    topology = parse_short("2x2x2")
    tree = write_sysfs(tmp_path / "sys", topology)
    dump = tmp_path / "lscpu.txt"
    dump.write_text(lscpu_columns(topology))
    assert load_topology("2x2x2") == topology
    assert load_topology(str(tree)) == topology
    assert load_topology(str(dump)).cpus == topology.cpus
    dump.write_text("nothing")
    with pytest.raises(TopologyError, match=r"lscpu\.txt"):
        load_topology(str(dump))


@pytest.mark.parametrize("dump", ["json", "extended.json", "columns"])
def test_lscpu_and_sysfs_of_one_machine_agree(dump: str, tmp_path: Path) -> None:
    """The virtual machine with four NUMA nodes of two single-thread cores."""
    sysfs = read_topology(unpack("vm-numa4", tmp_path))
    told = parse_lscpu((CAPTURED / f"vm-numa4.lscpu.{dump}").read_text())
    assert [replace(cpu, die=0) for cpu in sysfs.cpus] == list(told.cpus)
    assert [node.node for node in told.numa_nodes] == [node.node for node in sysfs.numa_nodes]


def test_a_machine_with_a_cpu_offline(tmp_path: Path) -> None:
    topology = read_topology(unpack("vm-numa4-cpu5-offline", tmp_path))
    assert (str(topology.online), str(topology.offline)) == ("0-4,6-7", "5")
    assert [str(CpuSet(cpus)) for cpus in topology.numas.values()] == ["0-1", "2-3", "4", "6-7"]
