"""Sequences on the CPU manager against kubelet 1.36: start, allocation, admission, removal, restart."""

import re
from pathlib import Path
from typing import Any

import pytest

from nodeagent.api.quantity import Quantity
from nodeagent.hardware.cpuset import NO_CPUS, CpuSet
from nodeagent.resources import cpu_checkpoint
from nodeagent.resources.checkpoint import StateFile, StateFileError
from nodeagent.resources.cpu_manager import CpuManager
from nodeagent.resources.cpu_policy import StaticCpuPolicy
from nodeagent.resources.cpu_setup import make_cpu_policy
from nodeagent.resources.cpu_state import CpuState
from nodeagent.resources.errors import AllocationError, OptionError
from nodeagent.resources.hints import Hint
from nodeagent.resources.pod_admission import PodAdmission
from nodeagent.resources.topology_manager import TopologyManager
from nodeagent.resources.topology_options import parse_topology_settings
from tests.golden import bugs, machines, pods

Result = dict[str, Any]


class Node:
    """One machine with its manager, driven by the operations of a case."""

    def __init__(self, case: dict[str, Any], document: dict[str, Any], directory: Path) -> None:
        self.case = case
        self.directory = directory
        self.topology = machines.topology(document, case["topology"])
        self.pods = {uid: pods.request(uid, compact) for uid, compact in case.get("pods", {}).items()}
        self.active: dict[str, frozenset[str]] = {}
        settings = case["topology_manager"]
        self.topology_manager = TopologyManager(
            parse_topology_settings(
                settings["policy"], settings["scope"], settings["options"], self.topology.numa_nodes
            ),
            self.topology.numa_nodes,
        )
        gates = case.get("gates", {})
        reserved = case["reserved_cpu"]
        self.policy = make_cpu_policy(
            case["policy"],
            case["options"],
            self.topology,
            reserved_milli=None if reserved is None else Quantity.parse(reserved).milli_value(),
            reserved_cpus=CpuSet.parse(case["reserved_cpus"]),
            topology_policy=settings["policy"],
            alpha_options=gates.get("CPUManagerPolicyAlphaOptions", True),
            beta_options=gates.get("CPUManagerPolicyBetaOptions", True),
        )
        self._write_state()
        self.manager = self._start()

    def _write_state(self) -> None:
        path = self.directory / cpu_checkpoint.FILE_NAME
        if "checkpoint_in" in self.case:
            path.write_text(self.case["checkpoint_in"])
        if "initial_state" in self.case:
            initial = self.case["initial_state"]
            state = CpuState(CpuSet.parse(initial["default"]), _assignments(initial["assignments"]))
            path.write_bytes(cpu_checkpoint.encode("static", state))

    def _start(self) -> CpuManager:
        manager = CpuManager(self.policy, StateFile(self.directory / cpu_checkpoint.FILE_NAME, "cpu"))
        self.admission = PodAdmission(self.topology_manager, [manager])
        return manager

    def snapshot(self) -> Result:
        state = self.manager.state
        return {
            "default": str(state.default),
            "assignments": {
                uid: {name: str(cpus) for name, cpus in containers.items()}
                for uid, containers in state.assignments.items()
            },
        }

    def run(self, op: dict[str, Any]) -> Result:
        outcome: Result = getattr(self, op["op"])(op)
        self.manager.save()
        return {**outcome, **self.snapshot()}

    def allocate(self, op: dict[str, Any]) -> Result:
        pod = self.pods[op["pod"]]
        mask = op["affinity"]["mask"]
        affinity = Hint(
            None if mask is None else sum(1 << node for node in mask), op["affinity"]["preferred"]
        )
        try:
            self.manager.allocate(pod, pod.container(op["container"]), affinity)
        except AllocationError as error:
            kind = "error" if error.reason == "UnexpectedAdmissionError" else error.reason
            return {"error": {"type": kind, "message": str(error)}}
        return {"error": None}

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

    def delete_pod(self, op: dict[str, Any]) -> Result:
        self.active.pop(op["pod"], None)
        return self.gc(op)

    def gc(self, op: dict[str, Any]) -> Result:
        self.manager.release_stale(self.active)
        return {"error": None}

    def restart(self, op: dict[str, Any]) -> Result:
        self.manager = self._start()
        problem = self.manager.problem
        return {"error": {"type": "error", "message": problem} if problem else None}

    def check_placements(self, before: CpuState, reusable: CpuSet) -> None:
        """What holds wherever the original gives out CPUs that were not free."""
        policy = self.policy
        assert isinstance(policy, StaticCpuPolicy)
        state = self.manager.state
        seen = state.default if policy.initial_default != policy.allocatable else NO_CPUS
        for uid, containers in state.assignments.items():
            of_pod = NO_CPUS
            for name, cpus in containers.items():
                of_pod |= cpus
                assert len(cpus) == self.pods[uid].container(name).cpus
                assert not cpus & policy.reserved
                assert before.cpus_of(uid, name) == cpus or cpus <= before.default | reusable | of_pod
            assert not of_pod & seen
            seen |= of_pod
        assert not state.default & state.assigned


def _assignments(listed: dict[str, dict[str, str]]) -> dict[str, dict[str, CpuSet]]:
    return {
        uid: {name: CpuSet.parse(cpus) for name, cpus in containers.items()}
        for uid, containers in listed.items()
    }


def _expected(result: Result) -> Result:
    """`reusable` is a note of the original's own, for information."""
    return {key: value for key, value in result.items() if key != "reusable"}


def _problem(case: dict[str, Any]) -> dict[str, str]:
    return {key: case[key] for key in ("new_error", "state_error") if key in case}


def _start(case: dict[str, Any], document: dict[str, Any], directory: Path) -> Node | dict[str, str]:
    """Return the started node, or the message of the step that failed."""
    try:
        return Node(case, document, directory)
    except OptionError as error:
        return {"new_error": str(error)}
    except StateFileError as error:
        return {"state_error": str(error).replace(str(directory), "DIR")}


@pytest.mark.golden("cpu_static_policy.json", "cases")
def test_sequence(case: dict[str, Any], document: dict[str, Any], tmp_path: Path) -> None:
    node = _start(case, document, tmp_path)

    def start(case: dict[str, Any]) -> Node | None:
        if not isinstance(node, Node):
            assert node == _problem(case)
            return None
        assert not _problem(case)
        assert node.manager.problem == case.get("start_error", "")
        if "start" in case:
            assert node.snapshot() == case["start"]
        if node.policy:
            assert str(node.policy.reserved) == case["reserved"]
            assert str(node.policy.reserved_physical) == case["reserved_physical"]
        return node

    def exact(case: dict[str, Any]) -> None:
        started = start(case)
        if started:
            for op in case.get("ops", ()):
                assert started.run(op) == _expected(op["result"])
        if "checkpoint" in case:
            assert (tmp_path / cpu_checkpoint.FILE_NAME).read_text() == case["checkpoint"]

    def only_free_cpus(case: dict[str, Any]) -> None:
        started = start(case)
        assert started
        for index, op in enumerate(case["ops"]):
            before, reusable = started.manager.state, started.manager.reusable(op.get("pod", ""))
            result = started.run(op)
            if index < case["bug_op"]:
                assert result == _expected(op["result"])
            else:
                started.check_placements(before, reusable)

    def frame(case: dict[str, Any]) -> None:
        assert isinstance(node, dict)
        about_cause = r"(?<=could not restore state from checkpoint: ).*?(?=, please drain)"
        assert re.sub(about_cause, "", node["state_error"]) == re.sub(about_cause, "", case["state_error"])

    def kept(case: dict[str, Any]) -> None:
        started = start(case)
        assert started
        for index, op in enumerate(case["ops"]):
            assert started.run(op) == {**_expected(op["result"]), **case["ours"].get(str(index), {})}

    bugs.check(
        case,
        exact,
        {
            "gives out CPUs that were not free": only_free_cpus,
            "ends in a text of Go's JSON decoder": frame,
            "refuses a container that already has its CPUs": kept,
        },
    )
