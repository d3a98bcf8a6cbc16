# ruff: noqa: ASYNC110 - short commands; files of the kernel and systemd cannot wake us
"""What tests of the cgroup drivers do inside the machine: one a call, its findings as JSON on stdout.

Copied into the machine and run there by its own Python. The tree is one of its own, devcg.slice.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

from nodeagent.cgroup.bus import SystemdBus
from nodeagent.cgroup.cgroupfs import CgroupfsDriver
from nodeagent.cgroup.drivers import Driver
from nodeagent.cgroup.errors import CgroupError
from nodeagent.cgroup.files import CgroupTree
from nodeagent.cgroup.reconcile import differences
from nodeagent.cgroup.systemd import SystemdDriver
from nodeagent.clock import SystemClock

TREE = CgroupTree(Path("/sys/fs/cgroup"))
TOP = "devcg.slice"
QOS = f"{TOP}/devcg-burstable.slice"
POD = f"{QOS}/devcg-burstable-podu_1.slice"
LEAF = f"{POD}/nodeagent-devcg1.scope"
NONE = {"cpu.max": "max 100000", "memory.min": "0", "memory.low": "0", "memory.high": "max"}
VALUES = {
    TOP: {"cpu.weight": "118", **NONE, "memory.max": "1073741824", "pids.max": "5000"},
    QOS: {"cpu.weight": "14", **NONE, "memory.max": "max", "pids.max": "max"},
    # 333m: no whole percent, which older systemds could not keep. 123456789: no whole page.
    POD: {
        "cpu.weight": "13",
        **NONE,
        "cpu.max": "33300 100000",
        "memory.max": "123456789",
        "pids.max": "200",
        "hugetlb.2MB.max": "0",
    },
    LEAF: {
        "cpuset.mems": "0",
        "cpuset.cpus": "1",
        "cpu.weight": "35",
        **NONE,
        "cpu.max": "1000 5000",
        "memory.low": "4194304",
        "memory.high": "104857600",
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "memory.max": "123456789",
        "hugetlb.2MB.max": "0",
    },
}
SLICES = (TOP, QOS, POD)
# What a process forks or allocates before it is in its leaf would not be the leaf's.
INSIDE = "until grep -q devcg /proc/$$/cgroup; do sleep 0.1; done; "
WASTEFUL = INSIDE + "exec python3 -c 'import time; x = bytearray(80 << 20); time.sleep(1000)'"


def systemd() -> Driver:
    return SystemdDriver(TREE, SystemdBus(timeout_seconds=60), SystemClock())


def cgroupfs() -> Driver:
    return CgroupfsDriver(TREE, SystemClock())


def shell(command: str) -> str:
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def sleeper(*argv: str) -> "subprocess.Popen[bytes]":
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv or ("sleep", "1000"), stdin=quiet, stdout=quiet, stderr=quiet)


def wrong() -> dict[str, list[str]]:
    """Say which files do not hold what they should, by cgroup."""
    found = {path: differences(TREE, path, values) for path, values in VALUES.items()}
    return {path: [f"{each.file} is {each.is_}" for each in some] for path, some in found.items() if some}


def left_behind() -> list[str]:
    """Say what of ours is still there, for the kernel or for systemd."""
    cgroups = [path for path in TREE.descendants("") if path.startswith("devcg")]
    units = shell(
        "systemctl list-units --all --plain --no-legend 'devcg*' 'nodeagent-devcg*' | cut -d' ' -f1"
    )
    files = shell("find /run/systemd -name '*devcg*'")
    return [*cgroups, *units.split(), *files.split()]


def stir() -> None:
    """Start a unit beside each of ours: that makes systemd write the files of its neighbours again."""
    for path in SLICES:
        shell(f"systemd-run --quiet --scope --slice={path.rpartition('/')[2]} true")


async def make(driver: Driver, *argv: str) -> "subprocess.Popen[bytes]":
    for path in SLICES:
        await driver.ensure_slice(path, VALUES[path])
    process = sleeper(*argv)
    await driver.attach(LEAF, process.pid, VALUES[LEAF])
    return process


async def failure(doing: Awaitable[object]) -> str:
    try:
        await doing
    except CgroupError as error:
        return str(error)
    return ""


async def reload() -> dict[str, Any]:
    """Nothing systemd does to itself changes a value."""
    driver = systemd()
    process = await make(driver)
    found: dict[str, Any] = {"made": wrong()}
    for verb in ("daemon-reload", "daemon-reexec", "daemon-reload"):
        shell(f"systemctl {verb}")
        found[f"{verb}, at once"] = wrong()
        stir()
        found[f"{verb}, after a start beside"] = wrong()
    found["controllers"] = [sorted(TREE.controllers(TOP) - TREE.enabled(path)) for path in SLICES]
    found["running"] = process.poll() is None
    await driver.remove(TOP)
    found["left behind"] = left_behind()
    return found


async def change() -> dict[str, Any]:
    """A change is kept by systemd as well, and so is its being taken back."""
    driver = systemd()
    await make(driver)
    VALUES[POD] |= {"cpu.max": "max 100000", "memory.max": "max", "pids.max": "100"}
    VALUES[LEAF] |= {"cpuset.cpus": "0", "cpu.max": "33300 100000", "memory.low": "0"}
    changed = [each.file for path in (POD, LEAF) for each in await driver.update(path, VALUES[path])]
    found: dict[str, Any] = {"changed": changed, "then": wrong()}
    shell("systemctl daemon-reload")
    stir()
    found["after a reload"] = wrong()
    found["again"] = [list(await driver.update(path, VALUES[path])) for path in VALUES]
    await driver.remove(TOP)
    found["left behind"] = left_behind()
    return found


async def adopt() -> dict[str, Any]:
    """Another life finds the tree, repairs it and leaves the processes in it alone."""
    first = systemd()
    process = await make(first)
    await first.close()
    shell(f"echo max >/sys/fs/cgroup/{POD}/pids.max; echo 1 >/sys/fs/cgroup/{QOS}/cpu.weight")
    second = systemd()
    for path in SLICES:
        await second.ensure_slice(path, VALUES[path])
    found = {"wrong": wrong(), "processes": TREE.processes(LEAF) == (process.pid,)}
    await second.remove(TOP)
    return found | {"left behind": left_behind()}


async def implicit() -> dict[str, Any]:
    """A slice that systemd made by itself, for the sake of one below, becomes ours."""
    shell("systemctl daemon-reload")  # systemd may still look for the files of transient units that are gone
    shell("systemd-run --quiet --unit=devcg-other --slice=devcg-burstable-other.slice sleep 1000")
    driver = systemd()
    await make(driver)
    shell("systemctl daemon-reload")
    stir()
    found: dict[str, Any] = {"other": TREE.exists(f"{QOS}/devcg-burstable-other.slice"), "wrong": wrong()}
    await driver.remove(TOP)
    shell("systemctl reset-failed devcg-other.service")  # it was killed, and is not ours
    return found | {"left behind": left_behind()}


async def removal() -> dict[str, Any]:
    """What ignores signals, forks, is frozen or nests cgroups is gone, soon, with its units."""
    driver = systemd()
    stubborn = "trap '' TERM INT; while :; do sleep 1000 & wait; done"
    process = await make(driver, "sh", "-c", INSIDE + stubborn)
    TREE.create(f"{LEAF}/inner")
    TREE.create(f"{LEAF}/inner/most")
    TREE.write(f"{LEAF}/inner/most", "cgroup.procs", str(sleeper().pid))
    TREE.write(POD, "cgroup.freeze", "1")
    begun = time.monotonic()
    await driver.remove(POD)
    seconds = time.monotonic() - begun
    found = {"exit": process.wait(), "soon": seconds < 10, "there": TREE.exists(POD), "qos": TREE.exists(QOS)}
    await driver.remove(POD)
    await driver.remove(TOP)
    return found | {"left behind": left_behind()}


async def refused() -> dict[str, Any]:
    """What cannot be done is said, with the unit, and leaves nothing behind."""
    driver = systemd()
    process = await make(driver)
    over = sleeper("true")
    over.wait()
    other = f"{POD}/nodeagent-devcg2.scope"
    found: dict[str, Any] = {
        "dead process": await failure(driver.attach(other, over.pid, VALUES[LEAF])),
        "taken name": await failure(driver.attach(LEAF, process.pid, VALUES[LEAF])),
        "no cgroup": await failure(driver.update(other, VALUES[LEAF])),
        "no bus": await failure(
            SystemdDriver(TREE, SystemdBus(address="unix:path=/nowhere"), SystemClock()).remove(other)
        ),
        "wrong": wrong(),
    }
    await driver.remove(TOP)
    return found | {"left behind": left_behind()}


async def failed_unit() -> dict[str, Any]:
    """A scope of an earlier life that failed, and holds its name, is no obstacle."""
    driver = systemd()
    for path in SLICES:
        await driver.ensure_slice(path, VALUES[path])
    victim = sleeper("sh", "-c", WASTEFUL)
    shell(
        "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager "
        f"StartTransientUnit 'ssa(sv)a(sa(sv))' nodeagent-devcg1.scope fail 4 PIDs au 1 {victim.pid} "
        "Slice s devcg-burstable-podu_1.slice MemoryMax t 20000000 OOMPolicy s kill 0"
    )
    victim.wait()
    while shell("systemctl show -P ActiveState nodeagent-devcg1.scope").strip() != "failed":
        await asyncio.sleep(0.1)
    await driver.attach(LEAF, sleeper().pid, VALUES[LEAF])
    found = {"wrong": wrong()}
    await driver.remove(TOP)
    return found | {"left behind": left_behind()}


async def group_kill() -> dict[str, Any]:
    """Out of memory, all processes of a container die together, and systemd keeps no failed unit."""
    driver = systemd()
    VALUES[LEAF] |= {"memory.max": "30000000", "memory.high": "max", "memory.low": "0"}
    process = await make(driver, "sh", "-c", f"{INSIDE} sleep 1000 & ({WASTEFUL}); wait")
    found: dict[str, Any] = {"exit": process.wait()}
    while TREE.exists(LEAF):
        await asyncio.sleep(0.1)
    await driver.remove(TOP)
    return found | {"left behind": left_behind()}


async def plain() -> dict[str, Any]:
    """The same tree without systemd's help."""
    driver = cgroupfs()
    process = await make(driver)
    found: dict[str, Any] = {"wrong": wrong(), "processes": TREE.processes(LEAF) == (process.pid,)}
    found["inner"] = await failure(put_inside(process.pid))
    VALUES[POD] |= {"cpu.max": "max 100000", "pids.max": "max"}
    found["changed"] = [each.file for each in await driver.update(POD, VALUES[POD])]
    found["then"] = wrong()
    await driver.remove(TOP)
    return found | {"exit": process.wait(), "left behind": left_behind()}


async def put_inside(pid: int) -> None:
    TREE.write(POD, "cgroup.procs", str(pid))


async def shrink() -> dict[str, Any]:
    """A limit below what is used takes hold, while the loop and PID 1 go on."""
    driver = systemd()
    VALUES[LEAF] |= {"memory.high": "max", "memory.low": "0"}
    await make(driver, "sh", "-c", WASTEFUL)
    while int(TREE.read(LEAF, "memory.current") or 0) < 80 << 20:
        await asyncio.sleep(0.1)
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.05)

    ticking = asyncio.create_task(tick())
    VALUES[LEAF]["memory.high"] = "41943040"
    await driver.update(LEAF, VALUES[LEAF])
    await asyncio.sleep(0.2)
    ticking.cancel()
    longest = max(later - earlier for earlier, later in pairwise(ticks))
    found = {"wrong": wrong(), "loop went on": longest < 1.0}
    await driver.remove(TOP)
    return found | {"left behind": left_behind()}


SCENARIOS: dict[str, Callable[[], Coroutine[None, None, dict[str, Any]]]] = {
    each.__name__: each
    for each in (reload, change, adopt, implicit, removal, refused, failed_unit, group_kill, plain, shrink)
}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(SCENARIOS[sys.argv[1]]())))
