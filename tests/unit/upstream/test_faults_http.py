"""Faults of an HTTP server: sessions forgotten, streams cut, refusals, and what is sent twice."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from tests.support.raw_http import Wire, raw_http
from tests.support.upstreams import Heard, http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import Era, Server, Sharing, UpstreamState
from thoughtgate.core.tools import Effect
from thoughtgate.testing.fake_http import FakeHttp, Manners, fake_http
from thoughtgate.testing.fake_server import FakeServer
from thoughtgate.testing.fake_turn import Script
from thoughtgate.upstream.breaker import Backoff

ERAS = pytest.mark.parametrize("era", list(Era))


@pytest.fixture
async def endpoint() -> AsyncIterator[FakeHttp]:
    async with fake_http() as made:
        yield made


def calls(endpoint: FakeHttp, name: str) -> int:
    """Return how often a tool was called."""
    return sum(
        message.get("method") == "tools/call" and message["params"]["name"] == name
        for message in endpoint.server.seen
    )


def shared_server(url: str) -> Server:
    return http_server(url, era=Era.HANDSHAKE, sharing=Sharing.SHARED)


def methods(endpoint: FakeHttp) -> list[str]:
    return [str(message.get("method", "")) for message in endpoint.server.seen]


@ERAS
@pytest.mark.parametrize(("effect", "sent"), [(Effect.WRITE, 1), (Effect.IDEMPOTENT, 2)])
async def test_a_cut_connection_loses_a_write_and_repeats_what_may_be_repeated(
    endpoint: FakeHttp, era: Era, effect: Effect, sent: int
) -> None:
    async with rig(http_server(endpoint.url, era=era)) as made:
        await made.call("echo")
        with pytest.raises(UpstreamLost) as caught:
            await within(made.send("crash", effect=effect))
    assert "peer" in caught.value.message
    assert calls(endpoint, "crash") == sent


@ERAS
async def test_a_stream_cut_after_progress_is_lost(endpoint: FakeHttp, era: Era) -> None:
    async with rig(http_server(endpoint.url, era=era)) as made:
        heard = Heard()
        with pytest.raises(UpstreamLost):
            await within(made.send("half", listener=heard, wants_progress=True))
    assert heard.params == [{"progress": 1}]


@ERAS
async def test_a_hanging_call_times_out_and_the_server_learns_of_it(
    endpoint: FakeHttp, era: Era
) -> None:
    async with rig(http_server(endpoint.url, era=era)) as made:
        await made.call("echo")
        other = asyncio.ensure_future(made.send("hang"))
        with pytest.raises(UpstreamTimeout):
            await within(made.send("stubborn", timeout=0.1))
        assert await made.call("echo", {"n": 1}) == {"n": 1}
        assert not other.done()
        other.cancel()
        if era is Era.HANDSHAKE:
            await until(lambda: len(endpoint.server.cancels) == 2)
        else:
            assert endpoint.server.cancels == []
            await until(lambda: endpoint.server.running == 1)  # only the subscription
        assert made.statuses[-1].state is UpstreamState.READY


@pytest.mark.parametrize("events", [False, True])
@ERAS
async def test_broken_results_fail_their_own_call(era: Era, *, events: bool) -> None:
    async with (
        fake_http(manners=Manners(events=events)) as endpoint,
        rig(http_server(endpoint.url, era=era)) as made,
    ):
        for kind in ("nan", "duplicate", "utf8", "digits", "list"):
            with pytest.raises(UpstreamGarbled):
                await within(made.send("broken", {"kind": kind}))
        assert await made.call("echo", {"n": 1}) == {"n": 1}


@pytest.mark.parametrize("events", [False, True])
@ERAS
async def test_connections_are_kept_after_answers_of_both_kinds(era: Era, *, events: bool) -> None:
    async with (
        fake_http(manners=Manners(events=events)) as endpoint,
        rig(http_server(endpoint.url, era=era)) as made,
    ):
        for n in range(30):
            assert await made.call("echo", {"n": n}) == {"n": n}
        assert len(endpoint.connections) <= 3  # calls, the stream of notifications, one to spare


async def test_a_forgotten_session_is_opened_again_once_for_all_callers(
    endpoint: FakeHttp,
) -> None:
    async with rig(shared_server(endpoint.url)) as made:
        await made.call("echo")
        endpoint.sessions.clear()
        sent = [made.call("echo", {"n": n}) for n in range(10)]
        assert await within(asyncio.gather(*sent)) == [{"n": n} for n in range(10)]
        assert methods(endpoint).count("initialize") == 2
        assert calls(endpoint, "echo") == 11
        await until(lambda: len(made.listings) == 2)


async def test_a_server_that_forgets_every_session_is_unreachable(endpoint: FakeHttp) -> None:
    async with rig(http_server(endpoint.url, era=Era.HANDSHAKE)) as made:
        await made.call("echo")
        endpoint.forgetful = True
        with pytest.raises(UpstreamUnreachable):
            await within(made.send("echo"))
        assert calls(endpoint, "echo") == 1
        assert endpoint.turned_away.count("tools/call") == 2


async def test_the_session_is_given_back_at_the_end(endpoint: FakeHttp) -> None:
    async with rig(http_server(endpoint.url, era=Era.HANDSHAKE)) as made:
        await made.call("echo")
        assert len(endpoint.sessions) == 1
    assert endpoint.sessions == set()


async def test_a_server_without_streams_is_asked_for_one_only_once() -> None:
    async with (
        fake_http(manners=Manners(streams=False)) as endpoint,
        rig(shared_server(endpoint.url)) as made,
    ):
        for n in range(5):
            await made.call("echo", {"n": n})
        assert [method for method, _ in endpoint.requests].count("GET") == 1
        assert len(made.listings) == 1


@ERAS
async def test_a_changed_list_is_listed_again(endpoint: FakeHttp, era: Era) -> None:
    async with rig(http_server(endpoint.url, era=era, sharing=Sharing.SHARED)) as made:
        await made.call("echo")
        await until(lambda: endpoint.server.listeners)
        await endpoint.server.change()
        await until(lambda: "extra0" in made.names())


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_credentials_need_a_person(endpoint: FakeHttp, status: int) -> None:
    endpoint.manners.status = status
    far = Backoff(first=60.0, longest=60.0, give_up=None)
    server = http_server(endpoint.url, headers={"authorization": "s3cret"})
    async with rig(server, backoff=far) as made:
        for _ in range(2):  # also while it is not tried again: it is still a person that is wanted
            with pytest.raises(UpstreamDenied) as caught:
                await within(made.upstreams.discover("peer"))
        assert made.statuses[-1].state is UpstreamState.NEEDS_AUTH
        assert "s3cret" not in caught.value.message
        endpoint.manners.status = 0
        assert (await within(made.upstreams.restart("peer"))).tools


@pytest.mark.parametrize(("status", "error"), [(500, UpstreamGarbled), (503, UpstreamLost)])
async def test_a_status_without_an_answer_is_no_answer(
    endpoint: FakeHttp, status: int, error: type[Exception]
) -> None:
    async with rig(http_server(endpoint.url, era=Era.STATELESS)) as made:
        await made.call("echo")
        endpoint.manners.status = status
        with pytest.raises(error):
            await within(made.send("echo"))
        endpoint.manners.status = 0
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_a_server_that_is_down_is_reached_again_when_it_is_back() -> None:
    async with fake_http() as first:
        url = first.url
    async with rig(http_server(url)) as made:
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.discover("peer"))
        assert made.statuses[-1].state is UpstreamState.DEGRADED
        async with fake_http(port=int(url.rpartition(":")[2].partition("/")[0])):
            await until(lambda: made.statuses[-1].state is UpstreamState.READY)
            assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_an_unknown_era_is_probed_over_http() -> None:
    for eras, expected in (
        (frozenset({Era.HANDSHAKE}), Era.HANDSHAKE),
        (frozenset({Era.STATELESS}), Era.STATELESS),
        (frozenset(Era), Era.STATELESS),
    ):
        async with (
            fake_http(FakeServer(Script(eras=eras))) as endpoint,
            rig(http_server(endpoint.url)) as made,
        ):
            listing = await within(made.upstreams.discover("peer"))
        assert listing.era is expected


async def test_the_headers_of_the_stateless_era_mirror_the_call(endpoint: FakeHttp) -> None:
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "gone": {"type": "string", "x-mcp-header": "Gone"},
        },
    }
    server = http_server(endpoint.url, era=Era.STATELESS, headers={"x-key": "k"})
    async with rig(server) as made:
        await made.call("echo", {"region": "köln", "count": 3, "gone": None}, schema=schema)
    sent = [headers for _, headers in endpoint.requests]
    headers = next(each for each in sent if each.get("mcp-method") == "tools/call")
    assert headers["mcp-name"] == "echo"
    assert headers["mcp-param-region"] == "=?base64?a8O2bG4=?="
    assert headers["mcp-param-count"] == "3"
    assert "mcp-param-gone" not in headers
    assert headers["x-key"] == "k"


async def test_the_version_header_follows_the_greeting_of_the_old_era(endpoint: FakeHttp) -> None:
    async with rig(http_server(endpoint.url, era=Era.HANDSHAKE)) as made:
        await made.call("echo")
    posts = [headers for method, headers in endpoint.requests if method == "POST"]
    assert "mcp-protocol-version" not in posts[0]
    assert {headers.get("mcp-protocol-version") for headers in posts[1:]} == {"2025-11-25"}


async def test_a_servers_requests_are_answered_in_the_old_era_and_dropped_in_the_new(
    endpoint: FakeHttp,
) -> None:
    async with rig(http_server(endpoint.url, era=Era.HANDSHAKE)) as made:
        assert "code" not in await made.call("ask", {"method": "ping"})
        refused = await made.call("ask", {"method": "elicitation/create"})
        assert refused["code"] == -32601
    async with rig(http_server(endpoint.url, era=Era.STATELESS)) as made:
        with pytest.raises(UpstreamTimeout):
            await within(made.send("ask", {"method": "ping"}, timeout=0.1))
        assert made.upstreams.counts("peer").refused == 1


async def test_a_slow_caller_slows_its_own_server_down(endpoint: FakeHttp) -> None:
    gate = asyncio.Event()
    heard = Heard()

    class Slow:
        async def notify(self, notice: object) -> None:
            await gate.wait()
            heard.notices.append(notice)  # type: ignore[arg-type]  # kept only to be counted

        async def ask(self, question: object) -> bytes:
            raise NotImplementedError

    async with rig(http_server(endpoint.url, era=Era.STATELESS)) as made:
        await made.call("echo")
        slow = made.send("progress", {"count": 2000}, listener=Slow(), wants_progress=True)
        running = asyncio.ensure_future(slow)
        assert await made.call("echo", {"n": 1}) == {"n": 1}
        assert heard.notices == []
        gate.set()
        await within(running)
    assert [params["progress"] for params in heard.params] == list(range(2000))


async def test_errors_of_both_kinds_come_back_as_they_are(endpoint: FakeHttp) -> None:
    for era in Era:
        async with rig(http_server(endpoint.url, era=era)) as made:
            result = await within(made.send("tool_error", {"n": 1}))
            assert result.is_error
            for code in (-32602, -32601, -1):
                with pytest.raises(UpstreamReplied) as caught:
                    await within(made.send("fail", {"code": code}))
                assert (caught.value.rpc_code, caught.value.rpc_data) == (code, {"why": "asked"})


async def test_an_old_stream_that_breaks_off_is_read_on_by_its_last_event() -> None:
    """SEP-1699: a server may end a POST's stream early and answer on a GET that names its event."""
    asked: list[int] = []

    async def serve(wire: Wire) -> None:
        while seen := await wire.request():
            message = json.loads(seen.body) if seen.body else {}
            if seen.head.startswith("GET") and seen.header("last-event-id") == "e1":
                reply = {"jsonrpc": "2.0", "id": asked[-1], "result": {"content": []}}
                await events(wire, f"id: e2\ndata: {json.dumps(reply)}\n\n")
            elif seen.head.startswith("GET"):
                await wire.reply(b"", status=405)
            elif message.get("method") == "tools/call":
                asked.append(message["id"])
                await events(wire, "id: e1\nretry: 1\ndata:\n\n")
            else:
                await answer(wire, message)

    async with (
        raw_http(serve) as server,
        rig(http_server(server.url, era=Era.HANDSHAKE)) as made,
    ):
        assert (await within(made.send("echo"))).raw == b'{"content": []}'


async def test_a_write_whose_stream_broke_off_is_not_sent_again_when_reading_on_is_refused() -> (
    None
):
    """The second connection fails before it sends anything, but the call had long left."""

    async def serve(wire: Wire) -> None:
        seen = await wire.request()
        message = json.loads(seen.body) if seen and seen.body else {}
        if message.get("method") == "tools/call":
            wire.server.refuse()
            await events(wire, "id: e1\nretry: 1\ndata:\n\n", "connection: close\r\n")
        else:
            await answer(wire, message, "connection: close\r\n")

    async with (
        raw_http(serve) as server,
        rig(http_server(server.url, era=Era.HANDSHAKE)) as made,
    ):
        with pytest.raises(UpstreamLost):
            await within(made.send("echo", effect=Effect.WRITE))


async def test_a_redirect_is_not_followed_with_our_headers() -> None:
    async def redirect(wire: Wire) -> None:
        while await wire.request():
            place = "location: https://evil.example/mcp\r\n"
            await wire.reply(b"", status=307, extra=place)

    async with (
        raw_http(redirect) as server,
        rig(http_server(server.url, headers={"x-api-key": "s3cret"})) as made,
    ):
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.upstreams.discover("peer"))
    assert "https://evil.example:443" in caught.value.message
    assert "s3cret" not in caught.value.message


async def events(wire: Wire, text: str, extra: str = "") -> None:
    head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    await wire.write(f"{head}{extra}\r\n{len(text):x}\r\n{text}\r\n0\r\n\r\n".encode())


async def answer(wire: Wire, message: dict[str, object], extra: str = "") -> None:
    """Answer what greeting and listing ask."""
    result: dict[str, object] = {"tools": []}
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    reply = {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
    head = f"content-type: application/json\r\n{extra}"
    await wire.reply(json.dumps(reply).encode(), extra=head)


@ERAS
async def test_an_answer_beyond_the_limit_fails_its_own_call(endpoint: FakeHttp, era: Era) -> None:
    async with rig(http_server(endpoint.url, era=era), max_result=20_000) as made:
        with pytest.raises(UpstreamGarbled):
            await within(made.send("big", {"size": 30_000}))
        small = await within(made.send("big", {"size": 100}))
    assert not small.is_error
