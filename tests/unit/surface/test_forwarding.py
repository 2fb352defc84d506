"""Sending a request on to another worker: all of it, once, and its reply as it comes."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until, within
from thoughtgate.core.calls import LOCAL
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.surface.forwarding import forward, holder_of_call, holder_of_session
from thoughtgate.surface.http_io import HttpRequest, Refusal
from thoughtgate.wire.messages import decode

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Client:
    """One request and what its client gets; it leaves when told to, and takes when it may."""

    crew: Crew
    headers: dict[bytes, bytes] = field(default_factory=dict)
    sent: list[Any] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    takes: asyncio.Event = field(default_factory=asyncio.Event)

    def request(self, method: str = "POST", domain: str = "default") -> HttpRequest:
        self.takes.set()
        return HttpRequest(
            method=method,
            headers={b"host": b"localhost", **self.headers},
            domain=domain,
            principal=LOCAL,
            receive=self.receive,
            send=self.send,
            crew=self.crew,
        )

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: Any) -> None:
        await self.takes.wait()
        self.sent.append(event)

    @property
    def body(self) -> bytes:
        return b"".join(event.get("body", b"") for event in self.sent)


@asynccontextmanager
async def worker(serve: Serve) -> AsyncIterator[Crew]:
    """Listen as worker 1 of two; gives worker 0's crew."""
    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        crew = Crew(index=0, count=2, sockets=Path(folder))
        server = await asyncio.start_unix_server(serve, str(crew.socket(1)))
        try:
            yield crew
        finally:
            server.close()


async def head(reader: asyncio.StreamReader) -> list[bytes]:
    return (await reader.readuntil(b"\r\n\r\n")).strip().split(b"\r\n")


async def test_the_whole_request_arrives_without_what_belongs_to_its_connection() -> None:
    got: list[Any] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.extend((await head(reader), await reader.readexactly(5)))
        writer.write(
            b"HTTP/1.1 202 Accepted\r\nx-a: b\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
        )
        writer.close()

    async with worker(serve) as crew:
        sent = {b"accept": b"*/*", b"content-length": b"9", b"transfer-encoding": b"chunked"}
        client = Client(crew, {**sent, b"connection": b"keep-alive", b"mcp-session-id": b"1.x"})
        await within(forward(client.request(domain="a b"), 1, b"hello"))
    assert got[0][0] == b"POST /mcp/a%20b HTTP/1.1"
    assert sorted(got[0][1:]) == [
        b"accept: */*",
        b"connection: close",
        b"content-length: 5",
        b"host: localhost",
        b"mcp-session-id: 1.x",
    ]
    assert got[1] == b"hello"
    start, *_ = client.sent
    assert start["status"] == 202
    assert dict(start["headers"]) == {b"x-a": b"b", b"content-length": b"2"}
    assert client.body == b"ok"
    assert not client.sent[-1]["more_body"]


async def test_an_event_is_passed_on_before_the_next_one_comes() -> None:
    go = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nfirst\n\r\n")
        await go.wait()
        writer.write(b"5\r\nlast\n\r\n0\r\n\r\n")
        writer.close()

    async with worker(serve) as crew:
        client = Client(crew)
        forwarding = asyncio.create_task(forward(client.request("GET"), 1))
        await until(lambda: client.body == b"first\n")
        go.set()
        await within(forwarding)
        assert client.body == b"first\nlast\n"


async def test_a_client_that_takes_nothing_slows_the_other_worker_down() -> None:
    written = 0
    most = 64 * 2**20

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % most)
        while written < most:
            writer.write(bytes(2**16))
            written += 2**16
            await writer.drain()
        writer.close()

    async with worker(serve) as crew:
        client = Client(crew)
        request = client.request()
        client.takes.clear()
        forwarding = asyncio.create_task(forward(request, 1))
        before = -1
        while written != before:
            before = written
            for _ in range(200):
                await asyncio.sleep(0)
        assert written < 4 * 2**20
        client.takes.set()
        await within(forwarding)
        assert len(client.body) == most


async def test_a_client_that_leaves_leaves_the_other_worker_too() -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        assert await reader.read() == b""
        gone.set()
        writer.close()

    async with worker(serve) as crew:
        client = Client(crew)
        forwarding = asyncio.create_task(forward(client.request(), 1))
        client.left.set()
        await within(forwarding)
        await within(gone.wait())
    assert client.sent == []


async def test_a_worker_that_is_not_there_is_waited_for_a_moment() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        client = Client(Crew(index=0, count=2, sockets=Path(folder)))
        with pytest.raises(Refusal) as caught:
            await within(forward(client.request(), 1, patience=0))
        assert caught.value.status == 503
        assert (b"retry-after", b"1") in caught.value.headers
        forwarding = asyncio.create_task(forward(client.request(), 1))
        await asyncio.sleep(0)
        async with await asyncio.start_unix_server(serve, str(client.crew.socket(1))):
            await within(forwarding)
    assert client.sent[0]["status"] == 200


@pytest.mark.parametrize("begun", [False, True], ids=["before", "within"])
async def test_a_worker_that_is_lost_is_told_of_and_not_asked_again(begun: bool) -> None:
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await head(reader)
        if begun:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        writer.close()

    async with worker(serve) as crew:
        client = Client(crew)
        if begun:
            await within(forward(client.request(), 1))
            assert client.sent[-1]["more_body"]  # so the server closes the connection
        else:
            with pytest.raises(Refusal) as caught:
                await within(forward(client.request(), 1))
            assert caught.value.status == 502
    assert asked == 1


def test_what_came_from_another_worker_goes_no_further() -> None:
    token = "1.token"
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "m"}
    retry = decode(json.dumps({**call, "params": {"requestState": token}}).encode())
    other = decode(json.dumps({**call, "params": {"requestState": 7}}).encode())
    headers = {b"mcp-session-id": token.encode()}
    here = Client(Crew(index=0, count=2), headers).request()
    assert (holder_of_session(here), holder_of_call(here, retry)) == (1, 1)
    assert holder_of_call(here, other) is None
    plain = decode(json.dumps({**call, "params": {"requestState": "server's"}}).encode())
    assert holder_of_call(Client(Crew(index=1, count=2)).request(), plain) is None
    holding = Client(Crew(index=1, count=2), headers).request()
    assert (holder_of_session(holding), holder_of_call(holding, retry)) == (None, None)
    inside = Client(ALONE, headers).request()
    assert (holder_of_session(inside), holder_of_call(inside, retry)) == (None, None)
