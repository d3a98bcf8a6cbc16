"""A pod's life, from its file's appearance to the last trace of it."""

import itertools
import json
import re
from typing import Any

import pytest

from tests.integration.node import CGROUP_ROOT, MANIFESTS, Node
from tests.integration.observed import (
    condition,
    events,
    log_path,
    memory_total_bytes,
    node_status,
    output_of,
    processes_of,
    slice_of,
    status_of,
)
from tests.integration.workload import Manifest, container, pod, shell

# Containers share the machine's files: what they do is written down here, in order.
DIARY = "/run/diary"
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP]) (.*)")
UNTIL_TERM = (
    "trap 'echo {0} ended >>/run/diary; exit 0' TERM; echo {0} >>/run/diary; while :; do sleep 0.2; done"
)


@pytest.fixture
def kubelet_config() -> dict[str, Any]:
    return {
        # So long that whatever is noticed was not noticed by the poll.
        "fileCheckFrequency": "1h",
        "containerLogMaxSize": "16Ki",
        "containerLogMaxFiles": 3,
    }


@pytest.fixture
def node(shared_node: Node) -> Node:
    shared_node.run(f"rm -f {DIARY}; touch {DIARY}; chmod 666 {DIARY}")
    return shared_node


def diary(node: Node) -> list[str]:
    return node.read(DIARY).splitlines()


def note(text: str, name: str = "c", **fields: Any) -> Manifest:
    """A container that writes one line into the diary and ends well."""
    return shell(f"echo {text} >>{DIARY}", name=name, **fields)


class TestManifests:
    def test_files_that_come_change_and_go_are_noticed(self, node: Node) -> None:
        node.apply("web", pod("web", shell("echo one; sleep infinity")))
        first = node.wait_phase("web", "Running")
        assert first["metadata"]["name"] == f"web-{first['spec']['nodeName']}"
        assert first["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"

        node.apply("web", pod("web", shell("echo two; sleep infinity")))

        def replaced() -> dict[str, Any] | None:
            found = node.pod("web")
            fresh = found and found["metadata"]["uid"] != first["metadata"]["uid"]
            return found if fresh and found and found["status"].get("phase") == "Running" else None

        second = node.wait(replaced, what="the changed pod in the first one's place")
        assert second is not None
        node.wait(lambda: output_of(node, second) == ["two"], what="the changed command's output")
        assert len(node.pods()) == 1

        node.delete("web")
        node.wait_gone("web")
        for gone in (first, second):
            assert not node.exists(f"{CGROUP_ROOT}/{slice_of(gone)}")
            assert not node.exists(log_path(gone))

    def test_a_broken_manifest_is_reported_and_the_others_go_on(self, node: Node) -> None:
        broken = pod("broken", container(limits={"memory": "many"}))
        broken["spec"]["containers"][0]["imagePolicy"] = "never"
        node.apply("broken", broken)
        node.apply("not-yaml", "{ this: is [not yaml")
        node.apply("fine", pod("fine"))
        node.wait_phase("fine", "Running")

        def messages() -> list[str]:
            return [each["message"] for each in events(node, "InvalidManifest")]

        texts = "\n".join(messages())
        assert f"{MANIFESTS}/broken.yaml" in texts
        assert "spec.containers[0].resources.limits" in texts or "imagePolicy" in texts
        assert f"{MANIFESTS}/not-yaml.yaml" in texts
        assert len(node.pods()) == 1

        node.apply("broken", pod("broken"))
        node.wait_phase("broken", "Running")

    def test_a_pod_whose_file_breaks_runs_on(self, node: Node) -> None:
        node.apply("web", pod("web"))
        before = processes_of(node, node.wait_phase("web", "Running"))
        node.apply("web", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: oops}\n")
        node.wait(
            lambda: any("web.yaml" in each["message"] for each in events(node, "InvalidManifest")),
            what="the broken file reported",
        )
        # A pod that comes afterwards shows that all files have been looked at.
        node.apply("other", pod("other"))
        node.wait_phase("other", "Running")
        assert processes_of(node, node.wait_phase("web", "Running")) == before

        node.apply("web", pod("web"))
        node.delete("other")
        node.wait_gone("other")
        assert processes_of(node, node.wait_phase("web", "Running")) == before

    def test_lists_and_documents_in_one_file_are_all_pods(self, node: Node) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": [pod("a"), pod("b")]}
        node.apply("many", f"{json.dumps(items)}\n---\n{json.dumps(pod('d'))}\n")
        for name in ("a", "b", "d"):
            node.wait_phase(name, "Running")


class TestOrder:
    def test_init_containers_then_sidecars_then_the_others(self, node: Node) -> None:
        manifest = pod(
            "ordered",
            shell(f"echo main >>{DIARY}; sleep 1; echo main ended >>{DIARY}"),
            initContainers=[
                shell(f"sleep 1; echo first >>{DIARY}", name="first"),
                shell(UNTIL_TERM.format("sidecar"), name="sidecar", restartPolicy="Always"),
                note("second", name="second"),
            ],
            restartPolicy="Never",
            terminationGracePeriodSeconds=30,
        )
        node.apply("ordered", manifest)
        ended = node.wait_phase("ordered", "Succeeded", timeout=120)
        assert diary(node) == ["first", "sidecar", "second", "main", "main ended", "sidecar ended"]
        assert condition(ended["status"], "Initialized")["status"] == "True"
        for name in ("first", "second", "c"):
            state = status_of(ended, name)["state"]["terminated"]
            assert (state["reason"], state["exitCode"]) == ("Completed", 0)

    def test_a_failed_init_container_holds_the_others_back(self, node: Node) -> None:
        manifest = pod(
            "held", note("main"), initContainers=[shell("exit 4", name="first")], restartPolicy="Never"
        )
        node.apply("held", manifest)
        failed = node.wait_phase("held", "Failed")
        assert status_of(failed, "first")["state"]["terminated"]["exitCode"] == 4
        assert diary(node) == []

    def test_while_it_initialises_the_pod_is_pending(self, node: Node) -> None:
        manifest = pod(
            "slow", initContainers=[shell(f"while [ ! -s {DIARY} ]; do sleep 0.2; done", name="first")]
        )
        node.apply("slow", manifest)

        def initialising() -> dict[str, Any] | None:
            found = node.pod("slow")
            return found if found and status_of(found, "first").get("state", {}).get("running") else None

        pending = node.wait(initialising, what="the init container running")
        assert pending is not None
        assert pending["status"]["phase"] == "Pending"
        assert status_of(pending)["state"]["waiting"]["reason"] == "PodInitializing"
        assert condition(pending["status"], "Initialized")["status"] == "False"
        node.run(f"echo go >>{DIARY}")
        running = node.wait_phase("slow", "Running")
        assert condition(running["status"], "Ready")["status"] == "True"


class TestEnds:
    def test_exit_codes_and_restart_policies(self, node: Node) -> None:
        node.apply("failed", pod("failed", shell("exit 3"), restartPolicy="Never"))
        node.apply("succeeded", pod("succeeded", shell("exit 0"), restartPolicy="OnFailure"))
        node.apply(
            "again",
            pod(
                "again",
                shell(f"[ -s {DIARY} ] || {{ echo x >>{DIARY}; exit 42; }}"),
                restartPolicy="OnFailure",
            ),
        )
        failed = status_of(node.wait_phase("failed", "Failed"))
        ended = failed["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"], failed["restartCount"]) == (3, "Error", 0)
        assert status_of(node.wait_phase("succeeded", "Succeeded"))["restartCount"] == 0
        again = status_of(node.wait_phase("again", "Succeeded"))
        assert again["restartCount"] == 1
        assert again["lastState"]["terminated"]["exitCode"] == 42
        assert again["state"]["terminated"]["exitCode"] == 0

    def test_what_crashes_waits_ten_seconds_then_twenty(self, node: Node) -> None:
        node.apply("crash", pod("crash", shell(f"cut -d' ' -f1 /proc/uptime >>{DIARY}; exit 1")))

        def waiting() -> dict[str, Any] | None:
            found = node.pod("crash")
            state = status_of(found).get("state", {}) if found else {}
            return found if state.get("waiting", {}).get("reason") == "CrashLoopBackOff" else None

        crash = node.wait(waiting, what="CrashLoopBackOff")
        assert crash is not None
        name, uid = crash["metadata"]["name"], crash["metadata"]["uid"]
        assert status_of(crash)["state"]["waiting"]["message"] == (
            f"back-off 10s restarting failed container=c pod={name}_default({uid})"
        )
        assert crash["status"]["phase"] == "Running"
        assert condition(crash["status"], "Ready")["status"] == "False"
        assert events(node, "BackOff", name)

        node.wait(lambda: len(diary(node)) >= 4, timeout=120, what="three restarts")
        starts = [float(line) for line in diary(node)]
        waits = [later - earlier for earlier, later in itertools.pairwise(starts)]
        assert waits[0] < 10 <= waits[1] < 20 <= waits[2]

    def test_sigterm_first_and_the_rest_of_the_grace_period_is_given_back(self, node: Node) -> None:
        node.apply(
            "polite", pod("polite", shell(UNTIL_TERM.format("polite")), terminationGracePeriodSeconds=300)
        )
        polite = node.wait_phase("polite", "Running")
        node.wait(lambda: diary(node) == ["polite"], what="the handler in place")
        node.delete("polite")
        node.wait_gone("polite", timeout=100)
        assert diary(node) == ["polite", "polite ended"]
        assert not node.exists(f"{CGROUP_ROOT}/{slice_of(polite)}")

    def test_who_ignores_sigterm_is_killed_when_its_grace_ends(self, node: Node) -> None:
        script = f"trap 'cut -d\" \" -f1 /proc/uptime >>{DIARY}' TERM; while :; do sleep 0.2; done"
        node.apply("deaf", pod("deaf", shell(script), terminationGracePeriodSeconds=8))
        deaf = node.wait_phase("deaf", "Running")
        node.delete("deaf")
        node.wait(lambda: diary(node), what="SIGTERM")
        leaving = node.pod("deaf")
        assert leaving is not None
        assert leaving["metadata"]["deletionGracePeriodSeconds"] == 8
        node.wait_gone("deaf")
        asked, gone = float(diary(node)[0]), float(node.read("/proc/uptime").split()[0])
        assert gone - asked > 7
        assert not node.exists(f"{CGROUP_ROOT}/{slice_of(deaf)}")

    def test_a_program_that_is_not_there(self, node: Node) -> None:
        node.apply("missing", pod("missing", container("/no/such"), restartPolicy="Never"))
        ended = status_of(node.wait_phase("missing", "Failed"))["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
        assert ended["message"] == 'exec: "/no/such": stat /no/such: no such file or directory'

    def test_what_cannot_start_is_tried_again_with_back_off(self, node: Node) -> None:
        node.apply("missing", pod("missing", container("/var/tmp/late")))

        def waiting() -> dict[str, Any] | None:
            found = node.pod("missing")
            return (
                found
                if found and status_of(found).get("state", {}).get("waiting", {}).get("message")
                else None
            )

        missing = node.wait(waiting, what="a container that waits and says why")
        assert missing is not None
        assert status_of(missing)["state"]["waiting"]["reason"] in ("CrashLoopBackOff", "RunContainerError")
        node.run("printf '#!/bin/sh\\nexec sleep infinity\\n' >/var/tmp/late && chmod +x /var/tmp/late")
        try:
            node.wait(
                lambda: status_of(node.pod("missing") or missing)["state"].get("running"),
                what="the program found at last",
            )
        finally:
            node.run("rm /var/tmp/late")


class TestContainers:
    def test_environment_directory_and_user(self, node: Node) -> None:
        script = 'echo "$GREETING; $(pwd); $(id -u):$(id -g); $NAME; $HOSTNAME; $(hostname)"'
        env = [
            {"name": "WHO", "value": "world"},
            {"name": "GREETING", "value": "hello $(WHO), $(NOBODY) and $$(WHO)"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]
        user = {"runAsUser": 1234, "runAsGroup": 2345}
        manifest = pod(
            "who",
            shell(script, env=env, workingDir="/usr/share", securityContext=user),
            restartPolicy="Never",
        )
        node.apply("who", manifest)
        ended = node.wait_phase("who", "Succeeded")
        name = ended["metadata"]["name"]
        assert output_of(node, ended) == [
            f"hello world, $(NOBODY) and $(WHO); /usr/share; 1234:2345; {name}; {name}; {name}"
        ]

    def test_each_is_the_first_of_its_own_processes(self, node: Node) -> None:
        # Kubernetes takes "$$" for one "$".
        alone = shell("echo $$$$; ls -d /proc/[0-9]* | wc -l")
        node.apply("alone", pod("alone", alone, restartPolicy="Never"))
        own_pid, processes = output_of(node, node.wait_phase("alone", "Succeeded"))
        assert own_pid == "1"
        assert int(processes) <= 3

    def test_logs_are_in_the_format_of_the_cri(self, node: Node) -> None:
        long_line = 20000
        script = (
            f"echo out; echo err >&2; head -c {long_line} /dev/zero | tr '\\0' x; echo; printf unfinished"
        )
        node.apply("log", pod("log", shell(script), restartPolicy="Never"))
        ended = node.wait_phase("log", "Succeeded")
        directory = log_path(ended).rpartition("/")[0]
        # In the order of writing: the rotated files sort behind the current one, but are older.
        names = sorted(node.run(f"ls {directory}").split(), key=lambda name: (name == "0.log", name))
        lines = node.run(f"cd {directory} && cat {' '.join(names)}").splitlines()
        matches = [LOG_LINE.fullmatch(line) for line in lines]
        assert all(matches)
        parts = [(match[2], match[3], match[4]) for match in matches if match]
        assert {("stdout", "F", "out"), ("stderr", "F", "err"), ("stdout", "F", "unfinished")} <= set(parts)
        pieces = [part for part in parts if "x" in part[2] and "unfinished" not in part[2]]
        assert "".join(piece[2] for piece in pieces) == "x" * long_line
        assert [piece[1] for piece in pieces] == ["P"] * (len(pieces) - 1) + ["F"]
        assert len(pieces) > 1

    def test_logs_are_rotated(self, node: Node) -> None:
        script = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done"
        node.apply("chatty", pod("chatty", shell(script), restartPolicy="Never"))
        chatty = node.wait_phase("chatty", "Succeeded")
        directory = log_path(chatty).rpartition("/")[0]
        sizes = dict(line.split()[::-1] for line in node.run(f"stat -c '%s %n' {directory}/*").splitlines())
        assert len(sizes) == 3
        # A file ends with the write that fills it, which is up to a pipe's content longer.
        assert all(int(size) < 16384 + 2 * 65536 for size in sizes.values())
        last = node.run(f"cat {directory}/* | sed 's/.* line //' | sort -n | tail -1")
        assert last.strip() == "2999"


class TestRoom:
    """What does not fit is refused in kubelet's words, and comes when there is room."""

    @pytest.fixture
    def kubelet_config(self) -> dict[str, Any]:
        return {"maxPods": 3, "systemReserved": {"cpu": "500m", "memory": "100Mi"}}

    def test_too_much_cpu_and_memory(self, node: Node) -> None:
        allocatable = node_status(node)["allocatable"]
        # What is reserved and the default of evictionHard, 100Mi.
        memory = memory_total_bytes(node) - (200 << 20)
        assert allocatable["cpu"] == "1500m"
        assert allocatable["memory"] == f"{memory >> 10}Ki"
        node.apply("some", pod("some", container(requests={"cpu": "200m", "memory": "100Mi"})))
        node.wait_phase("some", "Running")
        node.apply("cpu", pod("cpu", container(requests={"cpu": "1301m"})))
        node.apply("memory", pod("memory", container(requests={"memory": str(memory - (100 << 20) + 1)})))
        refused = node.wait_phase("cpu", "Failed")
        assert refused["status"]["reason"] == "OutOfcpu"
        said = "Node didn't have enough resource: cpu, requested: 1301, used: 200, capacity: 1500"
        assert refused["status"]["message"] == f"Pod was rejected: {said}"
        assert [each["message"] for each in events(node, "OutOfcpu", refused["metadata"]["name"])] == [said]
        refused = node.wait_phase("memory", "Failed")
        assert refused["status"]["reason"] == "OutOfmemory"
        assert refused["status"]["message"] == (
            "Pod was rejected: Node didn't have enough resource: memory, "
            f"requested: {memory - (100 << 20) + 1}, used: {100 << 20}, capacity: {memory}"
        )
        assert not node.exists(f"{CGROUP_ROOT}/{slice_of(refused)}")
        # Exactly what is left fits.
        node.apply("cpu", pod("cpu", container(requests={"cpu": "1300m"})))
        node.wait_phase("cpu", "Running")

    def test_too_many_pods_and_who_was_refused_comes_later(self, node: Node) -> None:
        for name in ("a", "b", "c"):
            node.apply(name, pod(name))
            node.wait_phase(name, "Running")
        node.apply("late", pod("late"))
        refused = node.wait_phase("late", "Failed")["status"]
        assert refused["reason"] == "OutOfpods"
        assert refused["message"] == (
            "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"
        )
        node.delete("b")
        node.wait_phase("late", "Running", timeout=120)

    def test_a_pod_of_higher_priority_takes_the_room_once_the_lower_one_has_ended(self, node: Node) -> None:
        most_of_it = {"cpu": "1500m"}
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
        node.apply("urgent", urgent | {"metadata": {"name": "urgent"}})
        node.apply("ordinary", pod("ordinary", shell(UNTIL_TERM.format("ordinary"), requests=most_of_it)))
        node.wait_phase("ordinary", "Running")
        node.wait(lambda: diary(node) == ["ordinary"], what="the trap of the ordinary pod")
        newcomer = shell("echo urgent >>/run/diary; sleep infinity", requests=most_of_it)
        node.apply("urgent-pod", pod("urgent-pod", newcomer, priorityClassName="urgent"))
        node.wait_phase("urgent-pod", "Running")
        node.wait(lambda: len(diary(node)) == 3, what="the newcomer's line")
        assert diary(node) == ["ordinary", "ordinary ended", "urgent"]
        displaced = node.wait_phase("ordinary", "Failed")["status"]
        assert displaced["reason"] == "Preempted"
        assert 'kubelet_preemptions{preemption_signal="cpu"} 1' in node.get("/metrics")
