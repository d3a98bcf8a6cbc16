"""A host made of files, fit to be a node until a test breaks it."""

from datetime import UTC, datetime
from pathlib import Path

from nodeagent.cli.host_checks import Finding, Host, check_host
from nodeagent.config import Config, parse_config


class FixedClock:
    def __init__(self, year: int = 2026) -> None:
        self._now = datetime(year, 3, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits here")


class HostFiles:
    """A host that passes every check, until a test breaks it."""

    def __init__(self, root: Path) -> None:
        self.cgroup, self.proc, self.run, self.sys = (
            root / name for name in ("cgroup", "proc", "run", "sys")
        )
        self.write("cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma")
        self.root = root
        self.write("proc/sys/kernel/osrelease", "6.12.63+deb13-amd64\n")
        self.write("proc/self/mountinfo", f"30 23 0:26 / {self.cgroup} rw,nosuid - cgroup2 cgroup2 rw\n")
        self.write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        self.write("proc/1/comm", "systemd\n")
        self.write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")
        self.write("proc/sys/kernel/pid_max", "32768\n")
        self.write("proc/sys/kernel/threads-max", "12000\n")
        self.write("proc/meminfo", "MemTotal:        2000000 kB\nSwapTotal:             0 kB\n")
        self.write("sys/devices/system/cpu/online", "0-1\n")
        self.write("run/systemd/timesync/synchronized", "")
        self.systemd: str | None = "systemd 257 (257.9-1)\n+PAM"
        self.user = 0
        self.year = 2026
        agent = f"stateDirectory: {root}/state"
        self.config = f"""
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
podLogsDir: {root}/logs
---
apiVersion: nodeagent.io/v1alpha1
kind: AgentConfiguration
{agent}
"""

    root: Path

    def write(self, name: str, text: str) -> None:
        path = self.cgroup.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def parsed(self, text: str = "") -> Config:
        return parse_config(self.config.replace("podLogsDir", f"{text}\npodLogsDir").encode(), "c.yaml")

    def findings(self, text: str = "") -> dict[str, Finding]:
        host = Host(
            self.cgroup, self.proc, self.sys, self.run, self.user, FixedClock(self.year), lambda: self.systemd
        )
        return {finding.name: finding for finding in check_host(host, self.parsed(text))}
