"""A virtual machine for the benchmarks that want a whole node."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "vagrant"))

if TYPE_CHECKING:
    from tests.integration.node import Node


def _booted(shape: str) -> "Iterator[Node]":
    """A booted machine, which the kernel kills if this process dies."""
    from nodevm.machine import Machine

    from tests.integration.node import Node

    machine = Machine(shape, name=f"bench-{shape}-{os.getpid()}")
    machine.up(tied=True)
    yield Node(machine)
    machine.down()


@pytest.fixture(scope="session")
def bench_node() -> "Iterator[Node]":
    """A plain machine."""
    yield from _booted("plain")


@pytest.fixture(scope="module")
def small_node() -> "Iterator[Node]":
    """A machine with little memory, which is used up soon."""
    yield from _booted("small")
