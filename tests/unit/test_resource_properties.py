"""What must hold on any machine, after any sequence of admissions, removals, restarts and hot-plug."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.api.pod import Container, Pod
from nodeagent.api.quantity import Quantity
from nodeagent.hardware.cpuset import NO_CPUS, CpuSet
from nodeagent.hardware.topology import Topology, regular_topology
from nodeagent.resources import memory_checkpoint
from nodeagent.resources.checkpoint import StateFile
from nodeagent.resources.errors import OptionError
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from tests.unit.machines import GIB, irregular_machines, machines, without
from tests.unit.resource_pods import container, pod

OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"full-pcpus-only": "true"},
    {"distribute-cpus-across-numa": "true"},
    {"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"},
    {"distribute-cpus-across-cores": "true"},
    {"prefer-align-cpus-by-uncorecache": "true"},
    {"full-pcpus-only": "true", "prefer-align-cpus-by-uncorecache": "true"},
    {"strict-cpu-reservation": "true"},
    {"align-by-socket": "true"},
)
POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


class Node:
    """Managers on a machine, and what the pods on it asked for."""

    def __init__(self, topology: Topology, chosen: ManagerSettings, directory: Path) -> None:
        self.whole = self.topology = topology
        self.settings = chosen
        self.directory = directory
        self.pods: dict[str, Pod] = {}
        self.managers = ResourceManagers(topology, chosen, directory)

    def admit(self, new: Pod) -> None:
        if self.managers.admit(new, self.pods.values()).admitted:
            self.pods[new.metadata.uid] = new

    def remove(self, uid: str) -> None:
        if self.pods.pop(uid, None):
            self.managers.remove(uid)

    def restart(self) -> None:
        before = self.picture()
        self.managers = ResourceManagers(self.topology, self.settings, self.directory)
        assert self.managers.problems == ()
        for running in self.pods.values():
            assert self.managers.admit(running, self.pods.values()).admitted
        assert self.picture() == before

    def set_offline(self, cpus: CpuSet) -> None:
        self.topology = without(self.whole, cpus)
        self.managers.update_topology(self.topology)

    def picture(self) -> dict[tuple[str, str], str]:
        return {
            (uid, each.name): str(self.managers.container_cpus(uid, each.name))
            for uid, running in self.pods.items()
            for each in _containers(running)
        }

    def check(self) -> None:
        managers, online = self.managers, self.topology.online
        given = NO_CPUS
        for uid, running in self.pods.items():
            of_pod = NO_CPUS
            for each in _containers(running):
                cpus = managers.container_cpus(uid, each.name)
                assert cpus and cpus <= online
                if not managers.exclusive_cpus(uid).get(each.name):
                    # Whoever has CPUs of its own is here only while all of them are offline.
                    assert cpus == managers.shared_pool
                    assert not managers.is_exclusive(uid, each.name) or self.topology.offline
                    continue
                wanted = each.resources.requests["cpu"].value()
                assert len(cpus) == wanted or (len(cpus) < wanted and self.topology.offline)
                assert not cpus & managers.reserved_cpus
                of_pod |= cpus
            assert not of_pod & given
            given |= of_pod
        strict = "strict-cpu-reservation" in self.settings.cpu_manager_policy_options
        left = online - given - (managers.reserved_cpus if strict else NO_CPUS)
        # Where every shared CPU is offline, others stand in.
        assert managers.shared_pool == (left or managers.reserved_cpus & online or online)


def _containers(of: Pod) -> tuple[Container, ...]:
    return (*of.spec.init_containers, *of.spec.containers)


def random_pod(uid: str, draw: random.Random, largest: int, unit: int) -> Pod:
    def size() -> str:
        return draw.choice(("500m", str(unit), str(unit * draw.randint(1, max(1, largest // unit)))))

    init = tuple(
        container(f"i{index}", size(), sidecar=draw.random() < 0.4) for index in range(draw.randint(0, 2))
    )
    return pod(uid, *(container(f"c{index}", size()) for index in range(draw.randint(1, 2))), init=init)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    topology=machines() | irregular_machines().filter(lambda topology: len(topology.cpus) > 1),
    options=st.sampled_from(OPTIONS),
    policy=st.sampled_from(POLICIES),
    scope=st.sampled_from(["container", "pod"]),
    seed=st.integers(0, 2**32),
)
def test_cpus_are_given_once_in_full_and_never_the_reserved_ones(
    topology: Topology,
    options: dict[str, str],
    policy: str,
    scope: str,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    draw = random.Random(seed)
    chosen = ManagerSettings(
        cpu_manager_policy="static",
        cpu_manager_policy_options=options,
        alpha_options=True,
        topology_manager_policy=policy,
        topology_manager_scope=scope,
        node_reservation={"cpu": Quantity.parse(draw.choice(("500m", "1")))},
    )
    try:
        node = Node(topology, chosen, tmp_path_factory.mktemp("state"))
    except OptionError:
        return
    for step in range(12):
        match draw.randrange(6):
            case 0 | 1 | 2:
                node.admit(random_pod(f"p{step}", draw, len(topology.cpus) // 2, topology.cpus_per_core))
            case 3:
                node.remove(f"p{draw.randrange(max(1, step))}")
            case 4:
                node.restart()
            case 5:
                online = list(topology.online)
                node.set_offline(
                    CpuSet.from_iterable(draw.sample(online, draw.randrange(min(3, len(online)))))
                )
        node.check()


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 2), st.integers(2, 6), st.sampled_from([1, 2, 4]), st.integers(1, 2)),
    spread=st.booleans(),
    policy=st.sampled_from(POLICIES),
    seed=st.integers(0, 2**32),
)
def test_full_pcpus_only_gives_whole_cores(
    shape: tuple[int, int, int, int],
    spread: bool,
    policy: str,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    sockets, cores, threads, numas = shape
    topology = regular_topology(sockets, cores, threads, numa_per_socket=numas)
    draw = random.Random(seed)
    options = {"full-pcpus-only": "true", **({"distribute-cpus-across-numa": "true"} if spread else {})}
    chosen = ManagerSettings(
        cpu_manager_policy="static",
        cpu_manager_policy_options=options,
        topology_manager_policy=policy,
        node_reservation={"cpu": Quantity.of(threads)},
    )
    node = Node(topology, chosen, tmp_path_factory.mktemp("state"))
    for step in range(10):
        node.admit(random_pod(f"p{step}", draw, len(topology.cpus) // 2, threads))
        if draw.random() < 0.4:
            node.remove(f"p{draw.randrange(step + 1)}")
        for uid, running in node.pods.items():
            for each in _containers(running):
                cpus = node.managers.container_cpus(uid, each.name)
                if node.managers.is_exclusive(uid, each.name) and cpus:
                    assert topology.with_siblings(cpus) == cpus


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.integers(1, 4),
    policy=st.sampled_from(POLICIES),
    scope=st.sampled_from(["container", "pod"]),
    seed=st.integers(0, 2**32),
)
def test_memory_is_given_once_and_the_books_follow_from_the_blocks(
    nodes: int, policy: str, scope: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    draw = random.Random(seed)
    chosen = ManagerSettings(
        topology_manager_policy=policy,
        topology_manager_scope=scope,
        memory_manager_policy="Static",
        node_reservation={"memory": Quantity.parse("256Mi")},
        reserved_memory=((0, {"memory": Quantity.parse("256Mi")}),),
    )
    topology = regular_topology(nodes, 2, 1, memory_bytes=2 * GIB)
    directory = tmp_path_factory.mktemp("state")
    managers = ResourceManagers(topology, chosen, directory)
    running: dict[str, Pod] = {}
    for step in range(12):
        sizes = [f"{draw.randint(1, 3000)}Mi" for _ in range(4)]
        init = (container("i", "1", sizes[0]), container("s", "1", sizes[1], sidecar=draw.random() < 0.5))
        new = pod(
            f"p{step}",
            *(container(f"c{i}", "1", sizes[2 + i]) for i in range(2)),
            init=init[: draw.randrange(3)],
        )
        if managers.admit(new, running.values()).admitted:
            running[new.metadata.uid] = new
        if running and draw.random() < 0.4:
            gone = draw.choice(list(running))
            del running[gone]
            managers.remove(gone)
        elif running and draw.random() < 0.4:
            managers.starting(draw.choice(list(running.values())), "c0")
        managers = ResourceManagers(topology, chosen, directory)
        assert managers.problems == ()
        check_books(directory)
        for uid, each in running.items():
            for one in each.spec.containers:
                mems = managers.container_mems(uid, one.name)
                assert mems and (policy != "single-numa-node" or len(mems) == 1 or nodes == 1)


def check_books(directory: Path) -> None:
    """Every byte that is reserved on a node is in a block, and the other way round."""
    loaded = memory_checkpoint.load(StateFile(directory / memory_checkpoint.FILE_NAME, "memory"), "Static")
    assert loaded
    total = 0
    for node in loaded.machine.values():
        table = node.tables["memory"]
        assert table.free >= 0
        assert table.free + table.reserved == table.allocatable
        total += table.reserved
    blocks = [b for containers in loaded.blocks.values() for listed in containers.values() for b in listed]
    assert total == sum(block.size for block in blocks)
