"""Many sessions with their streams: what one costs while nothing happens, and what stays of it."""

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.fake_gateway import FakeGateway
from tests.support.http_peer import request
from tests.support.waiting import until, within
from thoughtgate.core.calls import LOCAL
from thoughtgate.sessions import Connected, Sessions
from thoughtgate.surface.clients import Live
from thoughtgate.surface.http_exchange import EventStream
from thoughtgate.surface.http_io import HttpRequest
from thoughtgate.surface.http_streams import Feed, Streams
from thoughtgate.surface.mailbox import Mailbox, Reader
from thoughtgate.surface.mcp_http import McpFront
from thoughtgate.surface.settings import FaceSettings
from thoughtgate.surface.tapes import Tape
from thoughtgate.wire.sse import KEEPALIVE
from thoughtgate.wire.strict import dumps

OLD = "2025-11-25"
HELLO = request(
    "initialize",
    {
        "protocolVersion": OLD,
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "many", "version": "1"},
    },
)
CALL = request("tools/call", {"name": "echo", "arguments": {}})
PER_SESSION = (Live, Connected, Mailbox, Reader, Tape, HttpRequest, EventStream)


class Peer:
    """One client of the handshake era, straight at the ASGI application."""

    def __init__(self, front: McpFront) -> None:
        self.front = front
        self.id = b""
        self.told = b""
        self.gone = asyncio.Event()
        self.stream: asyncio.Task[None] | None = None

    async def open(self) -> "Peer":
        headers, _ = await self.ask("POST", dumps(HELLO))
        self.id = headers[b"mcp-session-id"]
        await self.ask("POST", dumps(CALL))
        return self

    async def ask(self, method: str, body: bytes = b"") -> tuple[dict[bytes, bytes], bytes]:
        events = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []

        async def receive() -> Any:
            return events.pop()

        async def send(event: Any) -> None:
            sent.append(event)

        await within(self.front(self._scope(method), receive, send))
        return dict(sent[0]["headers"]), sent[1]["body"]

    async def listen(self) -> None:
        async def receive() -> Any:
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(event: Any) -> None:
            self.told += event.get("body", b"")

        self.stream = asyncio.ensure_future(self.front(self._scope("GET"), receive, send))
        await until(lambda: self.told)

    def _scope(self, method: str) -> dict[str, Any]:
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        headers += [(b"mcp-session-id", self.id)] if self.id else []
        return {"type": "http", "method": method, "path": "/mcp", "headers": headers}


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway().add("echo")


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(clock=time.monotonic)


@pytest.fixture
def front(gateway: FakeGateway, sessions: Sessions) -> McpFront:
    return McpFront(gateway, sessions, FaceSettings(info={"name": "thoughtgate", "version": "1"}))


async def test_an_idle_stream_is_one_task(front: McpFront, gateway: FakeGateway) -> None:
    peers = [await Peer(front).open() for _ in range(20)]
    before = asyncio.all_tasks()
    for peer in peers:
        await peer.listen()
    assert len(asyncio.all_tasks() - before) == len(peers)
    gateway.add("more")
    await until(lambda: all(b"tools/list_changed" in peer.told for peer in peers))
    await until(lambda: len(asyncio.all_tasks() - before) == len(peers))
    front.close()
    await within(asyncio.gather(*(peer.stream for peer in peers if peer.stream)))


def kept() -> list[object]:
    """Return all that there is one of for a session."""
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, PER_SESSION)]


async def test_nothing_stays_of_sessions_that_ended(
    front: McpFront, sessions: Sessions, gateway: FakeGateway
) -> None:
    tasks, earlier = asyncio.all_tasks(), kept()  # what failed tests hold is theirs
    await asyncio.gather(*(_come_and_go(front, number) for number in range(500)))
    assert len(sessions) == 0
    assert asyncio.all_tasks() == tasks
    gateway.calls.clear()  # the fake remembers what it was asked
    gateway.left.clear()
    assert len(kept()) <= len(earlier)
    front.close()


async def test_clients_that_say_the_same_share_it(front: McpFront) -> None:
    peers = [await Peer(front).open() for _ in range(3)]
    ids = {peer.id.decode() for peer in peers}
    held = [one for one in gc.get_objects() if isinstance(one, Connected) and one.id in ids]
    assert len(held) == len(peers)
    assert len({id(one.capabilities) for one in held}) == 1
    front.close()


async def test_a_silent_stream_says_that_it_lives_and_one_that_is_not_goes_on() -> None:
    mailbox, told, ended = Mailbox("default"), list[bytes](), asyncio.Event()
    streams = Streams(most=1, keepalive=0.01)
    following = asyncio.create_task(_follow(streams, mailbox, told.append, ended))
    await until(lambda: told.count(KEEPALIVE) >= 2)
    mailbox.post(b"1")
    await until(lambda: any(b"data: 1" in one for one in told))
    heard = told.count(KEEPALIVE)
    await until(lambda: told.count(KEEPALIVE) > heard)
    ended.set()
    await within(following)
    assert len(streams.silence) == 0


async def test_a_stream_that_cannot_be_written_ends_with_what_went_wrong() -> None:
    mailbox = Mailbox("default")

    def refuse(data: bytes) -> None:
        if b"data: 1" in data:
            raise ConnectionError

    streams = Streams(most=1, keepalive=60)
    following = asyncio.create_task(_follow(streams, mailbox, refuse, asyncio.Event()))
    mailbox.post(b"1")
    with pytest.raises(ConnectionError):
        await within(following)
    assert not streams.silence


async def test_messages_that_came_before_and_while_sending_come_in_order() -> None:
    mailbox, told, ended = Mailbox("default"), list[bytes](), asyncio.Event()
    mailbox.post(b"1")

    def more(data: bytes) -> None:
        told.append(data)
        if b"data: 1" in data:
            mailbox.post(b"2")

    following = asyncio.create_task(
        _follow(Streams(most=1, keepalive=60), mailbox, more, ended, last=b"bye")
    )
    await until(lambda: any(b"data: 2" in one for one in told))
    mailbox.close()
    await within(following)
    assert [one.split(b"data: ")[-1].strip() for one in told] == [
        b"",
        b"first",
        b"1",
        b"2",
        b"bye",
        b"",
    ]


async def _come_and_go(front: McpFront, number: int) -> None:
    peer = await Peer(front).open()
    await peer.listen()
    if number % 2:
        peer.gone.set()
    await peer.ask("DELETE")
    assert peer.stream is not None
    await within(peer.stream)


async def _follow(
    streams: Streams,
    mailbox: Mailbox,
    heard: Callable[[bytes], object],
    ended: asyncio.Event,
    last: bytes = b"",
) -> None:
    async def receive() -> Any:
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        heard(event.get("body", b""))

    request = HttpRequest(
        method="GET",
        headers={b"accept": b"text/event-stream"},
        domain="default",
        principal=LOCAL,
        receive=receive,
        send=send,
    )
    await streams.follow(request, mailbox.attach, Feed(first=b"first", last=last))
    assert not request.headers
