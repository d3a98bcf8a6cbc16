"""The API on a port of this machine, and kubectl against it."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.server.api.app import create_api_app
from nodeagent.server.api.usage import Summarise
from nodeagent.server.api.who import Role, User
from nodeagent.store import Store

KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


@dataclass(frozen=True)
class Kubectl:
    """kubectl with a home and a server of its own."""

    url: str
    home: Path
    cluster: Cluster
    store: Store

    async def run(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        """Run a command line; return what it prints (of one that `fails`, its error)."""
        assert KUBECTL is not None
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            f"--server={self.url}",
            f"--cache-dir={self.home}/cache",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(self.home), "KUBECONFIG": "/dev/null"},
        )
        output, errors = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
        assert bool(process.returncode) is fails, errors.decode() + output.decode()
        return errors.decode() if fails else output.decode()


@asynccontextmanager
async def serving(
    directory: Path, role: Role = Role.ADMIN, summarise: Summarise | None = None
) -> AsyncIterator[Kubectl]:
    """Serve a new cluster on a port of 127.0.0.1 to everybody: only tests do."""
    store = Store(directory / "nodeagent.db")
    clock = SystemClock()
    cluster = Cluster(store.resources, clock)
    cluster.begin()
    app = create_api_app(cluster, lambda request: User("test", role), clock.now, summarise=summarise)
    async with TestServer(app, host="127.0.0.1") as server:
        yield Kubectl(str(server.make_url("")).rstrip("/"), directory, cluster, store)
    store.close()
