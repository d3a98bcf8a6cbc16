"""What tests of the kernel's notices do inside the machine: one a call, its findings as JSON on stdout.

Copied into the machine and run there by its own Python. The tree is one of its own, test-notices.slice.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nodeagent.cgroup.files import CgroupTree
from nodeagent.eviction.notify import Notices
from nodeagent.stats.fill_rate import measure_fill_rate
from nodeagent.stats.hot import HotReader
from nodeagent.stats.node import read_node
from nodeagent.stats.pod_usage import PodUsageReader
from nodeagent.stats.summary import PodReference

MOUNT, PROC = Path("/sys/fs/cgroup"), Path("/proc")
SLICE = "test-notices.slice"
TREE = CgroupTree(MOUNT)
MIB = 1 << 20
# Grows past memory.high, where the kernel makes it wait.
HOG = f"""
import os, time
open("{MOUNT}/{SLICE}/cgroup.procs", "w").write(str(os.getpid()))
held = []
for _ in range(60):
    held.append(b"x" * (1 << 20))
    time.sleep(0.01)
time.sleep(60)
"""


async def wakes_while_growing(watch: Callable[[Notices], None]) -> dict[str, Any]:
    """Count the notices before, while and after a process grows; a slow machine gets a minute."""
    directory = MOUNT / SLICE
    directory.mkdir(exist_ok=True)
    for file, value in (("memory.high", 30 * MIB), ("memory.max", 200 * MIB)):
        (directory / file).write_text(str(value))
    moments: list[float] = []
    notices = Notices(lambda: moments.append(time.monotonic()))
    watch(notices)
    await asyncio.sleep(1)
    before = len(moments)
    hog = subprocess.Popen([sys.executable, "-c", HOG])  # noqa: ASYNC220
    deadline = time.monotonic() + 60
    while len(moments) == before and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    during = len(moments) - before
    hog.kill()
    hog.wait()
    await asyncio.sleep(0.5)
    directory.rmdir()
    await asyncio.sleep(1)
    settled = len(moments)
    await asyncio.sleep(1)
    notices.close()
    return {"before": before, "during": during, "after_removal": len(moments) - settled}


async def events() -> dict[str, Any]:
    return await wakes_while_growing(lambda each: each.watch_events(TREE, SLICE, "memory.events"))


async def pressure() -> dict[str, Any]:
    return await wakes_while_growing(lambda each: each.watch_pressure(PROC / "pressure/memory"))


async def samples() -> dict[str, Any]:
    """Compare the quick readers with the thorough ones, on the kernel's own files."""
    hot = HotReader(PROC, TREE, "system.slice", [Path("/")])
    quick, slow = hot.sample(), read_node(PROC, TREE, datetime.now(UTC))
    pods = PodUsageReader(TREE)
    pod = pods.read(PodReference(name="p", namespace="n", uid="u"), "system.slice")
    assert quick.node_memory and quick.processes and slow.memory and slow.processes and pod and pod.memory
    return {
        "memory_differs_by": abs(quick.node_memory.available_bytes - slow.memory.available_bytes),
        "tasks_differ_by": abs(quick.processes.current - slow.processes.current),
        "most_tasks_agree": quick.processes.maximum == slow.processes.maximum,
        "is_calm": hot.is_calm(),
        "slice_bytes": pod.memory.working_set_bytes,
        "fill_rate": measure_fill_rate(),
    }


SCENARIOS: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
    "events": events,
    "pressure": pressure,
    "samples": samples,
}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(SCENARIOS[sys.argv[1]]())))  # type: ignore[arg-type]
