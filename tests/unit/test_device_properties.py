"""Devices, after any sequence of admissions, removals and restarts."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.api.pod import Container, Pod
from nodeagent.hardware.topology import regular_topology
from nodeagent.resources.device_manager import Device, DeviceResource
from nodeagent.resources.managers import ManagerSettings, ResourceManagers
from nodeagent.resources.topology_options import Policy, Scope
from tests.unit.machines import GIB
from tests.unit.resource_pods import container, pod

GPU = "example.com/gpu"
INIT = "init"


def gpus(name: str, count: int, *, sidecar: bool = False) -> Container:
    return container(name, "1", "64Mi", sidecar=sidecar, more={GPU: str(count)})


def containers(of: Pod) -> tuple[Container, ...]:
    return (*of.spec.init_containers, *of.spec.containers)


def picture(managers: ResourceManagers, running: Iterable[Pod]) -> dict[str, dict[str, list[str]]]:
    """The ids of the devices that each container holds, by pod."""
    return {
        each.metadata.uid: {
            one.name: [device.id for device in managers.container_devices(each.metadata.uid, one.name)]
            for one in containers(each)
        }
        for each in running
    }


def check(held: dict[str, dict[str, list[str]]], running: dict[str, Pod]) -> None:
    """As many as were asked for, none for two pods; in a pod only for containers that follow one another."""
    by_pod = []
    for uid, of_pod in held.items():
        for one in containers(running[uid]):
            assert len(set(of_pod[one.name])) == one.resources.requests[GPU].value()
        lasting = [device for name, ids in of_pod.items() if name != INIT for device in ids]
        assert len(set(lasting)) == len(lasting)
        by_pod.append({*lasting, *of_pod.get(INIT, ())})
    assert sum(map(len, by_pod)) == len(set().union(*by_pod))


@settings(max_examples=80, deadline=None)
@given(
    nodes=st.integers(1, 4),
    policy=st.sampled_from(Policy),
    scope=st.sampled_from(Scope),
    places=st.lists(st.lists(st.integers(0, 3), max_size=2, unique=True), min_size=1, max_size=6),
    seed=st.integers(0, 2**32),
)
def test_devices_are_given_once_in_full_and_kept(
    nodes: int,
    policy: str,
    scope: str,
    places: list[list[int]],
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    draw = random.Random(seed)
    listed = tuple(
        Device(f"gpu{number}", tuple(node for node in on if node < nodes)) for number, on in enumerate(places)
    )
    chosen = ManagerSettings(
        topology_manager_policy=policy,
        topology_manager_scope=scope,
        devices=(DeviceResource(GPU, listed),),
    )
    topology = regular_topology(nodes, 2, 1, memory_bytes=2 * GIB)
    directory = tmp_path_factory.mktemp("state")
    managers = ResourceManagers(topology, chosen, directory)
    running: dict[str, Pod] = {}

    for step in range(10):
        counts = [draw.randrange(len(listed) + 1) for _ in range(4)]
        init = (gpus(INIT, counts[0]), gpus("sidecar", counts[1], sidecar=True))[: draw.randrange(3)]
        new = pod(f"p{step}", gpus("one", counts[2]), gpus("other", counts[3]), init=init)
        if managers.admit(new, running.values()).admitted:
            running[new.metadata.uid] = new
        elif running and draw.random() < 0.5:
            gone = draw.choice(list(running))
            del running[gone]
            managers.remove(gone)
        before = picture(managers, running.values())
        check(before, running)
        managers = ResourceManagers(topology, chosen, directory)
        assert managers.problems == ()
        assert picture(managers, running.values()) == before
