"""The booted machine as the tests see it: commands, files, cgroups, manifests, pods."""

import http.client
import json
import shlex
import time
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

from nodevm.machine import Machine

T = TypeVar("T")
Manifest = str | dict[str, Any]

CGROUP_ROOT = "/sys/fs/cgroup"
MANIFESTS = "/etc/nodeagent/manifests"
CONFIG = "/etc/nodeagent/config.yaml"
KUBELET_CONFIG = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
AGENT_CONFIG = {"apiVersion": "nodeagent.io/v1alpha1", "kind": "AgentConfiguration"}

# The whole way back to a node that has never run a pod. With a slice systemd stops every scope below it.
CLEAN = f"""
rm -rf {MANIFESTS} && mkdir -p {MANIFESTS}
systemctl stop nodeagent.service nodeagent-keeper.service
cd {CGROUP_ROOT}
[ ! -e kubepods.slice ] || echo 1 >kubepods.slice/cgroup.kill
systemctl stop kubepods.slice
[ ! -e kubepods.slice ] || find kubepods.slice -depth -type d -exec rmdir {{}} +
systemctl clean --what=all nodeagent.service nodeagent-keeper.service
systemctl reset-failed
"""


class Node:
    """A machine of one shape. All runs as root; a failed command raises AssertionError with its output."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        # What the running agent was begun for; whoever begins it anew says so.
        self.purpose: object = None
        self.reset_at = "-10min"

    # --- the machine ---

    def run(self, command: str, *, check: bool = True, timeout: float = 120, data: str | None = None) -> str:
        """What the shell command prints on stdout; `data` is its stdin. `check` wants exit code 0."""
        result = self.machine.ssh(command, timeout_seconds=timeout, data=data)
        if check:
            output = result.stdout + result.stderr
            assert result.returncode == 0, f"exit code {result.returncode} of: {command}\n{output}"
        return result.stdout

    def put(self, local: Any, remote: str) -> None:
        """Copy a local file or directory into the machine."""
        self.machine.put(local, remote)

    def read(self, path: str) -> str:
        """The text of a file, without its final newline."""
        return self.run(f"cat {shlex.quote(path)}").removesuffix("\n")

    def write(self, path: str, text: str) -> None:
        """Write a file in one step: a reader sees the old text or the new."""
        quoted, new = shlex.quote(path), shlex.quote(f"{path}.new~")
        self.run(f"cat >{new} && mv {new} {quoted}", data=text)

    def exists(self, path: str) -> bool:
        return self.run(f"test -e {shlex.quote(path)}; echo $?").strip() == "0"

    def cgroup(self, path: str, file: str) -> str:
        """A cgroup file; `path` is relative to the cgroup root."""
        return self.read(f"{CGROUP_ROOT}/{path}/{file}")

    def journal(self, lines: int = 200) -> str:
        """The end of what the agent and the keeper said since the node was last reset."""
        options = f"--no-pager -o short-precise --since={self.reset_at} -n {lines}"
        return self.run(f"journalctl {options} -u nodeagent.service -u nodeagent-keeper.service", check=False)

    # --- the agent ---

    def reset(self, kubelet: dict[str, Any], agent: dict[str, Any]) -> None:
        """No manifests, pods, state or logs; then the agent starts with this configuration."""
        self.clean()
        self.configure(kubelet, agent)
        self.start()

    def clean(self) -> None:
        """Stop the agent and remove every trace of its pods and its state."""
        self.purpose = None
        printed = self.run(f"exec 2>/dev/null; {CLEAN} date +%s", check=False, timeout=300)
        self.reset_at = f"@{printed.strip()}"
        assert not self.exists(f"{CGROUP_ROOT}/kubepods.slice"), self.run(
            f"find {CGROUP_ROOT}/kubepods.slice -name cgroup.procs -exec grep -H . {{}} +", check=False
        )

    def configure(self, kubelet: dict[str, Any], agent: dict[str, Any]) -> None:
        """Write the configuration file; the agent reads it when it starts."""
        documents = (KUBELET_CONFIG | kubelet, AGENT_CONFIG | agent)
        self.write(CONFIG, "\n---\n".join(json.dumps(document, indent=1) for document in documents) + "\n")

    def start(self) -> None:
        """Start the service and wait until it says that it is ready."""
        self.run("systemctl start nodeagent.service", timeout=300)

    def restart(self) -> None:
        """Restart the service, as an upgrade does; the keeper and the containers run on."""
        self.run("systemctl restart nodeagent.service", timeout=300)

    def stop(self) -> None:
        """Stop the agent only."""
        self.run("systemctl stop nodeagent.service", timeout=300)

    def get(self, path: str, *, timeout: float = 30) -> str:
        """GET from the read-only server, by way of the forwarded port."""
        url = f"http://127.0.0.1:{self.machine.state().metrics_port}{path}"
        with urllib.request.urlopen(url, timeout=timeout) as response:
            text: str = response.read().decode()
        return text

    # --- pods ---

    def apply(self, name: str, manifest: Manifest) -> None:
        """Put a manifest into the agent's directory, in one step."""
        text = manifest if isinstance(manifest, str) else json.dumps(manifest, indent=1)
        self.write(f"{MANIFESTS}/{name}.yaml", text)

    def delete(self, name: str) -> None:
        """Remove a manifest."""
        self.run(f"rm {MANIFESTS}/{shlex.quote(name)}.yaml")

    def delete_all(self) -> None:
        """Remove all manifests and wait until their pods are gone."""
        self.run(f"rm -rf {MANIFESTS}/*")
        self.wait(lambda: not self.pods() and "ok" in self.get("/healthz"), what="all pods gone")

    def pods(self) -> list[dict[str, Any]]:
        """The pods that the agent serves; none while it cannot be reached."""
        try:
            served = json.loads(self.get("/pods"))
        except (OSError, http.client.HTTPException):
            return []
        return list(served.get("items") or [])

    def pod(self, name: str) -> dict[str, Any] | None:
        """The pod of that name. A static pod's name may end in the node's."""
        for pod in self.pods():
            if pod["metadata"]["name"] in (name, f"{name}-node"):
                return pod
        return None

    def wait(self, predicate: Callable[[], T], timeout: float = 90, what: str = "") -> T:
        """Call `predicate` until what it returns is true, and return that. The node is slow: ask cheaply."""
        end = time.monotonic() + timeout
        while not (value := predicate()):
            if time.monotonic() > end:
                pods = {pod["metadata"]["name"]: pod.get("status", {}) for pod in self.pods()}
                waited = what or getattr(predicate, "__doc__", "") or "the condition"
                raise AssertionError(
                    f"after {timeout:.0f} s still waiting for: {waited}; last seen: {value!r}; pods: "
                    f"{json.dumps(pods, indent=1)}"
                )
            time.sleep(0.3)
        return value

    def wait_phase(self, name: str, phase: str, timeout: float = 90) -> dict[str, Any]:
        """Wait until the pod is in `phase` and return it."""

        def reached() -> dict[str, Any] | None:
            pod = self.pod(name)
            return pod if pod is not None and pod.get("status", {}).get("phase") == phase else None

        found = self.wait(reached, timeout, f"pod {name} in phase {phase}")
        assert found is not None
        return found

    def wait_gone(self, name: str, timeout: float = 90) -> None:
        """Wait until the agent no longer serves the pod."""
        self.wait(lambda: self.pod(name) is None, timeout, f"pod {name} gone")
