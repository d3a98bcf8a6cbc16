"""A real keeper for tests: its own process, directories and containers, all gone afterwards. Needs root."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from signal import SIGKILL, SIGTERM

from nodeagent.runtime.process import ProcessRuntime
from nodeagent.runtime.spec import ContainerRecord, ContainerSpec

SECONDS = 30


class KeeperProcess:
    """Starts, kills and restarts the keeper; makes specs whose logs lie in its directory."""

    def __init__(self, directory: Path) -> None:
        assert os.geteuid() == 0, "these tests start real containers: run them as root"
        self.directory = directory
        self.socket = directory / "sock"
        self.logs = directory / "logs"
        self.cgroups = directory / "cgroup"
        self.runtime = ProcessRuntime(self.socket)
        self.pid = 0
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, *, environment: dict[str, str] | None = None, pass_fds: Sequence[int] = ()) -> None:
        """Run a keeper; the runtime's calls wait until it answers."""
        options = {
            "--socket": self.socket,
            "--state": self.directory / "state",
            "--log-directory": self.logs,
            "--cgroup-root": self.cgroups,
        }
        with (self.directory / "keeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "nodeagent.runtime.keeper", *map(str, sum(options.items(), ()))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                pass_fds=pass_fds,
            )
        self.pid = self._process.pid

    def signal(self, signum: int) -> None:
        os.kill(self.pid, signum)

    def wait(self) -> int:
        assert self._process is not None
        code = self._process.wait(SECONDS)
        self._process = None
        return code

    def restart(self, signum: int = SIGKILL) -> None:
        self.signal(signum)
        self.wait()
        self.launch()

    async def clean(self) -> None:
        """End all containers and the keeper."""
        if self._process is None:
            self.launch()
        for record in await self.runtime.list():
            await self.runtime.signal(record.spec.container_id, SIGKILL)
        self.signal(SIGTERM)
        assert self.wait() == 0

    def spec(self, name: str, *argv: str, **fields: object) -> ContainerSpec:
        values: dict[str, object] = {
            "container_id": name,
            "pod_uid": "1",
            "pod_namespace": "default",
            "pod_name": "web",
            "container_name": "main",
            "argv": argv,
            "log_path": str(self.logs / "default_web_1" / name / "0.log"),
            "cgroup": f"pod/{name}.scope",
            "pod_cgroup": "pod",
        }
        return ContainerSpec(**{**values, **fields})  # type: ignore[arg-type]

    def shell(self, name: str, script: str, **fields: object) -> ContainerSpec:
        return self.spec(name, "sh", "-c", script, **fields)

    async def start(
        self, spec: ContainerSpec, attach: Callable[[int], Awaitable[None]] | None = None
    ) -> ContainerRecord:
        return await self.runtime.start(spec, attach or nothing)

    async def ended(self, name: str) -> ContainerRecord:
        """Return the record of a container once it has ended."""
        async with asyncio.timeout(SECONDS):
            async for record in self.runtime.changes():
                if record.spec.container_id == name and record.state == "exited":
                    return record
        raise AssertionError("changes() does not end")

    async def run(self, spec: ContainerSpec) -> list[str]:
        """Run a container to its end and return what it printed."""
        await self.start(spec)
        await self.ended(spec.container_id)
        return self.output(spec.container_id)

    def output(self, name: str) -> list[str]:
        """Return the lines a container has printed so far, without stamps, of both streams."""
        path = self.logs / "default_web_1" / name / "0.log"
        return [line.split(" ", 3)[3] for line in path.read_text().splitlines()]

    async def says(self, name: str, line: str) -> None:
        """Wait until a container has printed a line."""
        async with asyncio.timeout(SECONDS):
            while line not in self.output(name):  # noqa: ASYNC110 - a file cannot wake us
                await asyncio.sleep(0.02)

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in path.read_text().split()]


async def nothing(pid: int) -> None:
    """Attach to no cgroup."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - the kernel's state cannot wake us
            await asyncio.sleep(0.02)
