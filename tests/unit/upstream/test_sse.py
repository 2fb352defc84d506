"""Servers of the older HTTP+SSE transport: found, used like any other, and held to their origin."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.callers import Client
from tests.support.raw_http import Wire, raw_http
from tests.support.upstreams import Heard, Rig, http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamError,
    UpstreamLost,
    UpstreamReplied,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import Era, HttpTransport, Server, Sharing, UpstreamState
from thoughtgate.core.tools import Kind
from thoughtgate.testing.fake_http import FakeHttp, Manners, fake_http
from thoughtgate.testing.fake_server import FakeServer
from thoughtgate.testing.fake_turn import Script


@pytest.fixture
async def endpoint() -> AsyncIterator[FakeHttp]:
    script = Script(offers=True, eras=frozenset({Era.HANDSHAKE}))
    async with fake_http(FakeServer(script), Manners(legacy=True)) as made:
        yield made


def sse(url: str, **fields: Any) -> Server:
    server = http_server(url, **fields)
    assert isinstance(server.transport, HttpTransport)
    return replace(server, transport=replace(server.transport, sse=True))


@pytest.fixture(params=["told", "found"])
async def peer(request: pytest.FixtureRequest, endpoint: FakeHttp) -> AsyncIterator[Rig]:
    server = sse(endpoint.url) if request.param == "told" else http_server(endpoint.url)
    async with rig(server) as made:
        yield made


async def test_it_is_listed_and_called_like_any_other(peer: Rig) -> None:
    listing = await within(peer.upstreams.discover("peer"), 10.0)
    assert listing.era is Era.HANDSHAKE
    assert [resource["uri"] for resource in listing.resources] == ["mem://one", "mem://two"]
    sent = [peer.call("echo", {"n": n}) for n in range(30)]
    assert await within(asyncio.gather(*sent)) == [{"n": n} for n in range(30)]
    heard = Heard()
    await peer.call("progress", listener=heard, wants_progress=True)
    assert [params["progress"] for params in heard.params] == [0, 1, 2]
    with pytest.raises(UpstreamReplied):
        await within(peer.send("fail"))


async def test_it_may_ask_its_client_and_tell_of_changes(peer: Rig) -> None:
    client, other = Client("s1", answers={"roots/list": {"roots": []}}), Client("s2")
    await other.call(peer, "echo")
    assert "code" not in await client.call(peer, "ask", {"method": "roots/list"})
    await client.ask_for(peer, Kind.SUBSCRIBE, "mem://one")
    await other.call(peer, "update", {"uri": "mem://one"})
    await until(lambda: client.told)
    assert (other.questions, other.told) == ([], [])


async def test_a_cancelled_call_is_cancelled_there(peer: Rig, endpoint: FakeHttp) -> None:
    calling = asyncio.ensure_future(peer.send("hang"))
    await until(lambda: endpoint.server.running)
    calling.cancel()
    await until(lambda: len(endpoint.server.cancels) == 1)


async def test_a_lost_stream_fails_its_calls_and_the_next_call_opens_another(
    peer: Rig, endpoint: FakeHttp
) -> None:
    await peer.call("echo")
    calling = asyncio.ensure_future(peer.send("hang"))
    await until(lambda: endpoint.server.running)
    endpoint.cut()
    with pytest.raises(UpstreamLost):
        await within(calling)
    assert await peer.call("echo", {"n": 1}) == {"n": 1}


async def test_the_servers_headers_go_along_up_and_down(endpoint: FakeHttp) -> None:
    async with rig(sse(endpoint.url, headers={"x-key": "k"})) as made:
        await made.call("echo")
    assert {headers.get("x-key") for _, headers in endpoint.requests} == {"k"}


@pytest.mark.parametrize(
    "address", ["http://evil.example/messages", "//evil.example/messages", "http://[", "ftp://x/"]
)
async def test_nothing_is_ever_posted_to_another_origin(endpoint: FakeHttp, address: str) -> None:
    endpoint.manners.address = address
    async with rig(sse(endpoint.url, headers={"authorization": "s3cret"})) as made:
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.upstreams.discover("peer"))
    assert "origin" in caught.value.message
    assert {method for method, _ in endpoint.requests} == {"GET"}


async def test_an_address_in_full_at_the_same_origin_is_taken(endpoint: FakeHttp) -> None:
    endpoint.manners.address = endpoint.url.replace("/mcp", "/elsewhere/messages")
    async with rig(sse(endpoint.url)) as made:
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_a_message_that_is_refused_fails_alone(endpoint: FakeHttp) -> None:
    async with rig(sse(endpoint.url, sharing=Sharing.SHARED)) as made:
        other = asyncio.ensure_future(made.send("hang"))
        await until(lambda: endpoint.server.running)
        endpoint.manners.refuse = 413
        with pytest.raises(UpstreamReplied) as caught:
            await within(made.send("echo"))
        assert "413" in caught.value.message
        endpoint.manners.refuse = 0
        assert await made.call("echo", {"n": 1}) == {"n": 1}
        assert not other.done()
        other.cancel()


async def test_a_stream_that_the_server_knows_no_more_is_lost(endpoint: FakeHttp) -> None:
    async with rig(sse(endpoint.url, sharing=Sharing.SHARED)) as made:
        await made.call("echo")
        endpoint.manners.refuse = 404
        with pytest.raises(UpstreamError):
            await within(made.send("echo"))
        endpoint.manners.refuse = 0
        await until(lambda: made.statuses[-1].state is UpstreamState.READY)
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_a_login_that_is_missing_is_told_apart() -> None:
    async def deny(wire: Wire) -> None:
        while await wire.request():
            await wire.reply(b"", status=401)

    async with raw_http(deny) as server, rig(sse(server.url)) as made:
        with pytest.raises(UpstreamDenied):
            await within(made.upstreams.discover("peer"))


async def test_a_server_that_speaks_neither_transport_is_named_for_its_post() -> None:
    async def lost(wire: Wire) -> None:
        while await wire.request():
            await wire.reply(b"<h1>nothing here</h1>", status=404)

    async with raw_http(lost) as server, rig(http_server(server.url)) as made:
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.upstreams.discover("peer"))
    assert "404" in caught.value.message


async def test_a_stream_without_an_address_is_given_up_in_time() -> None:
    async def silent(wire: Wire) -> None:
        await wire.request()
        head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n"
        await wire.write(head.encode())
        await wire.request()

    async with raw_http(silent) as server, rig(sse(server.url, start_timeout=0.2)) as made:
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.upstreams.discover("peer"))
    assert "0.2 seconds" in caught.value.message
