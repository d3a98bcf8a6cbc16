"""Sequences on the memory manager against kubelet 1.36: hints, allocation, admission, removal, restart."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodeagent.api.quantity import Quantity
from nodeagent.hardware.topology import HugePages, NumaNode
from nodeagent.resources import memory_checkpoint
from nodeagent.resources.checkpoint import StateFile, StateFileError
from nodeagent.resources.errors import AllocationError, OptionError
from nodeagent.resources.hints import Hint
from nodeagent.resources.memory_manager import MemoryManager
from nodeagent.resources.memory_setup import make_memory_policy
from nodeagent.resources.memory_state import Block
from nodeagent.resources.pod_admission import PodAdmission
from nodeagent.resources.topology_manager import TopologyManager
from nodeagent.resources.topology_options import parse_topology_settings
from tests.golden import bugs, machines, pods

Result = dict[str, Any]


class Node:
    """One machine with its manager, driven by the operations of a case."""

    def __init__(self, case: dict[str, Any], directory: Path) -> None:
        self.directory = directory
        nodes = tuple(
            NumaNode(
                node["id"],
                node["memory"],
                tuple(HugePages(pages["page_size_kb"], pages["num_pages"]) for pages in node["hugepages"]),
                tuple(node.get("distances") or ()),
            )
            for node in case["nodes"]
        )
        self.pods = {uid: pods.request(uid, compact) for uid, compact in case.get("pods", {}).items()}
        self.active: dict[str, frozenset[str]] = {}
        settings = case["topology_manager"]
        self.topology_manager = TopologyManager(
            parse_topology_settings(settings["policy"], settings["scope"], settings["options"], nodes), nodes
        )
        self.policy = make_memory_policy(
            case["policy"],
            nodes,
            reserved_memory=[
                (entry["numa"], _quantities(entry["limits"])) for entry in case["reserved_memory"]
            ],
            node_reservation=_quantities(case["node_allocatable_reservation"]),
        )
        if "checkpoint_in" in case:
            (directory / memory_checkpoint.FILE_NAME).write_text(case["checkpoint_in"])
        self.manager = self._start()

    def _start(self) -> MemoryManager:
        manager = MemoryManager(
            self.policy, StateFile(self.directory / memory_checkpoint.FILE_NAME, "memory")
        )
        self.admission = PodAdmission(self.topology_manager, [manager])
        return manager

    def snapshot(self) -> Result:
        state = self.manager.state
        return {
            "machine_state": {
                str(number): {
                    "assignments": node.assignments,
                    "cells": list(node.cells),
                    "memory": {
                        kind: [
                            table.total,
                            table.system_reserved,
                            table.allocatable,
                            table.reserved,
                            table.free,
                        ]
                        for kind, table in node.tables.items()
                    },
                }
                for number, node in state.machine.items()
            },
            "assignments": {
                uid: {name: _shown(blocks) for name, blocks in containers.items()}
                for uid, containers in state.blocks.items()
            },
        }

    def run(self, op: dict[str, Any]) -> Result:
        outcome: Result = getattr(self, op["op"])(op)
        self.manager.save()
        return outcome if "hints" in outcome else {**outcome, **self.snapshot()}

    def hints(self, op: dict[str, Any]) -> Result:
        pod = self.pods[op["pod"]]
        found = self.manager.container_hints(pod, pod.container(op["container"]))
        return {"error": None, "hints": machines.shown_hints(found)}

    def pod_hints(self, op: dict[str, Any]) -> Result:
        return {"error": None, "hints": machines.shown_hints(self.manager.pod_hints(self.pods[op["pod"]]))}

    def allocate(self, op: dict[str, Any]) -> Result:
        pod = self.pods[op["pod"]]
        mask = op["affinity"]["mask"]
        affinity = Hint(
            None if mask is None else sum(1 << node for node in mask), op["affinity"]["preferred"]
        )
        try:
            self.manager.allocate(pod, pod.container(op["container"]), affinity)
        except AllocationError as error:
            return {"error": {"type": "error", "message": str(error)}, "blocks": None}
        blocks = self.manager.state.blocks_of(pod.uid, op["container"])
        return {"error": None, "blocks": None if blocks is None else _shown(blocks)}

    def remove(self, op: dict[str, Any]) -> Result:
        self.manager.release(op["pod"], op["container"])
        return {"error": None}

    def admit(self, op: dict[str, Any]) -> Result:
        pod = self.pods[op["pod"]]
        names = {pod.uid: frozenset(container.name for container in pod.containers)}
        self.manager.release_stale({**self.active, **names})
        decision = self.admission.admit(pod)
        if decision.admitted:
            self.active |= names
        else:
            self.active.pop(pod.uid, None)
        return {
            "admit": decision.admitted,
            "reason": decision.reason,
            "message": decision.message,
            "affinity": {
                container.name: machines.shown_affinity(decision.affinity_of(container.name))
                for container in pod.containers
            },
        }

    def add_container(self, op: dict[str, Any]) -> Result:
        self.manager.release_init(self.pods[op["pod"]], op["container"])
        return {"error": None}

    def delete_pod(self, op: dict[str, Any]) -> Result:
        self.active.pop(op["pod"], None)
        self.manager.release_stale(self.active)
        return {"error": None}

    def restart(self, op: dict[str, Any]) -> Result:
        self.manager = self._start()
        problem = self.manager.problem
        return {"error": {"type": "error", "message": problem} if problem else None}


def _quantities(amounts: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in amounts.items()}


def _shown(blocks: tuple[Block, ...]) -> list[Result]:
    shown = [{"numa": list(block.nodes), "size": block.size, "type": block.kind} for block in blocks]
    return sorted(shown, key=lambda block: str(block["type"]))


def _content(text: str) -> Any:
    """The order of the blocks in one container is random in the original, and the checksum goes with it."""
    content = json.loads(text)
    del content["checksum"]
    for containers in content.get("entries", {}).values():
        for blocks in containers.values():
            blocks.sort(key=lambda block: block["type"])
    return content


def _start(case: dict[str, Any], directory: Path) -> Node | dict[str, str]:
    """Return the started node, or the message of the step that failed."""
    try:
        return Node(case, directory)
    except OptionError as error:
        return {"new_error": str(error)}
    except StateFileError as error:
        return {"state_error": str(error).replace(str(directory), "DIR")}


@pytest.mark.golden("memory_manager.json", "cases")
def test_sequence(case: dict[str, Any], tmp_path: Path) -> None:
    node = _start(case, tmp_path)
    file = tmp_path / memory_checkpoint.FILE_NAME

    def exact(case: dict[str, Any]) -> None:
        problem = {key: case[key] for key in ("new_error", "state_error") if key in case}
        if not isinstance(node, Node):
            assert node == problem
            return
        assert not problem
        assert node.manager.problem == case.get("start_error", "")
        if "start" in case:
            assert node.snapshot() == case["start"]
        for op in case.get("ops", ()):
            assert node.run(op) == op["result"]
        if "checkpoint" in case:
            assert _content(file.read_text()) == _content(case["checkpoint"])
            # Its checksum is right for its own order.
            memory_checkpoint.load(StateFile(file, "memory"), case["policy"])

    def books_add_up(case: dict[str, Any]) -> None:
        """Whatever is reserved on the nodes is in a block, and every block is reserved, each byte once."""
        assert isinstance(node, Node)
        for op in case["ops"]:
            result = node.run(op)
            assert result["error"] is None
            reserved: dict[str, int] = {}
            for memory in node.manager.state.machine.values():
                for kind, table in memory.tables.items():
                    assert table.free + table.reserved == table.allocatable
                    reserved[kind] = reserved.get(kind, 0) + table.reserved
            for containers in node.manager.state.blocks.values():
                for blocks in containers.values():
                    for block in blocks:
                        reserved[block.kind] -= block.size
            assert not any(reserved.values())
            assert result["assignments"] == op["result"]["assignments"]

    def says_that_it_has_none(case: dict[str, Any]) -> None:
        """No such memory on this machine: no hints, and an error instead of the panic."""
        assert isinstance(node, Node)
        for op in case["ops"]:
            result = node.run(op)
            if "panic" not in op["result"]:
                assert result == op["result"]
            elif "hints" in result:
                assert result["hints"] == {}
            else:
                assert "no NUMA nodes with enough memory is available" in str(result)

    def names_the_node(case: dict[str, Any]) -> None:
        """More is reserved on a node than it has: the message names the node and both figures."""
        assert isinstance(node, dict)
        message = node["new_error"]
        assert any(
            str(entry["numa"]) in message and str(Quantity.parse(amount).value()) in message
            for entry in case["reserved_memory"]
            for amount in entry["limits"].values()
        )
        assert any(str(machine["memory"]) in message for machine in case["nodes"])

    panicked = any("panic" in op["result"] for op in case.get("ops", ()))
    bugs.check(
        case,
        exact,
        {
            "reusable memory is forgotten": books_add_up,
            "panic": says_that_it_has_none,
            "": says_that_it_has_none if panicked else names_the_node,
        },
    )
