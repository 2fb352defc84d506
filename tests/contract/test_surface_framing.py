"""The MCP face over HTTP against a raw peer: where a request begins, ends and belongs."""

import gc
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.fake_gateway import FakeGateway
from tests.support.http_peer import ENVELOPE, NEW, HttpPeer, read_reply, request
from tests.support.mcp_faces import serving
from tests.support.waiting import until, within
from thoughtgate.surface.http_protocol import TimedHttpProtocol
from thoughtgate.wire.strict import dumps

LISTING = {"mcp-protocol-version": NEW, "mcp-method": "tools/list"}
LIST = dumps(request("tools/list", {"_meta": ENVELOPE}))


@pytest.fixture
async def peer() -> AsyncIterator[HttpPeer]:
    async with serving(FakeGateway().add("echo")) as url:
        yield HttpPeer(url)


async def test_a_head_without_an_end_closes_the_connection(peer: HttpPeer) -> None:
    reader, writer = await peer.open()
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ")
    sent = 0
    while not reader.at_eof() and sent < 2**24:
        try:
            writer.write(b"y" * 65_536)
            await within(writer.drain())
        except ConnectionError:
            break
        sent += 65_536
    assert sent < 2**24
    writer.close()


async def test_a_head_after_a_large_body_on_the_same_connection_is_no_large_head(
    peer: HttpPeer,
) -> None:
    body = LIST + b" " * 200_000
    reader, writer = await peer.open()
    first = peer.head("POST", "/mcp", len(body), {**LISTING, "connection": "keep-alive"})
    last = peer.head("POST", "/mcp", len(LIST), LISTING)
    writer.write(first + body + last[:40])
    assert (await within(read_reply(reader))).status == 200
    writer.write(last[40:] + LIST)
    assert (await within(read_reply(reader))).status == 200
    writer.close()


@pytest.mark.parametrize("trailer", ["host: evil.example", "mcp-name: echo", "origin: null"])
async def test_a_trailer_is_no_header(peer: HttpPeer, trailer: str) -> None:
    reader, writer = await peer.open()
    head = peer.head("POST", "/mcp", None, {**LISTING, "transfer-encoding": "chunked"})
    body = b"%x\r\n%b\r\n0\r\n%b\r\n\r\n" % (len(LIST), LIST, trailer.encode())
    writer.write(head + body)
    assert (await within(read_reply(reader))).status == 200
    writer.close()


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
async def test_a_request_that_wants_another_protocol_is_refused_not_cut(
    peer: HttpPeer, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {**LISTING, "upgrade": protocol, "connection": "Upgrade, HTTP2-Settings"}
    got = await peer.post(LIST, headers)
    assert (got.status, got.error["code"]) == (400, -32600)
    assert "upgrade" in got.error["message"]
    assert not caplog.records


@pytest.mark.parametrize("origin", ["http://evil.example\\@localhost", "http://x@localhost"])
async def test_an_origin_that_readers_could_take_apart_differently_is_foreign(
    peer: HttpPeer, origin: str
) -> None:
    got = await peer.send("POST", headers={"origin": origin})
    assert got.status == 403


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system cannot tell")
async def test_a_client_that_never_reads_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimedHttpProtocol, "unread_ms", 300)
    gateway = FakeGateway().add("echo", description="x" * 8_000_000)
    async with serving(gateway) as url:
        port = HttpPeer(url).port
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(HttpPeer(url).head("POST", "/mcp", len(LIST), LISTING) + LIST)
            await until(lambda: reset(line))


def reset(line: socket.socket) -> bool:
    """Tell whether the other side has given a connection up, without reading from it."""
    try:
        line.send(b"\r\n")
    except ConnectionError:
        return True
    return False


async def test_an_idle_connection_holds_nothing_of_its_last_request(peer: HttpPeer) -> None:
    reader, writer = await peer.open()
    head = peer.head("POST", "/mcp", len(LIST), {**LISTING, "connection": "keep-alive"})
    for _ in range(2):
        writer.write(head + LIST)
        assert (await within(read_reply(reader))).status == 200
        await until(lambda: [held(one) for one in protocols()] == [(None, None, [])])
    line = writer.get_extra_info("socket")
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()  # the server sees a reset, and shall wait for nothing more
    await until(lambda: not protocols())


def held(protocol: Any) -> tuple[object, object, object]:
    return protocol.cycle, protocol.scope, protocol.headers


def protocols() -> list[TimedHttpProtocol]:
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, TimedHttpProtocol)]
