"""What every HTTP client promises, against a server that speaks raw bytes."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Callable

import pytest
import trustme
import uvloop

from tests.support.raw_http import Wire, raw_http
from tests.support.waiting import until, within
from thoughtgate.core.errors import UpstreamGarbled, UpstreamLost, UpstreamUnreachable
from thoughtgate.upstream.aiohttp_client import AiohttpClient
from thoughtgate.upstream.http_client import Limits, PooledClient
from thoughtgate.upstream.ports import HttpClient, HttpReply, HttpRequest

Make = Callable[..., HttpClient]

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture(params=[PooledClient, AiohttpClient], ids=["own", "aiohttp"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    made: list[HttpClient] = []

    def build(*, limits: Limits | None = None, tls: ssl.SSLContext | None = None) -> HttpClient:
        made.append(request.param(limits=limits, tls=tls))
        return made[-1]

    yield build
    for client in made:
        await within(client.aclose())


@pytest.fixture
def client(make: Make) -> HttpClient:
    return make()


def post(url: str, body: bytes = b"{}", **headers: str) -> HttpRequest:
    return HttpRequest(
        method="POST", url=url, headers={"content-type": "application/json", **headers}, body=body
    )


async def fetch(client: HttpClient, request: HttpRequest, limit: int = 1 << 20) -> bytes:
    reply = await within(client.send(request))
    return await within(reply.read(limit))


async def echo(wire: Wire) -> None:
    while seen := await wire.request():
        await wire.reply(seen.body, extra="X-Seen:  padded \t\r\n")


async def test_a_request_arrives_whole_and_its_reply_comes_back(client: HttpClient) -> None:
    async with raw_http(echo) as server:
        reply = await within(client.send(post(server.url + "?a=1", b'{"n":1}', x_key="v")))
        body = await within(reply.read())
    assert (reply.status, reply.headers["x-seen"], body) == (200, "padded", b'{"n":1}')
    seen = server.seen[0]
    assert seen.head.startswith("POST /mcp?a=1 HTTP/1.1\r\n")
    assert seen.header("accept-encoding") == "identity"
    assert seen.header("host") == server.url.split("/")[2]
    assert seen.header("x_key") == "v"


async def test_connections_are_reused(client: HttpClient) -> None:
    async with raw_http(echo) as server:
        for _ in range(5):
            await fetch(client, post(server.url))
    assert server.connections == 1


async def test_requests_at_once_take_connections_of_their_own(client: HttpClient) -> None:
    arrived = asyncio.Barrier(3)

    async def together(wire: Wire) -> None:
        seen = await wire.request()
        await arrived.wait()
        await wire.reply(seen.body if seen else b"")

    async with raw_http(together) as server:
        bodies = await within(
            asyncio.gather(*(fetch(client, post(server.url, b"%d" % n)) for n in range(3)))
        )
    assert bodies == [b"0", b"1", b"2"]


async def test_more_requests_than_connections_wait_for_their_turn(make: Make) -> None:
    client = make(limits=Limits(connections=2))
    async with raw_http(echo) as server:
        sent = [fetch(client, post(server.url, b"%d" % n)) for n in range(20)]
        bodies = await within(asyncio.gather(*sent))
    assert bodies == [b"%d" % n for n in range(20)]
    assert server.connections <= 2


async def test_a_waiting_request_that_is_cancelled_leaves_its_turn_to_the_next(make: Make) -> None:
    client = make(limits=Limits(connections=1))
    go = asyncio.Event()

    async def gated(wire: Wire) -> None:
        while seen := await wire.request():
            await go.wait()
            await wire.reply(seen.body)

    async with raw_http(gated) as server:
        first = asyncio.ensure_future(fetch(client, post(server.url, b"1")))
        await until(lambda: server.seen)
        second = asyncio.ensure_future(fetch(client, post(server.url, b"2")))
        third = asyncio.ensure_future(fetch(client, post(server.url, b"3")))
        await asyncio.sleep(0)
        second.cancel()
        go.set()
        assert (await within(first), await within(third)) == (b"1", b"3")


async def test_a_connection_idle_for_too_long_is_not_used_again(make: Make) -> None:
    client = make(limits=Limits(idle=0.0))
    async with raw_http(echo) as server:
        await fetch(client, post(server.url))
        await fetch(client, post(server.url))
    assert server.connections == 2


async def test_a_connection_that_the_server_closed_while_idle_is_not_used_again(
    client: HttpClient,
) -> None:
    async def once(wire: Wire) -> None:
        seen = await wire.request()
        await wire.reply(seen.body if seen else b"")

    async with raw_http(once) as server:
        assert await fetch(client, post(server.url, b"1")) == b"1"
        await until(lambda: server.open == 0)
        await round_trip_elsewhere(client)  # by then the close has arrived
        assert await fetch(client, post(server.url, b"2")) == b"2"


async def test_a_reused_connection_that_breaks_before_the_reply_is_lost_and_never_resent(
    client: HttpClient,
) -> None:
    async def trap(wire: Wire) -> None:
        seen = await wire.request()
        await wire.reply(seen.body if seen else b"")
        await wire.request()

    async with raw_http(trap) as server:
        await fetch(client, post(server.url, b"1"))
        with pytest.raises(UpstreamLost):
            await fetch(client, post(server.url, b"2"))
        assert [seen.body for seen in server.seen] == [b"1", b"2"]


async def test_a_refused_connection_is_unreachable(client: HttpClient) -> None:
    async with raw_http(echo) as server:
        pass
    with pytest.raises(UpstreamUnreachable) as caught:
        await fetch(client, post(server.url))
    assert "127.0.0.1" in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/",
        "http://",
        "http://u:p@x/",
        "http://x:99999/",
        "/mcp",
        "http://ä.x/",
        "http://a\x7fb/",
    ],
)
async def test_a_url_that_cannot_be_asked_is_unreachable(client: HttpClient, url: str) -> None:
    with pytest.raises(UpstreamUnreachable) as caught:
        await fetch(client, post(url))
    assert "u:p" not in caught.value.message


async def test_a_header_with_a_line_end_is_not_sent(client: HttpClient) -> None:
    async with raw_http(echo) as server:
        with pytest.raises(UpstreamUnreachable) as caught:
            await fetch(client, post(server.url, x="secret\r\nInjected: 1"))
    assert not server.seen
    assert "secret" not in caught.value.message


async def test_a_reply_in_single_bytes_is_read(client: HttpClient) -> None:
    async def bytewise(wire: Wire) -> None:
        await wire.request()
        whole = CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
        for index in range(len(whole)):
            await wire.write(whole[index : index + 1])
            await asyncio.sleep(0)
        await wire.closed()

    async with raw_http(bytewise) as server:
        assert await fetch(client, post(server.url)) == b"abcde"


async def test_a_body_without_a_length_ends_with_the_connection(client: HttpClient) -> None:
    async def until_close(wire: Wire) -> None:
        await wire.request()
        await wire.write(b"HTTP/1.1 200 OK\r\n\r\nabc")

    async with raw_http(until_close) as server:
        assert await fetch(client, post(server.url)) == b"abc"
        assert await fetch(client, post(server.url)) == b"abc"
        assert server.connections == 2


@pytest.mark.parametrize(
    "head", [b"content-length: 100\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n5\r\nabc"]
)
async def test_a_body_that_is_cut_short_is_lost(client: HttpClient, head: bytes) -> None:
    async def cut(wire: Wire) -> None:
        await wire.request()
        await wire.write(b"HTTP/1.1 200 OK\r\n" + head)

    async with raw_http(cut) as server:
        reply = await within(client.send(post(server.url)))
        with pytest.raises((UpstreamLost, UpstreamGarbled)):
            await within(reply.read())


async def test_a_reply_longer_than_its_length_spoils_only_its_connection(
    client: HttpClient,
) -> None:
    async def spill(wire: Wire) -> None:
        await wire.request()
        await wire.reply(b"abc")
        await wire.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")
        await wire.closed()

    async with raw_http(spill) as server:
        assert await fetch(client, post(server.url)) == b"abc"
        await round_trip_elsewhere(client)  # by then the spilled reply has arrived
        assert await fetch(client, post(server.url)) == b"abc"


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 400_000 + b"\r\n\r\n",
    ],
    ids=["banner", "status", "header", "chunk", "huge head"],
)
async def test_what_is_not_http_is_garbled(client: HttpClient, garbage: bytes) -> None:
    async def rubbish(wire: Wire) -> None:
        await wire.request()
        await wire.write(garbage)
        await wire.closed()

    async with raw_http(rubbish) as server:
        with pytest.raises(UpstreamGarbled):
            await fetch(client, post(server.url))


async def test_a_100_continue_before_the_reply_is_skipped(client: HttpClient) -> None:
    async def interim(wire: Wire) -> None:
        await wire.request()
        await wire.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nx: y\r\n\r\n")
        await wire.reply(b"real")
        await wire.closed()

    async with raw_http(interim) as server:
        reply = await within(client.send(post(server.url)))
        assert (reply.status, await within(reply.read())) == (200, b"real")


async def test_a_redirect_is_not_followed_and_the_error_names_its_origin(
    client: HttpClient,
) -> None:
    async def redirect(wire: Wire) -> None:
        await wire.request()
        await wire.reply(b"", status=307, extra="location: https://evil.example/steal?k=v\r\n")
        await wire.closed()

    async with raw_http(echo) as elsewhere, raw_http(redirect) as server:
        with pytest.raises(UpstreamGarbled) as caught:
            await fetch(client, post(server.url, x_api_key="s3cret"))
    assert "https://evil.example:443" in caught.value.message
    assert not elsewhere.seen
    assert "s3cret" not in caught.value.message


async def test_a_compressed_reply_is_refused_before_it_is_unpacked(client: HttpClient) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)

    async def packed(wire: Wire) -> None:
        await wire.request()
        await wire.reply(bomb, extra="content-encoding: gzip\r\n")
        await wire.closed()

    async with raw_http(packed) as server:
        with pytest.raises(UpstreamGarbled):
            await fetch(client, post(server.url))


async def test_an_oversized_body_is_cut_off_and_the_next_request_is_fine(
    client: HttpClient,
) -> None:
    async def flood(wire: Wire) -> None:
        seen = await wire.request()
        if seen and seen.body == b"small":
            await wire.reply(b"ok")
            return
        await wire.write(CHUNKED)
        while True:
            await wire.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    async with raw_http(flood) as server:
        with pytest.raises(UpstreamGarbled) as caught:
            await fetch(client, post(server.url), limit=1_000_000)
        assert "1000000" in caught.value.message
        await until(lambda: server.open == 0)
        assert await fetch(client, post(server.url, b"small")) == b"ok"


async def test_a_slow_reader_slows_the_server_down(client: HttpClient) -> None:
    sent = 0

    async def flood(wire: Wire) -> None:
        nonlocal sent
        await wire.request()
        await wire.write(CHUNKED)
        while sent < 200 << 20:
            await wire.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            sent += 0x10000

    async with raw_http(flood) as server:
        reply = await within(client.send(post(server.url)))
        await until(unchanged(lambda: sent))
        assert sent < 64 << 20
        reply.body.close()


@pytest.mark.parametrize("size", [270_000, 300_000, 600_000])
async def test_a_body_that_ended_while_reading_was_paused_leaves_no_trap_for_the_next_request(
    client: HttpClient, size: int
) -> None:
    big = b"x" * size
    written = asyncio.Event()

    async def generous(wire: Wire) -> None:
        while seen := await wire.request():
            await wire.reply(big if seen.body == b"big" else b"small")
            written.set()

    async with raw_http(generous) as server:
        reply: HttpReply = await within(client.send(post(server.url, b"big")))
        await within(written.wait())
        await round_trip_elsewhere(client)  # by then as much as fits has arrived, unread
        assert len(await within(reply.read())) == len(big)
        for _ in range(3):
            assert await fetch(client, post(server.url, b"other")) == b"small"
    assert server.connections == 1


async def test_an_unread_body_costs_its_connection_and_nothing_else(client: HttpClient) -> None:
    async def endless(wire: Wire) -> None:
        seen = await wire.request()
        if seen and seen.body == b"stream":
            await wire.write(CHUNKED + b"1\r\na\r\n")
            await wire.closed()
        else:
            await wire.reply(b"ok")

    async with raw_http(endless) as server:
        reply = await within(client.send(post(server.url, b"stream")))
        assert await within(reply.body.chunk()) == b"a"
        reply.body.close()
        await until(lambda: server.open == 0)
        assert await fetch(client, post(server.url)) == b"ok"


async def test_cancelling_a_request_closes_its_connection_at_once(client: HttpClient) -> None:
    async def silent(wire: Wire) -> None:
        await wire.request()
        await wire.closed()

    async with raw_http(silent) as server:
        sending = asyncio.ensure_future(client.send(post(server.url)))
        await until(lambda: server.seen)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(sending)
        await until(lambda: server.open == 0)


async def test_a_cancellation_that_meets_its_reply_breaks_no_other_request(
    client: HttpClient,
) -> None:
    """The reply gives the connection back, and somebody else takes it, in the same moment."""
    async with raw_http(echo) as server:
        for ticks in range(40):
            sending = asyncio.ensure_future(client.send(post(server.url, b"first")))
            for _ in range(ticks):
                await asyncio.sleep(0)
            sending.cancel()
            assert await fetch(client, post(server.url, b"second")) == b"second", ticks
            await asyncio.wait([sending])


async def test_closing_the_client_fails_what_still_waits(client: HttpClient) -> None:
    async def silent(wire: Wire) -> None:
        await wire.request()
        await wire.closed()

    async with raw_http(silent) as server:
        sending = asyncio.ensure_future(client.send(post(server.url)))
        await until(lambda: server.seen)
        await within(client.aclose())
        with pytest.raises(UpstreamLost):
            await within(sending)
        with pytest.raises(UpstreamUnreachable):
            await within(client.send(post(server.url)))


async def test_tls_is_spoken_with_a_server_whose_certificate_is_trusted(make: Make) -> None:
    authority = trustme.CA()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(serving)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with raw_http(echo, tls=serving) as server:
        client = make(tls=trusting)
        assert await fetch(client, post(server.url, b"hello")) == b"hello"
        assert await fetch(client, post(server.url, b"again")) == b"again"
        assert server.connections == 1
        with pytest.raises(UpstreamUnreachable) as caught:
            await fetch(make(), post(server.url))
    assert "certificate" in caught.value.message


def test_our_own_client_runs_on_uvloop() -> None:
    async def main() -> bytes:
        client = PooledClient()
        async with raw_http(echo) as server:
            try:
                await fetch(client, post(server.url, b"one"))
                return await fetch(client, post(server.url, b"two"))
            finally:
                await client.aclose()

    assert uvloop.run(main()) == b"two"


async def test_a_server_that_accepts_but_never_shakes_hands_is_unreachable_in_time(
    make: Make,
) -> None:
    async def mute(wire: Wire) -> None:
        await wire.closed()

    async with raw_http(mute) as server:
        client = make(limits=Limits(connect=0.05))
        with pytest.raises(UpstreamUnreachable):
            await fetch(client, post(server.url.replace("http:", "https:")))


def unchanged(value: Callable[[], int], polls: int = 10) -> Callable[[], bool]:
    """Return a condition that holds once `value()` has stayed the same for some polls."""
    seen: list[int] = []

    def condition() -> bool:
        seen.append(value())
        return len(seen) > polls and len(set(seen[-polls:])) == 1

    return condition


async def round_trip_elsewhere(client: HttpClient) -> None:
    async with raw_http(echo) as other:
        await fetch(client, post(other.url))
