"""Streams of the handshake era that break off: read on by their last event, answered elsewhere."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.callers import Client
from tests.support.raw_http import RawServer, Seen, Wire, raw_http
from tests.support.upstreams import http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.errors import UpstreamLost, UpstreamReplied
from thoughtgate.core.servers import Era, Server, Sharing
from thoughtgate.core.tools import Effect

SHARED = {"era": Era.HANDSHAKE, "sharing": Sharing.SHARED}
HEAD = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


OnResume = Callable[[Wire, str], Awaitable[None]]


class Peer:
    """A server whose POST streams end early; `standing` are its open GET streams."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.standing: list[Wire] = []
        self.resumed: list[str] = []
        self.on_resume: OnResume | None = None

    async def serve(self, wire: Wire) -> None:
        while seen := await wire.request():
            message = json.loads(seen.body) if seen.body else {}
            if seen.head.startswith("GET"):
                await self._get(wire, seen)
            elif message.get("method") == "tools/call":
                self.asked.append(message["id"])
                await start(wire, f"id: e{len(self.asked)}\nretry: 1\ndata:\n\n")
                await end(wire)
            elif "id" in message:
                await wire.reply(greeted(message), extra="content-type: application/json\r\n")
            else:
                await wire.reply(b"", status=202)

    async def _get(self, wire: Wire, seen: Seen) -> None:
        last = seen.header("last-event-id")
        if last is None:
            await start(wire, ": hello\n\n")
            self.standing.append(wire)
            await wire.request()
        else:
            self.resumed.append(last)
            assert self.on_resume is not None
            await self.on_resume(wire, last)


async def start(wire: Wire, text: str) -> None:
    await wire.write(HEAD.encode())
    await more(wire, text)


async def more(wire: Wire, text: str) -> None:
    await wire.write(f"{len(text):x}\r\n{text}\r\n".encode())


async def end(wire: Wire) -> None:
    await wire.write(b"0\r\n\r\n")


def reply(id_: int, **fields: Any) -> str:
    fields = fields or {"result": {"content": []}}
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': id_, **fields})}\n\n"


def greeted(message: dict[str, Any]) -> bytes:
    result: dict[str, Any] = {"tools": []}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


def old(server: RawServer) -> Server:
    return http_server(server.url, **SHARED)


async def test_a_long_call_is_polled_as_often_as_its_server_goes_on() -> None:
    """SEP-1699: the server may end each stream after a priming event, many times over."""
    peer = Peer()

    async def go_on(wire: Wire, last: str) -> None:
        number = int(last[1:])
        done = number == 8
        await start(wire, f"id: e{number + 1}\nretry: 1\n" + ("" if done else "data:\n\n"))
        if done:
            await more(wire, reply(peer.asked[-1]))
        await end(wire)

    peer.on_resume = go_on
    async with raw_http(peer.serve) as server, rig(old(server)) as made:
        assert (await within(made.send("echo"))).raw == b'{"content": []}'
    assert peer.resumed == [f"e{n}" for n in range(1, 9)]
    assert len(peer.asked) == 1


async def test_a_stream_that_brings_nothing_new_is_given_up() -> None:
    peer = Peer()

    async def nothing(wire: Wire, last: str) -> None:
        await start(wire, ": nothing\n\n")
        await end(wire)

    peer.on_resume = nothing
    async with raw_http(peer.serve) as server, rig(old(server)) as made:
        with pytest.raises(UpstreamLost):
            await within(made.send("echo", effect=Effect.WRITE))
    assert peer.resumed == ["e1"] * 3
    assert len(peer.asked) == 1


async def test_a_server_that_keeps_no_events_is_asked_for_them_once() -> None:
    peer = Peer()

    async def refuse(wire: Wire, last: str) -> None:
        await wire.reply(b"", status=405)

    peer.on_resume = refuse
    async with raw_http(peer.serve) as server, rig(old(server)) as made:
        with pytest.raises(UpstreamLost):
            await within(made.send("echo", effect=Effect.WRITE))
    assert peer.resumed == ["e1"]


@pytest.mark.parametrize("fails", [False, True])
async def test_an_answer_that_comes_on_the_standing_stream_is_taken(*, fails: bool) -> None:
    peer = Peer()

    async def wait(wire: Wire, last: str) -> None:
        await start(wire, ": wait\n\n")
        if fails:
            error = {"error": {"code": -5, "message": "no"}}
            await more(peer.standing[-1], reply(peer.asked[-1], **error))
        else:
            await more(peer.standing[-1], reply(peer.asked[-1]))
        await wire.request()  # this stream stays open, and says nothing

    peer.on_resume = wait
    async with raw_http(peer.serve) as server, rig(old(server)) as made:
        await within(made.upstreams.discover("peer"))
        await until(lambda: peer.standing)
        calling = asyncio.ensure_future(made.send("echo"))
        if fails:
            with pytest.raises(UpstreamReplied) as caught:
                await within(calling)
            assert caught.value.rpc_code == -5
        else:
            assert (await within(calling)).raw == b'{"content": []}'
        assert made.upstreams.counts("peer").late == 0


async def test_answers_that_come_on_another_calls_stream_find_their_calls() -> None:
    peer = Peer()
    waiting: list[tuple[Wire, int]] = []

    async def pile(wire: Wire, last: str) -> None:
        await start(wire, ": wait\n\n")
        waiting.append((wire, peer.asked[int(last[1:]) - 1]))
        if len(waiting) == 2:
            (first, own), (_, other) = waiting
            for id_ in (other, own):
                await more(first, reply(id_, result={"content": [], "structuredContent": id_}))
        await wire.request()

    peer.on_resume = pile
    async with raw_http(peer.serve) as server, rig(old(server)) as made:
        await within(made.upstreams.discover("peer"))
        got = await within(asyncio.gather(made.call("a"), made.call("b")))
    assert sorted(got) == sorted(peer.asked)


async def test_a_call_may_be_cancelled_while_its_stream_is_down() -> None:
    peer = Peer()
    gate = asyncio.Event()

    async def wait(wire: Wire, last: str) -> None:
        gate.set()
        await wire.request()

    peer.on_resume = wait
    async with raw_http(peer.serve) as server, rig(http_server(server.url, **SHARED)) as made:
        client = Client()
        calling = asyncio.ensure_future(client.call(made, "echo"))
        await within(gate.wait())
        calling.cancel()
        await until(lambda: any(b"notifications/cancelled" in seen.body for seen in server.seen))
