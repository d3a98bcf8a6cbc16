"""What an operator and a pod see of the resource managers, through their one door."""

from pathlib import Path

import pytest

from nodeagent.api.pod import Container
from nodeagent.hardware.cpuset import CpuSet
from nodeagent.hardware.topology import Topology, parse_short, regular_topology
from nodeagent.resources.device_manager import Device, DeviceResource
from nodeagent.resources.errors import OptionError
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from tests.unit.resource_nodes import GIB, admitted, machine, memory_settings, settings
from tests.unit.resource_pods import container, pod


def cpus(managers: ResourceManagers, uid: str, name: str) -> str:
    return str(managers.container_cpus(uid, name))


def test_whole_guaranteed_requests_get_cpus_of_their_own_and_the_rest_shares(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), settings(), tmp_path)
    both = pod("p", container("own", "2"), container("fraction", "1500m"))
    admitted(managers.admit(both, []))
    assert cpus(managers, "p", "own") == "1,9"
    assert cpus(managers, "p", "fraction") == "0,2-8,10-15"
    assert managers.is_exclusive("p", "own")
    assert not managers.is_exclusive("p", "fraction")
    assert managers.has_exclusive_cpus(both)
    assert str(managers.shared_pool) == "0,2-8,10-15"
    assert managers.exclusive_cpus_per_numa() == {0: 2, 1: 0}


def test_without_a_policy_cpusets_are_left_alone(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), ManagerSettings(), tmp_path)
    admitted(managers.admit(pod("p", container("own", "2")), []))
    assert managers.container_cpus("p", "own") is None
    assert managers.container_mems("p", "own") is None
    assert managers.shared_pool == machine().online


def test_a_burstable_pod_is_told_which_container_made_it_so(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), settings(), tmp_path)
    admission = managers.admit(pod("p", container("own", "2"), container("free")), [])
    assert "container free has no cpu limit" in " ".join(admitted(admission).explanation)


def test_the_state_survives_a_restart(tmp_path: Path) -> None:
    first = ResourceManagers(machine(), settings(), tmp_path)
    own = pod("p", container("own", "4"))
    first.admit(own, [])
    second = ResourceManagers(machine(), settings(), tmp_path)
    assert second.problems == ()
    assert cpus(second, "p", "own") == cpus(first, "p", "own")
    admitted(second.admit(own, [own]))
    assert cpus(second, "p", "own") == cpus(first, "p", "own")
    assert (tmp_path / "cpu_manager_state").stat().st_mode & 0o777 == 0o600


def test_a_finished_pods_cpus_are_free_for_the_very_next_admission(tmp_path: Path) -> None:
    managers = ResourceManagers(parse_short("1x4x1"), settings(), tmp_path)
    first, second = pod("a", container("own", "3")), pod("b", container("own", "3"))
    admitted(managers.admit(first, []))
    assert not managers.admit(second, [first]).admitted
    admitted(managers.admit(second, []))
    assert not managers.has_exclusive_cpus(first)


def test_a_refused_pod_leaves_nothing_behind(tmp_path: Path) -> None:
    managers = ResourceManagers(parse_short("1x4x1"), settings(), tmp_path)
    before = (tmp_path / "cpu_manager_state").read_bytes()
    refused = managers.admit(pod("p", container("fits", "2"), container("does-not", "2")), [])
    assert (refused.reason, refused.message) == (
        "UnexpectedAdmissionError",
        "Allocate failed due to not enough cpus available to satisfy request: requested=2, available=1, "
        "which is unexpected",
    )
    assert str(managers.shared_pool) == "0-3"
    assert (tmp_path / "cpu_manager_state").read_bytes() == before
    assert managers.cpu_pinning == (2, 1)


def test_app_containers_use_the_cpus_of_init_containers_but_not_of_sidecars(tmp_path: Path) -> None:
    managers = ResourceManagers(parse_short("1x8x1"), settings(), tmp_path)
    init = (container("setup", "4"), container("side", "2", sidecar=True))
    admitted(managers.admit(pod("p", container("app", "4"), init=init), []))
    setup, side, app = (managers.container_cpus("p", name) for name in ("setup", "side", "app"))
    assert setup and side and app
    assert not side & app
    assert setup & app
    assert len(managers.shared_pool) == 8 - 6


def test_a_refusal_shows_the_numbers_that_were_compared(tmp_path: Path) -> None:
    """Three nodes of six CPUs with two free each: four would fit one node, were it empty."""
    three = regular_topology(3, 6, 1)
    managers = ResourceManagers(three, settings(topology_manager_policy="restricted"), tmp_path)
    # CPU 0 is reserved, so the first node has five for itself.
    fillers = [pod(f"f{index}", container("own", size)) for index, size in enumerate(("3", "4", "4"))]
    for index, filler in enumerate(fillers):
        admitted(managers.admit(filler, fillers[:index]))
    refused = managers.admit(pod("p", container("own", "4")), fillers)
    assert refused.reason == "TopologyAffinityError"
    assert refused.message == "Resources cannot be allocated with Topology locality"
    told = " ".join(refused.explanation)
    assert "4 CPUs were asked for; 6 are free" in told
    assert "node 0: 2 of 6, node 1: 2 of 6, node 2: 2 of 6" in told
    assert "on an empty machine" in told.lower()
    assert managers.topology_admission_errors == 1


def test_strict_reservation_keeps_a_shared_cpu(tmp_path: Path) -> None:
    strict = settings(cpu_manager_policy_options={"strict-cpu-reservation": "true"})
    managers = ResourceManagers(parse_short("1x4x1"), strict, tmp_path)
    assert str(managers.shared_pool) == "1-3"
    refused = managers.admit(pod("p", container("own", "3")), [])
    assert not refused.admitted
    assert "last of the shared pool" in refused.message
    admitted(managers.admit(pod("p", container("own", "2")), []))


def test_reserved_system_cpus_are_never_given_away(tmp_path: Path) -> None:
    listed = settings(reserved_system_cpus=CpuSet.parse("2,5"))
    managers = ResourceManagers(parse_short("1x8x1"), listed, tmp_path)
    admitted(managers.admit(pod("p", container("own", "6")), []))
    assert cpus(managers, "p", "own") == "0-1,3-4,6-7"
    assert str(managers.shared_pool) == "2,5"
    assert not managers.admit(pod("q", container("own", "1")), [pod("p", container("own", "6"))]).admitted


def test_settings_that_contradict_each_other_are_refused_in_kubelets_words(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="can not be used at the same time"):
        options = {"full-pcpus-only": "true", "distribute-cpus-across-cores": "true"}
        ResourceManagers(
            machine(), settings(cpu_manager_policy_options=options, alpha_options=True), tmp_path
        )
    with pytest.raises(OptionError, match='unknown policy: "singel"'):
        ResourceManagers(machine(), settings(topology_manager_policy="singel"), tmp_path)


def test_a_pod_whose_cpu_went_offline_runs_on_what_is_left_until_it_returns(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), settings(), tmp_path)
    own = pod("p", container("own", "2"))
    admitted(managers.admit(own, []))
    assert cpus(managers, "p", "own") == "1,9"
    written = (tmp_path / "cpu_manager_state").read_bytes()
    smaller = without(machine(), "9,14")
    (displaced,) = managers.update_topology(smaller)
    assert (displaced.pod_uid, displaced.container, str(displaced.missing)) == ("p", "own", "9")
    assert "runs on 1" in str(displaced)
    assert cpus(managers, "p", "own") == "1"
    assert str(managers.shared_pool) == "0,2-8,10-13,15"

    # A restart while it is away changes nothing, and no pod gets its CPU.
    managers = ResourceManagers(smaller, settings(), tmp_path)
    assert managers.problems == ()
    admitted(managers.admit(own, [own]))
    assert cpus(managers, "p", "own") == "1"
    assert (tmp_path / "cpu_manager_state").read_bytes() == written

    (returned,) = managers.update_topology(machine())
    assert not returned.missing
    assert cpus(managers, "p", "own") == "1,9"


def test_a_container_without_any_cpu_left_joins_the_shared_pool(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), settings(), tmp_path)
    admitted(managers.admit(pod("p", container("own", "2")), []))
    managers.update_topology(without(machine(), "1,9"))
    assert cpus(managers, "p", "own") == str(managers.shared_pool)


def test_cpus_that_come_online_join_the_shared_pool(tmp_path: Path) -> None:
    managers = ResourceManagers(without(machine(), "15"), settings(), tmp_path)
    assert 15 not in managers.shared_pool
    managers.update_topology(machine())
    assert 15 in managers.shared_pool
    assert ResourceManagers(machine(), settings(), tmp_path).problems == ()


def without(topology: Topology, offline: str) -> Topology:
    gone = CpuSet.parse(offline)
    return Topology(
        tuple(cpu for cpu in topology.cpus if cpu.cpu not in gone), topology.numa_nodes, offline=gone
    )


def test_memory_stays_near_the_cpus(tmp_path: Path) -> None:
    chosen = memory_settings(topology_manager_policy="single-numa-node")
    managers = ResourceManagers(machine(), chosen, tmp_path)
    first, second = (pod(uid, container("own", "4", "4Gi")) for uid in ("a", "b"))
    admitted(managers.admit(first, []))
    admitted(managers.admit(second, [first]))
    assert (cpus(managers, "a", "own"), str(managers.container_mems("a", "own"))) == ("1-2,9-10", "0")
    assert (cpus(managers, "b", "own"), str(managers.container_mems("b", "own"))) == ("4-5,12-13", "1")
    managers.remove("a")
    assert managers.container_mems("a", "own") is None
    again = ResourceManagers(machine(), chosen, tmp_path)
    assert again.problems == ()
    assert str(again.container_mems("b", "own")) == "1"


def test_a_few_megabytes_less_at_the_next_boot_are_no_problem(tmp_path: Path) -> None:
    first = ResourceManagers(machine(), memory_settings(), tmp_path)
    own = pod("p", container("own", "1", "4Gi"))
    admitted(first.admit(own, []))
    drifted = machine(8 * GIB - 3 * 1024**2)
    second = ResourceManagers(drifted, memory_settings(), tmp_path)
    assert second.problems == ()
    assert second.container_mems("p", "own") == first.container_mems("p", "own")
    second.refresh()
    assert ResourceManagers(drifted, memory_settings(), tmp_path).problems == ()
    (problem,) = ResourceManagers(machine(2 * GIB), memory_settings(), tmp_path).problems
    assert "memory total is" in str(problem)
    assert problem.command == "nodeagent state reset memory"


def test_finished_init_containers_give_their_memory_back(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), memory_settings(), tmp_path)
    whole = pod("p", container("app", "1", "1Gi"), init=(container("setup", "1", "4Gi"),))
    admitted(managers.admit(whole, []))
    assert managers.container_mems("p", "setup")
    managers.starting(whole, "app")
    assert managers.container_mems("p", "setup") is None
    admitted(managers.admit(whole, [whole]))
    assert managers.container_mems("p", "setup") is None


def devices(tmp_path: Path, **changes: object) -> ResourceManagers:
    gpus = DeviceResource(
        "example.com/gpu",
        tuple(
            Device(f"gpu{index}", (index // 2,), (f"/dev/gpu{index}",), {"GPU": str(index)})
            for index in range(4)
        ),
    )
    return ResourceManagers(machine(), settings(devices=(gpus,), **changes), tmp_path)


def test_devices_are_given_once_and_near_the_cpus(tmp_path: Path) -> None:
    managers = devices(tmp_path, topology_manager_policy="single-numa-node")
    assert managers.extended_resources == {"example.com/gpu": 4}
    pods = [pod(f"p{index}", gpu_container()) for index in range(2)]
    for index, one in enumerate(pods):
        admitted(managers.admit(one, pods[:index]))
    held = [[device.id for device in managers.container_devices(one.metadata.uid, "own")] for one in pods]
    assert held == [["gpu0", "gpu1"], ["gpu2", "gpu3"]]
    assert [cpus(managers, one.metadata.uid, "own") for one in pods] == ["1,9", "4,12"]
    refused = managers.admit(pod("late", gpu_container()), pods)
    assert refused.reason == "TopologyAffinityError"
    assert "free are none" in " ".join(refused.explanation)
    again = devices(tmp_path, topology_manager_policy="single-numa-node")
    assert [device.id for device in again.container_devices("p0", "own")] == ["gpu0", "gpu1"]


def gpu_container() -> Container:
    return container("own", "2", more={"example.com/gpu": "2"})


def test_an_app_container_goes_where_the_devices_of_its_init_container_are(tmp_path: Path) -> None:
    managers = devices(tmp_path, topology_manager_policy="single-numa-node")
    setup = container("setup", "500m", more={"example.com/gpu": "1"})
    near = pod("near", container("own", "2", more={"example.com/gpu": "2"}), init=(setup,))
    admitted(managers.admit(near, []))
    assert [device.id for device in managers.container_devices("near", "setup")] == ["gpu0"]
    assert [device.id for device in managers.container_devices("near", "own")] == ["gpu0", "gpu1"]
    assert cpus(managers, "near", "own") == "1,9"
    managers.remove("near")

    # Node 0 has three CPUs left, node 1 has eight; the init container's device sits on node 0.
    busy = pod("busy", container("own", "4"))
    admitted(managers.admit(busy, []))
    far = pod("far", container("own", "4", more={"example.com/gpu": "1"}), init=(setup,))
    assert managers.admit(far, [busy]).reason == "TopologyAffinityError"
    assert [device.id for device in managers.container_devices("far", "setup")] == []


def test_a_full_disk_refuses_the_pod_and_forgets_it(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), settings(), tmp_path)
    tmp_path.rename(tmp_path.with_name("moved"))
    refused = managers.admit(pod("p", container("own", "2")), [])
    assert not refused.admitted
    assert "cpu_manager_state" in refused.message or "No such file" in refused.message
    assert str(managers.shared_pool) == "0-15"
    tmp_path.with_name("moved").rename(tmp_path)
    admitted(managers.admit(pod("p", container("own", "2")), []))


def test_a_plan_leaves_no_file_behind(tmp_path: Path) -> None:
    managers = ResourceManagers(machine(), settings(), None)
    admitted(managers.admit(pod("p", container("own", "2")), []))
    assert cpus(managers, "p", "own") == "1,9"
    assert not list(tmp_path.iterdir())


def test_what_was_aligned_is_counted_as_kubelet_counts_it() -> None:
    settings = ManagerSettings(
        cpu_manager_policy="static",
        cpu_manager_policy_options={"full-pcpus-only": "true"},
        topology_manager_policy="single-numa-node",
        reserved_system_cpus=CpuSet.parse("0,4"),
    )
    managers = ResourceManagers(parse_short("2x2x2"), settings, None)
    assert managers.admit(pod("whole", container("own", "2"), container("shared", "500m")), []).admitted
    assert not managers.admit(pod("half", container("own", "1")), []).admitted
    assert not managers.admit(pod("wide", container("own", "6")), []).admitted
    assert managers.aligned == {("container", "numa_node"): 2, ("container", "physical_cpu"): 1}
    assert managers.misaligned == {("container", "physical_cpu"): 1, ("container", "numa_node"): 1}
