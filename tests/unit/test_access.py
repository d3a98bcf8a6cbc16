"""Who may ask over the network: certificates, roles, and kubectl with a kubeconfig."""

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web
from cryptography import x509

from nodeagent.__main__ import main
from nodeagent.clock import SystemClock
from nodeagent.cluster.cluster import Cluster
from nodeagent.server.access import authority
from nodeagent.server.access.tls import ADMINS, READERS, TlsServer, certificate_holder, server_context
from nodeagent.server.api.app import create_api_app
from nodeagent.server.listener import Listener
from nodeagent.store import Store

NOW = datetime.now(UTC)
KUBECTL = shutil.which("kubectl")


def config(directory: Path, port: int) -> Path:
    path = directory / "config.yaml"
    document = {
        "apiVersion": "nodeagent.io/v1alpha1",
        "kind": "AgentConfiguration",
        "stateDirectory": str(directory),
        "apiPort": port,
    }
    path.write_text(yaml.safe_dump(document))
    return path


async def whoami(request: web.Request) -> web.Response:
    user = certificate_holder(request)
    return web.json_response(None if user is None else [user.name, user.role])


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[TlsServer]:
    app = web.Application()
    app.router.add_get("/", whoami)
    server = TlsServer(app, tmp_path / "pki", "127.0.0.1", 0, "node-1", SystemClock())
    await server.look()
    task = asyncio.create_task(server.run())
    yield server
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def context(directory: Path, user: str, group: str) -> ssl.SSLContext:
    ca, certificate, key = authority.client(directory / "pki", user, group, NOW)
    made = ssl.create_default_context(cadata=ca.decode())
    (directory / "client.pem").write_bytes(certificate + key)
    made.load_cert_chain(directory / "client.pem")
    return made


async def ask(server: TlsServer, tls: ssl.SSLContext) -> object:
    host, port = server.addresses[0]
    async with aiohttp.ClientSession() as session, session.get(f"https://{host}:{port}/", ssl=tls) as answer:
        return await answer.json()


async def test_a_certificate_says_who_asks_and_what_they_may(server: TlsServer, tmp_path: Path) -> None:
    assert await ask(server, context(tmp_path, "ann", ADMINS)) == ["ann", "admin"]
    assert await ask(server, context(tmp_path, "bob", READERS)) == ["bob", "read-only"]
    assert await ask(server, context(tmp_path, "eve", "system:masters")) is None
    nobody = ssl.create_default_context(cafile=tmp_path / "pki" / "ca.crt")
    assert await ask(server, nobody) is None


async def test_another_authoritys_certificate_is_not_even_heard(server: TlsServer, tmp_path: Path) -> None:
    authority.ensure(tmp_path / "other", ["127.0.0.1"], NOW)
    _, certificate, key = authority.client(tmp_path / "other", "ann", ADMINS, NOW)
    stranger = ssl.create_default_context(cafile=tmp_path / "pki" / "ca.crt")
    (tmp_path / "stranger.pem").write_bytes(certificate + key)
    stranger.load_cert_chain(tmp_path / "stranger.pem")
    with pytest.raises(aiohttp.ClientError):
        await ask(server, stranger)


def test_files_are_their_owners_only(tmp_path: Path) -> None:
    authority.ensure(tmp_path / "pki", ["127.0.0.1"], NOW)
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700
    files = list((tmp_path / "pki").iterdir())
    assert {file.name for file in files} == {"ca.crt", "ca.key", "server.crt", "server.key"}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_certificates_are_kept_until_they_are_old_or_for_another_name(tmp_path: Path) -> None:
    def made(days: int, *names: str) -> tuple[bytes, bytes]:
        authority.ensure(tmp_path, names, NOW + timedelta(days=days))
        return (tmp_path / "ca.crt").read_bytes(), (tmp_path / "server.crt").read_bytes()

    first = made(0, "127.0.0.1", "node-1")
    assert made(300, "127.0.0.1") == first
    renewed = made(310, "127.0.0.1")
    assert renewed[0] == first[0] and renewed[1] != first[1]
    assert made(310, "10.0.0.5")[1] != renewed[1]
    # an authority that would not outlive what it signs is replaced, with all that it signed
    assert made(3650 - 364, "10.0.0.5")[0] != first[0]


@pytest.mark.parametrize("damage", [b"", b"not a certificate"])
def test_damaged_files_are_made_again(tmp_path: Path, damage: bytes) -> None:
    authority.ensure(tmp_path, ["127.0.0.1"], NOW)
    for name in ("ca.key", "server.crt"):
        (tmp_path / name).write_bytes(damage)
        authority.ensure(tmp_path, ["127.0.0.1"], NOW)
        ssl.create_default_context().load_verify_locations(tmp_path / "ca.crt")
        ssl.create_default_context().load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")


def test_a_kubeconfig_is_written_once_and_for_its_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config(tmp_path, 6443)
    target = tmp_path / "home" / ".kube" / "config"
    assert main(["kubeconfig", str(target), f"--config={settings}"]) == 1
    assert "start the agent once" in capsys.readouterr().err
    authority.ensure(tmp_path / "pki", ["127.0.0.1"], NOW)
    assert main(["kubeconfig", str(target), f"--config={settings}"]) == 0
    assert target.stat().st_mode & 0o777 == 0o600
    written = yaml.safe_load(target.read_text())
    assert written["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert main(["kubeconfig", str(target), f"--config={settings}"]) == 1
    assert "is there already: --force replaces it" in capsys.readouterr().err
    assert main(["kubeconfig", str(target), "--force", f"--config={settings}"]) == 0
    assert main(["kubeconfig", f"--config={config(tmp_path, 0)}"]) == 1
    assert "apiPort is 0" in capsys.readouterr().err


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
async def test_kubectl_gets_through_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "nodeagent.db")
    clock = SystemClock()
    cluster = Cluster(store.resources, clock)
    cluster.begin()
    app = create_api_app(cluster, certificate_holder, clock.now)
    server = TlsServer(app, tmp_path / "pki", "127.0.0.1", 0, "node-1", clock)
    await server.look()
    settings = config(tmp_path, server.addresses[0][1])

    def kubectl(role: str, *words: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / f"{role}.conf"
        if not file.exists():
            assert main(["kubeconfig", str(file), f"--role={role}", f"--config={settings}"]) == 0
        command = ["kubectl", f"--kubeconfig={file}", f"--cache-dir={tmp_path}/cache", *words]
        return subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)}
        )

    made = await asyncio.to_thread(kubectl, "admin", "create", "namespace", "team")
    assert made.stdout == "namespace/team created\n", made.stderr
    seen = await asyncio.to_thread(kubectl, "read-only", "get", "namespaces")
    assert "team" in seen.stdout
    refused = await asyncio.to_thread(kubectl, "read-only", "delete", "namespace", "team")
    assert "may only read" in refused.stderr
    secrets = await asyncio.to_thread(kubectl, "read-only", "get", "secrets")
    assert "may not see them" in secrets.stderr
    await server.close()
    store.close()


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "server.crt", "server.key"])
def test_files_of_another_pair_are_made_again(tmp_path: Path, name: str) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    authority.ensure(own, ["127.0.0.1"], NOW)
    authority.ensure(other, ["127.0.0.1"], NOW)
    shutil.copy(other / name, own / name)
    authority.ensure(own, ["127.0.0.1"], NOW)
    ssl.create_default_context().load_cert_chain(own / "server.crt", own / "server.key")
    issuer = x509.load_pem_x509_certificate((own / "ca.crt").read_bytes())
    served = x509.load_pem_x509_certificate((own / "server.crt").read_bytes())
    served.verify_directly_issued_by(issuer)


async def test_connections_are_bounded_over_tls_too(tmp_path: Path) -> None:
    app = web.Application()
    app.router.add_get("/", whoami)
    authority.ensure(tmp_path / "pki", ["127.0.0.1"], NOW)
    listener = Listener(app, max_connections=2)
    await listener.start("127.0.0.1", 0, "apiPort", tls=server_context(tmp_path / "pki"))
    host, port = listener.addresses[0]
    trusted = ssl.create_default_context(cafile=tmp_path / "pki" / "ca.crt")

    async def answered() -> tuple[bool, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, port, ssl=trusted)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: n1\r\n\r\n")
            line = await asyncio.wait_for(reader.readline(), 5)
        except OSError:
            line = b""
        return line == b"HTTP/1.1 200 OK\r\n", writer

    found = await asyncio.gather(*(answered() for _ in range(10)))
    assert sum(was_answered for was_answered, _ in found) == 2
    for _, writer in found:
        writer.close()
    await listener.close()
