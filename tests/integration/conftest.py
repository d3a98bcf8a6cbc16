"""Integration tests run in a virtual machine: one at a time, each shape booted once a session.

A test that takes `node` gets a clean node with the agent running, one that takes `shared_node` a node without
pods whose agent the tests beside it have used before; one that takes `machine` gets the booted machine as it
was left. `@pytest.mark.shape("numa2")` chooses the machine (default plain), the fixture `kubelet_config`,
overridden in a module or a class, the configuration.
"""

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "vagrant"))

from nodevm.machine import Machine

from tests.integration.node import Node

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shape(name): the virtual machine that an integration test wants")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here, and run it last and grouped by shape; within a shape the order stays."""
    here = [item for item in items if HERE in item.path.parents]
    for item in here:
        item.add_marker("integration")
        # An emulated machine on a busy host can stand still for longer than any deadline: once more, then.
        item.add_marker(pytest.mark.flaky(reruns=1))
    here.sort(key=_shape)
    items[:] = [item for item in items if HERE not in item.path.parents] + here


def _shape(item: pytest.Item) -> str:
    marker = item.get_closest_marker("shape")
    return str(marker.args[0]) if marker else "plain"


class Fleet:
    """The one machine that runs; another shape replaces it."""

    def __init__(self) -> None:
        self.node: Node | None = None

    def get(self, shape: str) -> Node:
        """A running machine of `shape`, which the kernel kills if this process dies."""
        if self.node is None or self.node.machine.shape.name != shape or self.node.machine.pid() is None:
            self.close()
            machine = Machine(shape, name=f"test-{shape}-{os.getpid()}")
            machine.up(tied=True)
            self.node = Node(machine)
        return self.node

    def close(self) -> None:
        if self.node is not None:
            self.node.machine.down()
            self.node = None


FLEET = pytest.StashKey[Fleet]()


@pytest.fixture(scope="session")
def fleet(pytestconfig: pytest.Config) -> Iterator[Fleet]:
    fleet = Fleet()
    pytestconfig.stash[FLEET] = fleet
    yield fleet
    fleet.close()


@pytest.fixture
def machine(fleet: Fleet, request: pytest.FixtureRequest) -> Node:
    """The booted machine of the test's shape, as it is."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # a boot takes a minute: show its progress
        return fleet.get(_shape(request.node))


@pytest.fixture
def kubelet_config() -> dict[str, Any]:
    """What the test's KubeletConfiguration says beside apiVersion and kind: override it at will."""
    return {}


@pytest.fixture
def agent_config() -> dict[str, Any]:
    """What the test's AgentConfiguration says beside apiVersion and kind."""
    return {}


@pytest.fixture
def node(machine: Node, kubelet_config: dict[str, Any], agent_config: dict[str, Any]) -> Node:
    """A node with no pods and no past, the agent started with the test's configuration."""
    machine.reset(kubelet_config, agent_config)
    return machine


@pytest.fixture
def shared_node(
    machine: Node,
    kubelet_config: dict[str, Any],
    agent_config: dict[str, Any],
    request: pytest.FixtureRequest,
) -> Iterator[Node]:
    """A node without pods. A module's tests of one configuration share it, since to begin one takes long."""
    purpose = (request.path, kubelet_config, agent_config)
    if machine.purpose != purpose:
        machine.reset(kubelet_config, agent_config)
        machine.purpose = purpose
    yield machine
    try:
        machine.delete_all()
    except BaseException:
        machine.purpose = None
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test's report ends with what the agent said."""
    report = yield
    fleet = item.config.stash.get(FLEET, None)
    if report.failed and HERE in item.path.parents and fleet is not None and fleet.node is not None:
        report.sections.append(("the agent's journal", fleet.node.journal()))
    return report
