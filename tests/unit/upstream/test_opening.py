"""Opening a link: what refusals, silence and noise lead to."""

import json
import sys
from contextlib import suppress
from typing import Any

import pytest

from tests.support.raw_http import Wire, raw_http
from tests.support.upstreams import http_server, rig
from tests.support.waiting import within
from thoughtgate.core.errors import UpstreamError, UpstreamUnreachable
from thoughtgate.core.servers import Era, Server, Sharing, StdioTransport

NEW = "2026-07-28"
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [NEW],
    "capabilities": {},
    "ttlMs": 0,
    "cacheScope": "private",
}


class Picky:
    """A server that refuses the first greetings, naming the versions that it says it speaks."""

    def __init__(self, refusals: int, supported: list[str]) -> None:
        self.refusals = refusals
        self.supported = supported
        self.methods: list[str] = []

    async def serve(self, wire: Wire) -> None:
        while (seen := await wire.request()) is not None:
            message = json.loads(seen.body)
            self.methods.append(message["method"])
            answer: dict[str, object] = {"result": DISCOVERED}
            if message["method"] == "tools/list":
                answer = {"result": {**DISCOVERED, "tools": []}}
            if self.refusals:
                self.refusals -= 1
                data = {"supported": self.supported, "requested": NEW}
                answer = {"error": {"code": -32022, "message": "no", "data": data}}
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}).encode()
            status = 400 if "error" in answer else 200
            await wire.reply(body, status=status, extra="content-type: application/json\r\n")


@pytest.mark.parametrize("era", [None, Era.STATELESS])
async def test_a_version_that_is_refused_and_supported_is_tried_once_more(era: Era | None) -> None:
    picky = Picky(1, [NEW])
    async with raw_http(picky.serve) as server, rig(http_server(server.url, era=era)) as made:
        listing = await within(made.upstreams.discover("peer"))
    assert listing.era is Era.STATELESS
    assert picky.methods[:3] == ["server/discover", "server/discover", "tools/list"]


@pytest.mark.parametrize(("supported", "greetings"), [([NEW], 2), (["2099-01-01"], 1)])
async def test_a_server_that_stays_with_its_refusal_is_not_asked_on(
    supported: list[str], greetings: int
) -> None:
    picky = Picky(10, supported)
    async with raw_http(picky.serve) as server, rig(http_server(server.url)) as made:
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.discover("peer"))
        assert picky.methods == ["server/discover"] * greetings


SLOW = """
import json, sys
for n, line in enumerate(sys.stdin):
    asked = json.loads(line)
    if "id" not in asked or n == 0:
        continue
    said = {"error": {"code": -32601, "message": "method not found"}}
    if asked["method"] in {"server/discover", "tools/list"}:
        said = {"result": json.loads(sys.argv[1])}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


async def test_a_newer_child_that_slept_through_the_probe_is_asked_again() -> None:
    argv = (sys.executable, "-S", "-E", "-c", SLOW, json.dumps({**DISCOVERED, "tools": []}))
    async with rig(Server(name="peer", transport=StdioTransport(argv=argv)), probe=0.1) as made:
        listing = await within(made.upstreams.discover("peer"))
    assert listing.era is Era.STATELESS


def told(message: dict[str, Any], result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


async def test_events_that_are_no_json_are_passed_over() -> None:
    async def serve(wire: Wire) -> None:
        while (seen := await wire.request()) is not None:
            message = json.loads(seen.body)
            result = {**DISCOVERED, "tools": [], "content": []}
            body = b"data: ping\n\ndata: [DONE]\n\ndata: %b\n\n" % told(message, result)
            await wire.reply(body, extra="content-type: text/event-stream\r\n")

    async with raw_http(serve) as server, rig(http_server(server.url, era=Era.STATELESS)) as made:
        await within(made.send("echo"))


async def test_a_byte_order_mark_before_an_answer_is_passed_over() -> None:
    async def serve(wire: Wire) -> None:
        while (seen := await wire.request()) is not None:
            body = told(json.loads(seen.body), {**DISCOVERED, "tools": [], "content": []})
            await wire.reply(b"\xef\xbb\xbf" + body, extra="content-type: application/json\r\n")

    async with raw_http(serve) as server, rig(http_server(server.url, era=Era.STATELESS)) as made:
        await within(made.send("echo"))


class Turncoat:
    """A server that speaks one era, refuses requests of the other, and may be replaced."""

    def __init__(self, era: Era) -> None:
        self.era = era

    async def serve(self, wire: Wire) -> None:
        while (seen := await wire.request()) is not None:
            message = json.loads(seen.body) if seen.body else {}
            new = seen.header("mcp-method") is not None
            old = message.get("method") == "initialize" or seen.header("mcp-session-id") is not None
            if "id" not in message:
                await wire.reply(b"", status=202 if message else 405)
            elif new if self.era is Era.STATELESS else old and not new:
                welcome = {"protocolVersion": "2025-11-25", "serverInfo": {}}
                result = {**DISCOVERED, **welcome, "tools": [], "content": []}
                session = "" if new else "mcp-session-id: s\r\n"
                extra = f"content-type: application/json\r\n{session}"
                await wire.reply(told(message, result), extra=extra)
            else:
                code = -32022 if self.era is Era.STATELESS else -32600
                error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "no"}}
                extra = "content-type: application/json\r\n"
                await wire.reply(json.dumps(error).encode(), status=400, extra=extra)


@pytest.mark.parametrize("sharing", [Sharing.SHARED, None])
@pytest.mark.parametrize(
    ("first", "then"), [(Era.STATELESS, Era.HANDSHAKE), (Era.HANDSHAKE, Era.STATELESS)]
)
async def test_a_server_that_comes_back_in_the_other_era_costs_one_call_at_most(
    first: Era, then: Era, sharing: Sharing | None
) -> None:
    peer = Turncoat(first)
    async with (
        raw_http(peer.serve) as server,
        rig(http_server(server.url, sharing=sharing)) as made,
    ):
        await within(made.send("echo"))
        peer.era = then
        with suppress(UpstreamError):
            await within(made.send("echo"))
        await within(made.send("echo"))
