"""What a host must have to be a node, looked at without changing anything."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from nodeagent.cgroup import check
from nodeagent.cgroup.check import read_text
from nodeagent.cli.common import CommandError
from nodeagent.cli.plan_machine import planned_node
from nodeagent.clock import Clock
from nodeagent.config import Config
from nodeagent.hardware.node import read_node_info
from nodeagent.hardware.topology import TopologyError, read_topology

NEEDED_SYSTEMD = 244
USEFUL_CONTROLLERS = {
    "io": "nothing is known of disk traffic",
    "hugetlb": "no pod can get huge pages",
}
NEEDED_MODULES = (
    "aiohttp",
    "dbus_fast",
    "msgspec",
    "prometheus_client",
    "psutil",
    "pyroute2",
    "systemd",
    "yaml",
)
FEW_PIDS = 4096
LITTLE_SPACE_BYTES = 100 << 20
# No clock that was ever set shows a time before this program existed.
EARLIEST_TIME = datetime(2025, 1, 1, tzinfo=UTC)


class Level(StrEnum):
    """How bad a finding is; with a FAIL the agent does not start."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was found, where, and how to mend it."""

    name: str
    level: Level
    found: str
    where: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """The places to look at; a test gives its own."""

    cgroup_root: Path
    proc_root: Path
    sys_root: Path
    run_root: Path
    user_id: int
    clock: Clock
    systemd_version: Callable[[], str | None]


def check_host(host: Host, config: Config) -> Iterator[Finding]:
    """Every check, in the order in which it makes sense to mend."""
    yield _kernel(host)
    mounted = _cgroup_mount(host)
    yield mounted
    if mounted.level is not Level.FAIL:
        yield _controllers(host)
        yield _delegation(host)
    yield _pressure(host)
    yield _systemd(host, config)
    yield _swap(host, config)
    yield _pids(host)
    yield _clock(host)
    yield _user(host)
    yield _directory("state directory", Path(config.agent.state_directory))
    yield _directory("log directory", Path(config.kubelet.pod_logs_dir))
    yield _modules()
    yield _configuration(host, config)


def installed_systemd() -> str | None:
    """The first line of `systemctl --version`, or None without systemd."""
    path = shutil.which("systemctl")
    if path is None:
        return None
    try:
        return subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=5, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def _kernel(host: Host) -> Finding:
    found = f"Linux {check.kernel_release(host.proc_root)}"
    where = str(host.proc_root / "sys/kernel/osrelease")
    return _finding("kernel", check.kernel_lack(host.proc_root), found, where)


def _cgroup_mount(host: Host) -> Finding:
    lack = check.hierarchy_lack(host.proc_root, host.cgroup_root)
    return _finding(
        "cgroup v2", lack, f"cgroup2 on {host.cgroup_root}", str(host.proc_root / "self/mountinfo")
    )


def _controllers(host: Host) -> Finding:
    offered = check.offered_controllers(host.cgroup_root)
    found = [
        " ".join(offered),
        *(f"without {name} {loss}" for name, loss in USEFUL_CONTROLLERS.items() if name not in offered),
    ]
    where = str(host.cgroup_root / "cgroup.controllers")
    return _finding("controllers", check.controllers_lack(host.cgroup_root), "; ".join(found), where)


def _delegation(host: Host) -> Finding:
    root = host.cgroup_root
    if (root / "cgroup.events").exists():
        return Finding(
            "delegation",
            Level.WARN,
            "this is not the root of the hierarchy: the agent would see a container's part of it",
            str(root / "cgroup.events"),
            "run the agent in the host's cgroup namespace",
        )
    if not os.access(root, os.W_OK):
        return Finding(
            "delegation",
            Level.WARN,
            f"user {host.user_id} may not create cgroups",
            str(root),
            "run as root, on a cgroup mount that is not read-only",
        )
    return Finding("delegation", Level.OK, "cgroups can be created", str(root))


def _pressure(host: Host) -> Finding:
    path = host.proc_root / "pressure/memory"
    if read_text(path).startswith("some"):
        return Finding("pressure stall information", Level.OK, "on", str(path))
    return Finding(
        "pressure stall information",
        Level.WARN,
        "off: eviction goes by its poll alone, and pressure metrics are missing",
        str(path),
        "boot with psi=1, on a kernel with CONFIG_PSI",
    )


def _systemd(host: Host, config: Config) -> Finding:
    first = read_text(host.proc_root / "1/comm")
    where = str(host.proc_root / "1/comm")
    if first != "systemd":
        asked = config.kubelet.cgroup_driver == "systemd"
        return Finding(
            "systemd",
            Level.FAIL if asked else Level.OK,
            f"PID 1 is {first or 'unknown'}",
            where,
            "set cgroupDriver: cgroupfs" if asked else "",
        )
    match = re.match(r"systemd (\d+)", host.systemd_version() or "")
    if match is None:
        return Finding(
            "systemd", Level.WARN, "of unknown version", "systemctl --version", "install systemctl"
        )
    if int(match[1]) < NEEDED_SYSTEMD:
        mend = f"install version {NEEDED_SYSTEMD} or later: AllowedCPUs= came with it"
        return Finding("systemd", Level.FAIL, f"version {match[1]}", "systemctl --version", mend)
    return Finding("systemd", Level.OK, f"version {match[1]}", "systemctl --version")


def _swap(host: Host, config: Config) -> Finding:
    devices, where = check.swap_devices(host.proc_root), str(host.proc_root / "swaps")
    lack = check.swap_lack(host.proc_root) if config.kubelet.fail_swap_on else None
    found = f"on ({', '.join(devices)}), and failSwapOn is false" if devices else "off"
    return _finding("swap", lack, found, where)


def _pids(host: Host) -> Finding:
    paths = [host.proc_root / "sys/kernel/pid_max", host.proc_root / "sys/kernel/threads-max"]
    limits = [int(text) if (text := read_text(path)).isdigit() else 0 for path in paths]
    where = f"{paths[0]}, {paths[1]}"
    if min(limits) >= FEW_PIDS:
        return Finding("process limit", Level.OK, str(min(limits)), where)
    mend = f"sysctl kernel.pid_max and kernel.threads-max: {FEW_PIDS} or more"
    return Finding("process limit", Level.WARN, f"{min(limits)} processes on the whole node", where, mend)


def _clock(host: Host) -> Finding:
    now = host.clock.now()
    text = now.strftime("%Y-%m-%d %H:%M:%S UTC")
    mark = host.run_root / "systemd/timesync/synchronized"
    if now < EARLIEST_TIME:
        return Finding(
            "clock", Level.FAIL, f"{text}: not set", "system clock", "set it: 'timedatectl set-ntp true'"
        )
    if mark.exists():
        return Finding("clock", Level.OK, f"{text}, synchronised", str(mark))
    mend = "'timedatectl set-ntp true', unless another service keeps the time"
    return Finding("clock", Level.WARN, f"{text}, not known to be synchronised", str(mark), mend)


def _user(host: Host) -> Finding:
    # Whoever looks need not be who runs the agent.
    return _finding("user", check.user_lack(host.user_id), "root", "effective user id", Level.WARN)


def _directory(name: str, path: Path) -> Finding:
    there = next(parent for parent in (path, *path.parents) if parent.exists())
    if not there.is_dir():
        return Finding(
            name, Level.FAIL, f"{there} is not a directory", str(path), "remove it or name another path"
        )
    space = os.statvfs(there)
    free = space.f_bavail * space.f_frsize
    found = f"{'there' if there == path else 'will be created'}, {free >> 20} MiB free"
    if not os.access(there, os.W_OK):
        return Finding(name, Level.WARN, f"{there} is not writable for this user", str(path), "run as root")
    if free < LITTLE_SPACE_BYTES:
        return Finding(
            name, Level.WARN, found, str(path), "free some space: the agent cannot remember on a full disk"
        )
    return Finding(name, Level.OK, found, str(path))


def _modules() -> Finding:
    missing = [name for name in NEEDED_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        mend = "install nodeagent with its dependencies into its virtual environment"
        return Finding("Python modules", Level.FAIL, f"missing: {', '.join(missing)}", "import path", mend)
    return Finding("Python modules", Level.OK, "all there", "import path")


def _configuration(host: Host, config: Config) -> Finding:
    """Reservations, policies and their options against what the machine has."""
    name, mend = "configuration", "change the configuration; 'nodeagent config --explain FIELD' tells more"
    try:
        topology = read_topology(host.sys_root)
        info = read_node_info(host.proc_root, host.sys_root, Path("/"), len(topology.cpus))
    except (TopologyError, OSError, KeyError, ValueError) as error:
        return Finding(name, Level.WARN, f"the machine cannot be measured: {error}", str(host.sys_root))
    try:
        planned_node(config, topology, info)
    except CommandError as error:
        return Finding(name, Level.FAIL, str(error), config.source, mend)
    found = f"suits {len(topology.cpus)} CPUs and {info.memory_bytes >> 20} MiB of memory"
    return Finding(name, Level.OK, found, config.source)


def _finding(
    name: str, lack: check.Lack | None, found: str, where: str, level: Level = Level.FAIL
) -> Finding:
    if lack is None:
        return Finding(name, Level.OK, found, where)
    return Finding(name, level, lack.found, lack.where, lack.mend)
