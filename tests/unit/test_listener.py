"""Sockets: addresses in use, clients that hold on without asking, headers without end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nodeagent.server.app import create_healthz_app
from nodeagent.server.listener import Listener, ListenError
from tests.unit.shown_node import ShownNode

ASK = b"GET /healthz HTTP/1.1\r\nHost: n1\r\n\r\n"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[ShownNode]:
    shown = ShownNode(tmp_path)
    yield shown
    shown.close()


@pytest.fixture
async def listener(node: ShownNode) -> AsyncIterator[Listener]:
    listener = Listener(create_healthz_app(node), first_request_seconds=0.2)
    await listener.start("127.0.0.1", 0, "healthzPort")
    yield listener
    await listener.close()


async def connect(listener: Listener) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = listener.addresses[0]
    return await asyncio.open_connection(host, port)


async def test_it_answers(listener: Listener) -> None:
    reader, writer = await connect(listener)
    writer.write(ASK)
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()


async def test_an_address_in_use_is_a_sentence(node: ShownNode, listener: Listener) -> None:
    _, port = listener.addresses[0]
    with pytest.raises(ListenError) as refused:
        await Listener(create_healthz_app(node)).start("127.0.0.1", port, "healthzPort")
    text = str(refused.value)
    assert text == (
        f"cannot listen on 127.0.0.1:{port} (healthzPort): Address already in use; "
        "is a kubelet or another nodeagent running? Stop it, or choose another healthzPort"
    )


async def test_an_address_of_another_machine_is_a_sentence(node: ShownNode) -> None:
    with pytest.raises(ListenError, match=r"192\.0\.2\.1:10255 \(readOnlyPort\).*no such address"):
        await Listener(create_healthz_app(node)).start("192.0.2.1", 10255, "readOnlyPort")


async def test_who_never_asks_is_disconnected(listener: Listener) -> None:
    reader, writer = await connect(listener)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: n")
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()


async def test_who_has_asked_may_stay(listener: Listener) -> None:
    reader, writer = await connect(listener)
    for _ in range(2):
        writer.write(ASK)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert (await reader.readuntil(b"\r\n\r\nok")).endswith(b"ok")
        await asyncio.sleep(0.3)
    writer.close()


async def test_connections_beyond_the_bound_are_closed(node: ShownNode) -> None:
    listener = Listener(create_healthz_app(node), max_connections=1)
    await listener.start("127.0.0.1", 0, "healthzPort")
    reader, writer = await connect(listener)
    writer.write(ASK)
    await reader.readline()
    beyond_reader, beyond_writer = await connect(listener)
    assert await asyncio.wait_for(beyond_reader.read(), 5) == b""
    beyond_writer.close()
    writer.close()
    await listener.close()


async def test_a_long_header_is_refused(listener: Listener) -> None:
    reader, writer = await connect(listener)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: n1\r\nX: " + b"y" * 20_000 + b"\r\n\r\n")
    assert await reader.readline() == b"HTTP/1.0 400 Bad Request\r\n"
    writer.close()


async def test_closing_frees_the_address(node: ShownNode) -> None:
    first = await Listener(create_healthz_app(node)).start("127.0.0.1", 0, "healthzPort")
    _, port = first.addresses[0]
    await first.close()
    second = await Listener(create_healthz_app(node)).start("127.0.0.1", port, "healthzPort")
    await second.close()
