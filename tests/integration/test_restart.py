"""The agent may die at any instant, be stopped, upgraded: no pod is lost, none started twice."""

import json
import random
import time
from collections import Counter
from typing import Any

import pytest

from tests.integration.node import CGROUP_ROOT, Node
from tests.integration.observed import (
    SLICES,
    Pod,
    leaf_of,
    output_of,
    processes,
    read_tree,
    slice_of,
    status_of,
)
from tests.integration.workload import Manifest, pod, shell

pytestmark = pytest.mark.shape("kubelet")

STATE_FILE = "/var/lib/nodeagent/cpu_manager_state"
# Every container says here that it began, so that none can begin twice unseen.
BEGUN = "/run/begun"
AGENT, KEEPER = "nodeagent.service", "nodeagent-keeper.service"


@pytest.fixture
def kubelet_config() -> dict[str, Any]:
    return {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "cpuManagerReconcilePeriod": "5s"}


@pytest.fixture
def node(shared_node: Node) -> Node:
    shared_node.run(f"rm -rf {BEGUN} /run/cue; touch {BEGUN}; mkdir /run/cue")
    return shared_node


def recorded(name: str, limits: dict[str, str] | None = None) -> Manifest:
    """A pod that says when it begins, and sleeps."""
    return pod(name, shell(f"echo {name} >>{BEGUN}; exec sleep infinity", limits=limits))


def exclusive(name: str) -> Manifest:
    return recorded(name, {"cpu": "1", "memory": "16Mi"})


def cpus(text: str) -> set[int]:
    """A CPU list as the kernel writes it."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def check_cpus(node: Node) -> None:
    """No CPU belongs to two containers: not in the state file, whole at any instant, nor in the kernel."""
    text = node.run(f"cat {STATE_FILE} 2>/dev/null; true")
    if text:
        given = [
            cpu
            for containers in json.loads(text).get("entries", {}).values()
            for assigned in containers.values()
            for cpu in cpus(assigned)
        ]
        assert max(Counter(given).values(), default=0) <= 1, text
        assert 0 not in given, text
    whole = [
        cpu
        for path, values in read_tree(node, ["cpuset.cpus"]).items()
        if path.endswith(".scope") and path.count("/") == 2
        for cpu in cpus(values.get("cpuset.cpus", ""))
    ]
    assert max(Counter(whole).values(), default=0) <= 1, f"CPUs of Guaranteed containers: {whole}"


def kill_at_random_instants(node: Node, rounds: int, seed: int) -> None:
    """kill -9 of the agent, over and over, while pods come and go; then everything is as the files say."""
    chance = random.Random(seed)
    print(f"seed {seed}")
    began = time.monotonic()
    node.restart()
    # Half of the instants lie before the agent says that it is ready.
    longest_pause_seconds = min(2 * (time.monotonic() - began), 20)
    kept = [
        exclusive("kept-1"),
        exclusive("kept-2"),
        recorded("kept-3"),
        recorded("kept-4", {"memory": "32Mi"}),
    ]
    for manifest in kept:
        node.apply(manifest["metadata"]["name"], manifest)
    before = [node.wait_phase(manifest["metadata"]["name"], "Running") for manifest in kept]
    running = {leaf_of(each): processes(node)[leaf_of(each)] for each in before}
    wanted = {manifest["metadata"]["name"] for manifest in kept}
    for number in range(rounds):
        # One CPU is left besides the kept ones': two such pods cannot both have it.
        name = f"passing-{number}"
        manifest = exclusive(name) if chance.random() < 0.5 else recorded(name)
        # Now and then one goes before it was ever seen.
        leaving = sorted(wanted - {each["metadata"]["name"] for each in kept})
        if leaving and chance.random() < 0.6:
            gone = chance.choice(leaving)
            node.delete(gone)
            wanted.discard(gone)
        node.apply(name, manifest)
        wanted.add(name)
        time.sleep(chance.uniform(0, longest_pause_seconds))
        # A restart by hand does not wait for RestartSec=, nor count towards its steps.
        node.run(f"systemctl kill -s KILL {AGENT}; systemctl restart --no-block {AGENT}")
        check_cpus(node)
    node.start()
    settled(node, wanted)
    check_cpus(node)
    now = processes(node)
    assert {leaf: now.get(leaf) for leaf in running} == running
    begun = Counter(node.read(BEGUN).splitlines())
    assert {name: count for name, count in begun.items() if count > 1} == {}
    alive = {each["metadata"]["name"].rpartition("-")[0] for each in node.pods() if is_running(each)}
    assert alive <= set(begun)


def is_running(each: Pod) -> bool:
    return bool(each["status"].get("phase") == "Running")


def settled(node: Node, wanted: set[str]) -> None:
    """Wait until the pods are the wanted ones, each running or refused, and the tree holds no other."""

    def states() -> bool:
        pods = {each["metadata"]["name"].rpartition("-")[0]: each for each in node.pods()}
        return set(pods) == wanted and all(
            is_running(each) or each["status"].get("reason") == "OutOfcpu" for each in pods.values()
        )

    node.wait(states, timeout=180, what=f"exactly {sorted(wanted)}, running or refused")
    slices = {slice_of(each) for each in node.pods() if is_running(each)}

    def found() -> set[str]:
        return {path for path in read_tree(node, ["cgroup.procs"]) if path.endswith(".slice")}

    upper = set(SLICES.values())
    node.wait(lambda: found() == upper | slices, what="a tree of the running pods alone")


class TestKilled:
    def test_at_random_instants(self, node: Node) -> None:
        kill_at_random_instants(node, rounds=4, seed=time.time_ns() % 100_000)

    @pytest.mark.soak
    def test_at_many_random_instants(self, node: Node) -> None:
        kill_at_random_instants(node, rounds=30, seed=time.time_ns() % 100_000)


def cued(name: str, script: str, limits: dict[str, str] | None = None) -> Manifest:
    """A container that goes on when somebody writes into its fifo; waiting it needs no other process."""
    return shell(f"read _ </run/cue/{name}; {script}", limits=limits)


class TestAway:
    def test_what_happens_while_the_agent_is_stopped(self, node: Node) -> None:
        """Containers run on and end, files come and go: all of it is known when the agent is back."""
        once = "[ ! -e /run/cue/begun ] || exec sleep infinity; >/run/cue/begun; "
        limits = {"memory": "32Mi"}
        manifests = {
            "stays": recorded("stays"),
            "goes": recorded("goes"),
            "ends": pod("ends", cued("ends", "exit 7"), restartPolicy="Never"),
            "greedy": pod("greedy", cued("greedy", "exec tail /dev/zero", limits), restartPolicy="Never"),
            "again": pod("again", shell(f"echo again >>{BEGUN}; {once}read _ </run/cue/again; exit 1")),
        }
        ending = ("ends", "greedy", "again")
        node.run(f"cd /run/cue && mkfifo {' '.join(ending)}")
        for name, manifest in manifests.items():
            node.apply(name, manifest)
        pods = {name: node.wait_phase(name, "Running") for name in manifests}
        before = processes(node)

        node.stop()
        assert processes(node) == before
        for name in ending:
            node.run(f"echo >/run/cue/{name}")
        node.delete("goes")
        node.apply("comes", recorded("comes"))
        ended = [leaf_of(pods[name]) for name in ending]
        node.wait(
            lambda: not any(processes(node).get(leaf) for leaf in ended), what="the ends unseen by the agent"
        )
        node.start()

        code = status_of(node.wait_phase("ends", "Failed"))["state"]["terminated"]
        assert (code["exitCode"], code["reason"]) == (7, "Error")
        killed = status_of(node.wait_phase("greedy", "Failed"))["state"]["terminated"]
        assert (killed["exitCode"], killed["reason"]) == (137, "OOMKilled")
        node.wait_phase("comes", "Running")
        node.wait_gone("goes")
        assert not node.exists(f"{CGROUP_ROOT}/{slice_of(pods['goes'])}")
        again = node.wait(lambda: restarted(node, "again"), what="the restart that was due")
        assert again
        assert status_of(again)["lastState"]["terminated"]["exitCode"] == 1
        stays = node.wait_phase("stays", "Running")
        assert stays["metadata"]["uid"] == pods["stays"]["metadata"]["uid"]
        assert stays["status"]["startTime"] == pods["stays"]["status"]["startTime"]
        assert processes(node)[leaf_of(stays)] == before[leaf_of(stays)]
        assert Counter(node.read(BEGUN).splitlines()) == {"stays": 1, "goes": 1, "comes": 1, "again": 2}

    def test_what_an_earlier_life_left_is_cleaned_up(self, node: Node) -> None:
        node.apply("ours", recorded("ours"))
        ours = node.wait_phase("ours", "Running")
        before = processes(node)[leaf_of(ours)]
        node.stop()
        left = f"{SLICES['BestEffort']}/kubepods-besteffort-podforgotten.slice"
        node.run(
            f"cd {CGROUP_ROOT} && mkdir -p {left}/cri-x.scope/deeper; setsid sleep 100000 >/dev/null 2>&1 & "
            f"echo $! >{left}/cri-x.scope/deeper/cgroup.procs"
        )
        unit = "kubepods-burstable-podlost.slice"
        node.run(f"systemd-run --quiet --collect --slice={unit} --unit=nodeagent-lost.service sleep 100000")
        lost = f"{SLICES['Burstable']}/{unit}"
        strangers = node.run(
            f"cat {CGROUP_ROOT}/{left}/cri-x.scope/deeper/cgroup.procs {CGROUP_ROOT}/{lost}/*/cgroup.procs"
        )
        assert len(strangers.split()) == 2
        node.start()
        node.wait(
            lambda: not {left, lost} & read_tree(node, ["cgroup.procs"]).keys(), what="both slices removed"
        )
        for pid in strangers.split():
            assert not node.exists(f"/proc/{pid}")
        assert processes(node)[leaf_of(ours)] == before

    def test_everything_is_forgotten_but_the_files(self, node: Node) -> None:
        """Without its database the agent knows its pods by their files and containers: none begins again."""
        node.apply("kept", exclusive("kept"))
        kept = node.wait_phase("kept", "Running")
        before = processes(node)
        node.stop()
        node.run("rm -f /var/lib/nodeagent/nodeagent.db*")
        node.start()
        assert node.wait_phase("kept", "Running")["metadata"]["uid"] == kept["metadata"]["uid"]
        assert processes(node) == before
        assert node.read(BEGUN).split() == ["kept"]
        check_cpus(node)


def restarted(node: Node, name: str) -> Pod | None:
    found = node.pod(name)
    status = status_of(found) if found else {}
    return found if status.get("restartCount") == 1 and status["state"].get("running") else None


class TestUpgrade:
    TICKING = "i=0; while :; do i=$((i+1)); echo $i; [ ! -e /run/cue/end ] || exit 5; sleep 0.5; done"

    @pytest.fixture
    def ticking(self, node: Node) -> Pod:
        node.apply("ticking", pod("ticking", shell(self.TICKING), restartPolicy="Never"))
        node.apply("kept", exclusive("kept"))
        node.wait_phase("kept", "Running")
        return node.wait_phase("ticking", "Running")

    def still_ticking(self, node: Node, ticking: Pod) -> None:
        """No line is missing, and new ones come."""
        seen = len(output_of(node, ticking))
        node.wait(lambda: len(output_of(node, ticking)) > seen + 2, what="further output")
        lines = output_of(node, ticking)
        assert lines == [str(number) for number in range(1, len(lines) + 1)]

    def test_the_package_is_installed_anew_and_both_services_renewed(self, node: Node, ticking: Pod) -> None:
        before = processes(node)
        where = node.run(
            "cd / && /opt/nodeagent/bin/python -c 'import nodeagent; print(*nodeagent.__path__)'"
        ).strip()
        node.run(f"find {where} -mindepth 1 -maxdepth 1 ! -name __init__.py -exec rm -rf {{}} +")
        node.machine.put_project()
        node.run(f"systemctl reload {KEEPER} && systemctl restart {AGENT}", timeout=300)
        self.still_ticking(node, ticking)
        assert still_the_same(node, before, ticking)
        node.run("touch /run/cue/end")
        ended = status_of(node.wait_phase("ticking", "Failed"))["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (5, "Error")
        assert node.read(BEGUN).split() == ["kept"]

    @pytest.mark.parametrize("command", [f"systemctl restart {KEEPER}", f"systemctl kill -s KILL {KEEPER}"])
    def test_the_keeper_begins_anew(self, node: Node, ticking: Pod, command: str) -> None:
        before = processes(node)
        node.run(command)
        self.still_ticking(node, ticking)
        assert still_the_same(node, before, ticking)
        # Whose child it was is gone: nobody can tell its exit code now.
        node.run("touch /run/cue/end")
        ended = status_of(node.wait_phase("ticking", "Failed"))["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
        # And what comes is run as before.
        node.apply("later", recorded("later"))
        node.wait_phase("later", "Running")
        assert node.read(BEGUN).split() == ["kept", "later"]


def still_the_same(node: Node, before: dict[str, list[int]], ticking: Pod) -> bool:
    """Every container has its processes, the ticking one besides its sleep of the moment."""
    now = processes(node)
    leaf = leaf_of(ticking)
    return now.keys() == before.keys() and all(
        min(now[path]) == min(before[path]) if path == leaf else now[path] == before[path] for path in now
    )
