# ruff: noqa: ASYNC110, ASYNC240 - files of the kernel cannot wake us, and do not block
"""What tests of the keeper do inside the machine: one scenario a call, its findings as JSON on stdout.

Copied into the machine and run there by its own Python; scopes are made by systemd, through busctl.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nodeagent.runtime.process import ProcessRuntime, StartError
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec

CGROUPS = Path("/sys/fs/cgroup")
POD = "kubepods.slice/kubepods-podkeeper.slice"
UNIT = "nodeagent-keeper.service"
MEBIBYTE = 1024 * 1024
SECONDS = 120

runtime = ProcessRuntime(Path("/run/nodeagent-keeper/keeper.sock"), patience_seconds=60)

Property = tuple[str, str, str]


def spec(name: str, *argv: str) -> ContainerSpec:
    return ContainerSpec(
        container_id=name,
        pod_uid="keeper",
        pod_namespace="default",
        pod_name="keeper",
        container_name=name,
        argv=argv,
        log_path=f"/var/log/pods/default_keeper_keeper/{name}/0.log",
        cgroup=f"{POD}/nodeagent-{name}.scope",
        pod_cgroup=POD,
    )


def leaf(name: str) -> Path:
    return CGROUPS / spec(name).cgroup


def output(name: str) -> list[str]:
    lines = Path(spec(name).log_path).read_text().splitlines()
    return [line.split(" ", 3)[3] for line in lines]


def scope(name: str, *properties: Property) -> Callable[[int], Awaitable[None]]:
    """Return how to put a process into its own scope with these properties."""

    async def attach(pid: int) -> None:
        given = [("PIDs", "au", f"1 {pid}"), ("Slice", "s", POD.split("/")[-1]), *properties]
        words = [word for item in given for word in " ".join(item).split()]
        manager = (
            "org.freedesktop.systemd1",
            "/org/freedesktop/systemd1",
            "org.freedesktop.systemd1.Manager",
        )
        await command(
            *("busctl", "call", *manager, "StartTransientUnit", "ssa(sv)a(sa(sv))"),
            *(f"nodeagent-{name}.scope", "fail", str(len(given)), *words, "0"),
        )
        await until(lambda: str(pid) in processes(name))

    return attach


def processes(name: str) -> list[str]:
    try:
        return (leaf(name) / "cgroup.procs").read_text().split()
    except FileNotFoundError:
        return []


async def command(*words: str) -> str:
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{words}: exit code {process.returncode}"
    return output.decode().strip()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.05)


async def ended(name: str) -> ContainerRecord:
    async with asyncio.timeout(SECONDS):
        async for record in runtime.changes():
            if record.spec.container_id == name and record.state == "exited":
                return record
    raise AssertionError("changes() does not end")


def findings(record: ContainerRecord) -> dict[str, Any]:
    return {"exit_code": record.exit_code, "signal": record.signal, "oom_killed": record.oom_killed}


async def begin() -> dict[str, Any]:
    """Start a container that ends by itself, and go away."""
    script = "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo $i; sleep 0.1; done; exit 7"
    record = await runtime.start(spec("lonely", "sh", "-c", script), scope("lonely"))
    return {"state": record.state}


async def look() -> dict[str, Any]:
    """See what became of it."""
    return {**findings(await ended("lonely")), "output": output("lonely")}


async def oom() -> dict[str, Any]:
    """Let containers run out of memory: the main process, and the child of a shell."""
    small: tuple[Property, ...] = (("MemoryMax", "t", str(24 * MEBIBYTE)), ("MemorySwapMax", "t", "0"))
    found: dict[str, Any] = {}
    eat = "a = bytearray(200 << 20)"
    for name in ("main-1", "main-2", "main-3"):
        await runtime.start(spec(name, sys.executable, "-S", "-c", eat), scope(name, *small))
        found[name] = findings(await ended(name))
    script = f"{sys.executable} -S -c '{eat}'; code=$?; echo child ended with $code; exit $code"
    await runtime.start(spec("child", "sh", "-c", script), scope("child", *small))
    found["child"] = {**findings(await ended("child")), "output": output("child")[-1]}
    await runtime.start(spec("killed", "sleep", "1000"), scope("killed", *small))
    await runtime.signal("killed", signal.SIGKILL)
    found["killed"] = findings(await ended("killed"))
    return found


async def restarts() -> dict[str, Any]:
    """Let the keeper go through all that systemd may do to it while containers run."""
    ticking = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done"
    await runtime.start(spec("ticks", "sh", "-c", ticking), scope("ticks"))
    polite = "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done"
    await runtime.start(spec("polite", "sh", "-c", polite), scope("polite"))
    await until(lambda: "up" in output("polite"))
    main_pid = await command("systemctl", "show", "-P", "MainPID", UNIT)
    await command("systemctl", "reload", UNIT)
    await runtime.list()
    same = await command("systemctl", "show", "-P", "MainPID", UNIT) == main_pid
    await runtime.signal("polite", signal.SIGTERM)
    renewed = findings(await ended("polite"))
    await command("systemctl", "kill", "-s", "KILL", "--kill-whom=main", UNIT)
    await runtime.list()
    await command("systemctl", "restart", UNIT)
    await command("systemctl", "stop", UNIT)
    await asyncio.sleep(1)
    await command("systemctl", "start", UNIT)
    states = {record.spec.container_id: record.state for record in await runtime.list()}
    seen = len(output("ticks"))
    await until(lambda: len(output("ticks")) > seen + 5)
    stored = await command("systemctl", "show", "-P", "NFileDescriptorStore", UNIT)
    await runtime.signal("ticks", signal.SIGKILL)
    last = findings(await ended("ticks"))
    return {
        "same process after a reload": same,
        "renewed": renewed,
        "states": states,
        "ticks": [int(line) for line in output("ticks")],
        "stored": int(stored),
        "stored at the end": int(await command("systemctl", "show", "-P", "NFileDescriptorStore", UNIT)),
        "last": last,
    }


async def frugal() -> dict[str, Any]:
    """Start a container of 2m CPU; look at its bill when it is about to run its first instruction."""
    found: dict[str, Any] = {}
    put = scope("frugal", ("CPUQuotaPerSecUSec", "t", "10000"))

    async def attach(pid: int) -> None:
        await put(pid)
        (leaf("frugal") / "cpu.max").write_text("1000 100000")
        await asyncio.sleep(0.5)
        found["program"] = str(Path(f"/proc/{pid}/exe").readlink())
        found["bill"] = dict(line.split() for line in (leaf("frugal") / "cpu.stat").read_text().splitlines())

    before = time.monotonic()
    await runtime.start(spec("frugal", "/bin/sleep", "1000"), attach)
    found["seconds"] = time.monotonic() - before
    await runtime.signal("frugal", signal.SIGKILL)
    await ended("frugal")
    return found


async def failures() -> dict[str, Any]:
    """Start what cannot start, and count what is left."""
    attached: list[int] = []
    messages: list[str] = []

    async def attach(pid: int) -> None:
        attached.append(pid)

    for argv in (("nonesuch",), ("/etc/passwd",), ("/no/such",)):
        try:
            await runtime.start(spec("failing", *argv), attach)
        except StartError as error:
            messages.append(str(error))
    try:
        await runtime.start(spec("failing", "sleep", "1000"), scope("failing", ("NoSuchProperty", "s", "x")))
    except AssertionError:
        messages.append("attach failed")
    tasks = CGROUPS / "nodeagent.slice" / UNIT / "cgroup.procs"
    return {
        "messages": messages,
        "attached": attached,
        "containers": [record.spec.container_id for record in await runtime.list()],
        "processes": len(tasks.read_text().split()),
    }


async def memory() -> dict[str, Any]:
    """Measure what the keeper takes, alone and for each container."""

    async def pss() -> int:
        pid = await command("systemctl", "show", "-P", "MainPID", UNIT)
        fields = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
        return next(int(line.split()[1]) for line in fields if line.startswith("Pss:"))

    await runtime.list()
    alone = await pss()
    names = [f"many-{number}" for number in range(20)]
    for name in names:
        await runtime.start(spec(name, "sleep", "1000"), scope(name))
    found = {"alone_kib": alone, "with_20_kib": await pss()}
    for name in names:
        await runtime.signal(name, signal.SIGKILL)
    return found


def main() -> None:
    os.chdir("/")
    print(json.dumps(asyncio.run(globals()[sys.argv[1]]())))


if __name__ == "__main__":
    main()
