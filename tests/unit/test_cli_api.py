"""apply, delete and logs on the command line, over the API's socket."""

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from nodeagent.__main__ import main
from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.cluster.kinds import CONFIG_MAP, POD
from nodeagent.server.api.app import create_api_app
from nodeagent.server.api.unix import UnixListener, peer
from nodeagent.store import Store

Run = Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]


class Served:
    def __init__(self, cluster: Cluster, run: Run) -> None:
        self.cluster, self.run = cluster, run


@pytest.fixture
async def served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Served]:
    store, clock = Store(tmp_path / "nodeagent.db"), SystemClock()
    cluster = Cluster(store.resources, clock)
    cluster.begin()

    async def log(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.path} {sorted(request.query.items())}\n")

    app = create_api_app(cluster, peer, clock.now, {("pods", "log"): log})
    listener = await UnixListener(app, tmp_path / "api.sock").start()

    async def run(*words: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, [*words, f"--socket={tmp_path / 'api.sock'}"])
        said = capsys.readouterr()
        return code, said.out, said.err

    yield Served(cluster, run)
    await listener.close()
    store.close()


def write(path: Path, *objects: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


POD_OBJECT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}


async def test_objects_are_created_changed_and_left_alone(served: Served, tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", config_map("one", a="1"), POD_OBJECT)
    assert await served.run("apply", "-f", file) == (0, "configmap/one created\npod/web created\n", "")
    assert await served.run("apply", "-f", file) == (0, "configmap/one unchanged\npod/web unchanged\n", "")
    write(tmp_path / "a.yaml", config_map("one", b="2"))
    assert (await served.run("apply", "-f", file))[1] == "configmap/one configured\n"
    assert served.cluster.get(CONFIG_MAP, "default", "one")["data"] == {"a": "1", "b": "2"}


async def test_what_is_refused_is_said_and_the_rest_is_done(served: Served, tmp_path: Path) -> None:
    lost = {**config_map("two"), "metadata": {"name": "two", "namespace": "nowhere"}}
    strange = {"apiVersion": "example.com/v1", "kind": "Strange", "metadata": {"name": "s"}}
    file = write(tmp_path / "a.yaml", lost, strange, config_map("three"))
    code, out, err = await served.run("apply", "-f", file)
    assert (code, out) == (1, "configmap/three created\n")
    assert 'Error from server (NotFound): namespaces "nowhere" not found' in err
    assert "no matches for kind 'Strange' in version 'example.com/v1'" in err


async def test_objects_are_deleted_by_name_and_by_file(served: Served, tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", config_map("one"), config_map("two"))
    await served.run("apply", "-f", file)
    assert (await served.run("delete", "cm", "one"))[:2] == (0, 'configmap "one" deleted\n')
    code, out, err = await served.run("delete", "-f", file)
    assert (code, out) == (1, 'configmap "two" deleted\n')
    assert 'configmaps "one" not found' in err
    assert (await served.run("delete", "wish", "x"))[0] == 1
    assert (await served.run("delete", "cm"))[0] == 1


async def test_standard_input_is_a_file_too(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(yaml.safe_dump(config_map("piped")).encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert (await served.run("apply", "-f", "-"))[1] == "configmap/piped created\n"


async def test_logs_are_asked_for_as_kubectl_does(served: Served, tmp_path: Path) -> None:
    served.cluster.create(POD, "default", {name: POD_OBJECT[name] for name in ("metadata", "spec")})
    words = ("logs", "web", "-c", "c", "--tail", "5", "--since", "10m", "--timestamps")
    code, out, _ = await served.run(*words)
    assert code == 0
    assert out == (
        "/api/v1/namespaces/default/pods/web/log [('container', 'c'), ('sinceSeconds', '600'), "
        "('tailLines', '5'), ('timestamps', 'true')]\n"
    )
    code, _, err = await served.run("logs", "web", "--since", "soon")
    assert code == 1 and "expected a number with s, m or h" in err


def test_without_an_agent_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "web", f"--socket={tmp_path / 'none.sock'}"]) == 1
    assert "no agent answers at" in capsys.readouterr().err
