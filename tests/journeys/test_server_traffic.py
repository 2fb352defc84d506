"""What servers say beside their answers, and what clients take back: where it goes, and when.

Through whole gateways on real sockets. No test waits for a clock.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.admin import AdminClient
from tests.support.children import alive
from tests.support.gate import START, Gate, command, gated, home, python_server
from tests.support.http_peer import HttpPeer, request
from tests.support.old_client import OldClient
from tests.support.raw_gateway import RawGateway, raw_gateway
from tests.support.raw_http import Wire, raw_http
from tests.support.raw_upstreams import HANDSHAKE, STATELESS, RawUpstream, over_http
from tests.support.waiting import until, within
from thoughtgate.app.admin_token import TOKEN_FILE
from thoughtgate.surface.settings import FaceSettings
from thoughtgate.testing.fake_http import FakeHttp, Manners, fake_http

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAKE = "thoughtgate.testing.fake_server"
OWN = python_server("own", FAKE, era="handshake", sharing="session")
KINDS = [(transport, era) for transport in ("http", "stdio") for era in (HANDSHAKE, STATELESS)]
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web() -> AsyncIterator[FakeHttp]:
    async with fake_http() as endpoint:
        yield endpoint


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, web: FakeHttp) -> AsyncIterator[Gate]:
    stubborn = python_server(
        "stubborn", FAKE, "--ignore-eof", "--ignore-term", era="handshake", sharing="session"
    )
    settings = f'[servers.web]\nurl = "{web.url}"\nera = "handshake"\n{OWN}{stubborn}'
    async with gated(home(tmp_path_factory.mktemp("home"), settings)) as gateway:
        yield gateway


@asynccontextmanager
async def house(
    folder: Path, upstream: RawUpstream, settings: str = "", **options: float
) -> AsyncIterator[RawGateway]:
    """Open a gateway in this process over a raw server `s`, and more servers."""
    async with over_http(upstream) as lines:
        config = f'{settings}[servers.s]\n{lines}\nera = "{upstream.era}"\n'
        async with raw_gateway(folder, config, **options) as gateway:
            gateway.discover()
            await gateway.listed("s")
            yield gateway


def fake_calls(web: FakeHttp, name: str) -> int:
    return sum(
        one.get("method") == "tools/call" and one["params"]["name"] == name
        for one in web.server.seen
    )


@dataclass(slots=True, repr=False)
class Moody(RawUpstream):
    """A server that says nothing while `speaks` is not set."""

    speaks: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.speaks.set()

    async def take(self, data: bytes) -> list[str]:
        await self.speaks.wait()
        return await RawUpstream.take(self, data)


# where it goes


@pytest.mark.parametrize("server", ["web", "own"])
async def test_what_a_server_says_during_a_call_comes_on_the_stream_of_that_call(
    running: Gate, server: str
) -> None:
    client = await OldClient.open(running.url(), sampling={})
    other = await OldClient.open(running.url(), sampling={})
    standing = await client.listen()
    asking_id, asking = await client.begin(f"{server}__ask", SAMPLE)
    await asking.head()
    question = await asking.message()
    assert question["method"] == "sampling/createMessage"
    wanted: list[tuple[OldClient, Any, int]] = [(client, "a", 3), (other, "a", 2), (client, 7, 4)]
    begun = [
        await one.begin(f"{server}__progress", {"count": count}, progressToken=token)
        for one, token, count in wanted
    ]
    for (_, token, count), (id_, told) in zip(wanted, begun, strict=True):
        await told.head()
        *notes, answer = await told.rest()
        assert answer["id"] == id_
        told_of = [(note["params"]["progressToken"], note["params"]["progress"]) for note in notes]
        assert told_of == [(token, step) for step in range(count)]
    assert await client.answer(question, SAID) == 202
    [answer] = await asking.rest()
    assert answer["id"] == asking_id
    assert answer["result"]["structuredContent"]["result"] == SAID
    await client.leave()
    await other.leave()
    assert await standing.rest() == []


async def test_log_messages_come_on_the_stream_of_the_call_that_caused_them(
    running: Gate,
) -> None:
    clients = [await OldClient.open(running.url()) for _ in range(2)]
    begun = [
        await client.begin("web__log", {"levels": levels})
        for client in clients
        for levels in (["error"], ["info", "warning"], ["debug"])
    ]
    for (id_, told), levels in zip(begun, [["error"], ["info", "warning"], []] * 2, strict=True):
        await told.head()
        *notes, answer = await told.rest()
        assert answer["id"] == id_
        assert [note["params"]["level"] for note in notes] == levels
    for client in clients:
        await client.leave()


async def test_calls_of_two_clients_never_share_what_they_carry(tmp_path: Path) -> None:
    """Each argument goes up beside the meta that it came with, and comes back to its client."""

    async def answer(params: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return json.dumps({"content": [], "structuredContent": params["arguments"]})

    upstream = RawUpstream(era=HANDSHAKE, answer=answer)
    async with house(tmp_path, upstream) as gateway:
        clients = [await gateway.client("http", era) for era in (HANDSHAKE, STATELESS) * 5]

        async def talk(number: int) -> None:
            for n in range(20):
                mark = number * 100 + n
                got = await clients[number].call("s__echo", f'{{"n":{mark}}}', {"x/n": mark})
                assert got.result["structuredContent"] == {"n": mark}

        await asyncio.gather(*(talk(number) for number in range(10)))
        pairs = [(one["arguments"]["n"], one["_meta"]["x/n"]) for one in upstream.params]
        assert len(pairs) == 200
        assert all(argument == meta for argument, meta in pairs)


# what is taken back


@pytest.mark.parametrize("server", ["web", "own"])
async def test_calls_that_are_cancelled_at_any_moment_fail_no_other(
    running: Gate, web: FakeHttp, server: str
) -> None:
    client = await OldClient.open(running.url())
    rng = random.Random(20260728)
    answered = 0

    async def one(number: int) -> None:
        nonlocal answered
        cancelled = rng.random() < 0.5
        name = rng.choice(["endless", "progress", "echo"]) if cancelled else "echo"
        token = {"progressToken": number} if name == "endless" else {}
        id_, told = await client.begin(f"{server}__{name}", {"number": number}, **token)
        if token:  # what is cancelled before it has come may be overtaken by that
            await (await told.head()).message()
        if cancelled:
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            await client.tell("notifications/cancelled", requestId=id_)
        messages = await (told if token else await told.head()).rest()
        if not cancelled:
            assert messages[-1]["result"]["structuredContent"] == {"number": number}
            answered += 1

    for start in range(0, 200, 20):
        await asyncio.gather(*(one(number) for number in range(start, start + 20)))
    assert answered >= 60
    assert await client.structured(f"{server}__echo", {"n": 1}) == {"n": 1}
    await until(lambda: web.server.running == 0)
    await client.leave()


async def test_a_thousand_cancellations_that_meet_their_answers_break_nothing(
    tmp_path: Path,
) -> None:
    place = home(tmp_path, python_server("own", FAKE, era="handshake"))
    process = await asyncio.create_subprocess_exec(
        *command("serve", "--stdio"),
        env=place.environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**26,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def line(message: object) -> bytes:
        return json.dumps(message).encode() + b"\n"

    lines = process.stdout

    async def until_answer(id_: object) -> list[Any]:
        seen: list[Any] = []
        while not seen or seen[-1].get("id") != id_:
            seen.append(json.loads(await within(lines.readline(), START)))
        return seen

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
    process.stdin.write(line(request("initialize", hello, "hello")))
    await until_answer("hello")
    heard: list[Any] = []
    for id_ in range(1000):
        call = request("tools/call", {"name": "own__echo", "arguments": {}}, id_)
        process.stdin.write(line(call))
        for number in range(id_ % 9):  # as long as some pings take, which is about as long
            process.stdin.write(line(request("ping", {}, f"p{number}")))
            heard += await until_answer(f"p{number}")
        taken = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        process.stdin.write(line({**taken, "params": {"requestId": id_}}))
        if id_ % 50 == 0:
            last = request("tools/call", {"name": "own__echo", "arguments": {"n": id_}}, f"e{id_}")
            process.stdin.write(line(last))
            heard += await until_answer(f"e{id_}")
            assert heard[-1]["result"]["structuredContent"] == {"n": id_}
    answered = [message["id"] for message in heard if isinstance(message["id"], int)]
    assert 0 < len(answered) == len(set(answered)) < 1000
    assert not [message for message in heard if "error" in message]
    process.stdin.close()
    assert await within(process.wait(), START) == 0


async def test_a_cancelled_call_makes_room_and_one_that_waits_is_never_sent(
    tmp_path: Path, web: FakeHttp
) -> None:
    settings = f'[servers.web]\nurl = "{web.url}"\nera = "handshake"\n'
    place = home(tmp_path, f"[limits]\nconcurrent_calls = 1\n{settings}")
    async with gated(place) as gateway:
        client = await OldClient.open(gateway.url())
        await client.structured("web__echo")
        before = fake_calls(web, "tool_error")
        holding, held = await client.begin("web__hang")
        await until(lambda: web.server.running == 1)
        waiting, never = await client.begin("web__tool_error")
        _, then = await client.begin("web__echo", {"n": 2})
        await client.tell("notifications/cancelled", requestId=waiting)
        await never.head()
        assert [one for one in await never.rest() if "id" in one] == []
        await client.tell("notifications/cancelled", requestId=holding)
        await then.head()
        assert (await then.rest())[-1]["result"]["structuredContent"] == {"n": 2}
        await held.head()
        assert [one for one in await held.rest() if "id" in one] == []
        assert fake_calls(web, "tool_error") == before
        await client.leave()


@dataclass
class Hasty:
    """A server that hears of a cancellation before it has begun the call, and heeds later ones."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    early: asyncio.Event = field(default_factory=asyncio.Event)
    running: set[object] = field(default_factory=set)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, wire: Wire) -> None:
        upstream = RawUpstream(era=HANDSHAKE)
        while (seen := await wire.request()) is not None:
            message = json.loads(seen.body) if seen.body else {}
            if message.get("method") == "tools/call":
                self.arrived.set()
                await self.early.wait()
                self.running.add(message["id"])
                await self.cancelled.wait()
                return
            if message.get("method") == "notifications/cancelled":
                known = message["params"]["requestId"] in self.running
                (self.cancelled if known else self.early).set()
            if not seen.head.startswith("POST"):
                await wire.reply(b"", status=405)
            elif texts := await upstream.take(seen.body):
                kind = "content-type: application/json\r\nmcp-session-id: s\r\n"
                await wire.reply(texts[0].encode(), extra=kind)
            else:
                await wire.reply(b"", status=202)


async def test_a_cancellation_that_overtook_its_call_is_told_again(tmp_path: Path) -> None:
    hasty = Hasty()
    async with raw_http(hasty.serve) as server:
        config = f'[servers.s]\nurl = "{server.url}"\nera = "handshake"\n'
        async with raw_gateway(tmp_path, config) as gateway:
            gateway.discover()
            await gateway.listed("s")
            client = await OldClient.open(f"http://127.0.0.1:{gateway.port}/mcp")
            id_, told = await client.begin("s__echo")
            await within(hasty.arrived.wait())
            await client.tell("notifications/cancelled", requestId=id_)
            await within(hasty.cancelled.wait(), START)
            await told.head()
            assert [one for one in await told.rest() if "id" in one] == []
            await client.leave()


async def test_an_end_of_a_session_does_not_wait_for_the_end_of_its_child(running: Gate) -> None:
    client = await OldClient.open(running.url())
    pid = (await client.structured("stubborn__pid"))["pid"]
    await client.leave()
    assert alive(pid)
    await until(lambda: not alive(pid), START)


# servers with habits


async def test_a_server_without_streams_is_not_asked_again_and_its_list_stands_still(
    tmp_path: Path,
) -> None:
    async with fake_http(manners=Manners(streams=False)) as endpoint:
        settings = f'[servers.web]\nurl = "{endpoint.url}"\nera = "handshake"\n'
        async with gated(home(tmp_path, settings)) as gateway:
            lists = set()
            for _ in range(10):
                client = await OldClient.open(gateway.url())
                standing = await client.listen()
                for n in range(5):
                    assert await client.structured("web__echo", {"n": n}) == {"n": n}
                lists.add(tuple(await client.names("tools")))
                await client.leave()
                assert await standing.rest() == []
            assert len(lists) == 1
            assert [method for method, _ in endpoint.requests].count("GET") == 1
            assert [one.get("method") for one in endpoint.server.seen].count("tools/list") == 1


NOTHING = [
    b"data:\n\n",
    b"data: \n\n",
    b": a comment\n\n",
    b"event: ping\ndata:\n\n",
    b"id: 1\ndata:\n\n",
    b"retry: 10\n\n",
    b"\n\n\r\n\r\n",
    b"event: endpoint\ndata: /elsewhere\n\n",
    b"\xef\xbb\xbf: a mark before all\n\n",
]


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize("nothing", NOTHING, ids=lambda value: repr(value)[:20])
async def test_events_that_are_no_messages_are_passed_over(
    tmp_path: Path, era: str, nothing: bytes
) -> None:
    upstream = RawUpstream(era=era, result='{"content":[],"structuredContent":{"n":1}}')

    async def serve(wire: Wire) -> None:
        while (seen := await wire.request()) is not None:
            if not seen.head.startswith("POST"):
                await wire.reply(b"", status=405)
                continue
            texts = await upstream.take(seen.body)
            events = b"".join(b"data: %b\n\n" % text.encode() for text in texts)
            kind = "content-type: text/event-stream\r\nmcp-session-id: s\r\n"
            if texts:
                await wire.reply(nothing + events, extra=kind)
            else:
                await wire.reply(b"", status=202)

    async with raw_http(serve) as server:
        config = f'[servers.s]\nurl = "{server.url}"\nera = "{era}"\n'
        async with raw_gateway(tmp_path, config) as gateway:
            gateway.discover()
            await gateway.listed("s")
            for kind in (HANDSHAKE, STATELESS):
                client = await gateway.client("http", kind)
                assert (await client.call("s__echo")).result["structuredContent"] == {"n": 1}


async def test_looking_at_a_server_never_greets_it_twice(running: Gate, web: FakeHttp) -> None:
    token = (running.home.state / TOKEN_FILE).read_text(encoding="utf-8").strip()
    admin = AdminClient(url=running.url(), token=token)

    def greetings() -> int:
        return sum(one.get("method") == "initialize" for one in web.server.seen)

    before = greetings()
    for _ in range(5):
        checked = await asyncio.to_thread(admin.do, "POST", "/servers/web/check")
        assert checked["ok"]
    assert greetings() == before


async def test_a_server_that_went_silent_holds_up_neither_hello_nor_lists_nor_others(
    tmp_path: Path,
) -> None:
    async with over_http(RawUpstream(era=HANDSHAKE)) as well:
        settings = f"[servers.well]\n{well}\n"
        silent = Moody(era=HANDSHAKE)
        async with house(tmp_path, silent, settings) as gateway:
            await gateway.listed("well")
            first = await gateway.client("http", HANDSHAKE)
            await first.call("s__echo")
            silent.speaks.clear()
            stuck = [asyncio.ensure_future(first.call("s__echo"))]
            for transport, era in KINDS:
                caller = await gateway.client(transport, era)
                stuck.append(asyncio.ensure_future(caller.call("s__echo")))
                client = await gateway.client(transport, era)
                assert set(await client.names()) == {"s__echo", "well__echo"}
                assert (await client.call("well__echo")).result["content"] == []
            assert not any(one.done() for one in stuck)
            silent.speaks.set()
            await asyncio.gather(*stuck)


async def test_a_gateway_with_a_deaf_server_serves_the_others_at_once(tmp_path: Path) -> None:
    deaf = python_server("deaf", FAKE, "--deaf", start_timeout=600)
    place = home(tmp_path)
    place.config.write_text(f"[gateway]\nlist_wait = 0.1\n{deaf}{OWN}", encoding="utf-8")
    async with gated(place) as gateway:
        client = await OldClient.open(gateway.url())
        async with asyncio.timeout(START):
            while not (names := await client.names("tools")):
                pass
        assert {name.split("__")[0] for name in names} == {"own"}
        assert await client.structured("own__echo", {"n": 1}) == {"n": 1}
        newer = await HttpPeer(gateway.url()).ask("tools/list", {})
        assert newer.status == 200
        await client.leave()


# in the long run


@dataclass
class Failing:
    """An upstream that begins an answer and cuts it off, and then is a gateway's error page."""

    broken: bool = False
    requests: int = 0

    async def serve(self, wire: Wire) -> None:
        upstream = RawUpstream(era=HANDSHAKE)
        while (seen := await wire.request()) is not None:
            self.requests += 1
            message = json.loads(seen.body) if seen.body else {}
            if message.get("method") == "tools/call":
                self.broken = True
                event = b'data: {"jsonrpc":"2.0","method":"notifications/odd"}\n\n'
                head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                chunk = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(event), event)
                await wire.write(head + chunk)
                wire.writer.transport.abort()
                return
            if self.broken:
                await wire.reply(b"<html>bad gateway</html>", status=502)
            elif not seen.head.startswith("POST"):
                await wire.reply(b"", extra="content-type: text/event-stream\r\n")
            elif texts := await upstream.take(seen.body):
                kind = "content-type: application/json\r\nmcp-session-id: s\r\n"
                await wire.reply(texts[-1].encode(), extra=kind)
            else:
                await wire.reply(b"", status=202)


async def test_a_server_that_breaks_in_the_middle_of_an_answer_leaves_the_gateway_idle(
    tmp_path: Path,
) -> None:
    failing = Failing()
    async with raw_http(failing.serve) as server:
        config = f'[servers.s]\nurl = "{server.url}"\nera = "handshake"\n'
        async with raw_gateway(tmp_path, config, keepalive=0.25) as gateway:
            gateway.discover()
            await gateway.listed("s")
            url = f"http://127.0.0.1:{gateway.port}/mcp"
            clients = [await OldClient.open(url) for _ in range(10)]
            for client in clients:
                assert (await client.call("s__echo"))["result"]["isError"]
            standing = await clients[0].listen()
            await standing.comment()
            asked, used, began = failing.requests, time.process_time(), time.monotonic()
            for _ in range(8):
                await standing.comment()
            share = (time.process_time() - used) / (time.monotonic() - began)
            assert share < 0.5
            assert failing.requests - asked < 30
            standing.drop()


async def test_a_silent_stream_of_any_kind_shows_signs_of_life_that_no_proxy_holds_back(
    tmp_path: Path,
) -> None:
    assert FaceSettings(info={}).keepalive <= 15
    upstream = Moody(era=HANDSHAKE)
    async with house(tmp_path, upstream, keepalive=0.05) as gateway:
        client = await OldClient.open(f"http://127.0.0.1:{gateway.port}/mcp")
        standing = await client.listen()
        upstream.speaks.clear()
        _, call = await client.begin("s__echo")
        await call.head()
        for stream in (standing, call):
            assert stream.headers["content-type"] == "text/event-stream"
            assert stream.headers["x-accel-buffering"] == "no"
            assert "content-encoding" not in stream.headers
            for _ in range(3):
                await stream.comment()
        upstream.speaks.set()
        assert "result" in (await call.rest())[-1]
        standing.drop()
