"""The streams of the handshake era against a raw peer: coming back, batches, restarts."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from tests.support.cut import CuttingProxy
from tests.support.fake_gateway import FakeGateway, done, talk
from tests.support.http_peer import ENVELOPE, NEW, HttpPeer, request
from tests.support.mcp_faces import SETTINGS, piped, serving
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Notice, NoticeKind, Question, Result
from thoughtgate.core.errors import NotAsked
from thoughtgate.wire.sse import Event, EventParser

ELICIT = Question(method="elicitation/create", params={"message": "who?", "requestedSchema": {}})
Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Stream:
    """One event stream, read event by event."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._parser = EventParser(cap=2**26)
        self._events: list[Event] = []

    @classmethod
    async def open(
        cls, peer: HttpPeer, body: object, headers: dict[str, str], method: str = "POST"
    ) -> "Stream":
        reader, writer = await peer.open()
        data = b"" if body is None else json.dumps(body).encode()
        writer.write(peer.head(method, "/mcp", len(data), headers) + data)
        return cls(reader, writer)

    async def head(self) -> None:
        await within(self.reader.readuntil(b"\r\n\r\n"))

    async def event(self) -> Event:
        while not self._events:
            size = int(await within(self.reader.readline()), 16)
            chunk = await within(self.reader.readexactly(size + 2))
            self._events += self._parser.feed(chunk[:-2])
        return self._events.pop(0)


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway().add("echo").add("talk", talk)


@pytest.fixture
async def peer(gateway: FakeGateway) -> AsyncIterator[HttpPeer]:
    async with serving(gateway) as url:
        yield HttpPeer(url)


async def hello(
    peer: HttpPeer, version: str = "2025-11-25", **capabilities: object
) -> dict[str, str]:
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {}}
    got = await peer.post(request("initialize", params))
    return {"mcp-session-id": got.headers["mcp-session-id"]}


def call(name: str, id_: object = 1, **meta: object) -> dict[str, Any]:
    return request("tools/call", {"name": name, "_meta": meta}, id_)


class Gate:
    """A tool that tells progress, waits, and answers."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.ended = False

    async def __call__(self, call: Call) -> Result:
        await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params={"progress": 1}))
        await self.open.wait()
        await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params={"progress": 2}))
        self.ended = True
        return done("the answer")


async def test_a_client_that_lost_its_stream_comes_back_for_the_answer(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    gate = Gate()
    gateway.add("gate", gate)
    session = await hello(peer)
    first = await Stream.open(peer, call("gate", 7, progressToken="t"), session)
    await first.head()
    primed, progress = await first.event(), await first.event()
    assert (primed.data, primed.retry) == (b"", 1000)
    assert primed.id is not None
    assert progress.id is not None
    first.writer.transport.abort()
    back = {**session, "last-event-id": progress.id}
    second = await Stream.open(peer, None, back, "GET")
    await second.head()
    gate.open.set()
    later, answer = json.loads((await second.event()).data), json.loads((await second.event()).data)
    assert later["params"] == {"progressToken": "t", "progress": 2}
    assert answer["id"] == 7
    assert answer["result"]["content"][0]["text"] == "the answer"
    assert (await within(second.reader.read())).endswith(b"0\r\n\r\n")
    second.writer.close()
    again = await peer.send("GET", headers={**session, "last-event-id": primed.id})
    texts = [event["method"] if "method" in event else event["id"] for event in again.messages]
    assert texts == ["notifications/progress", "notifications/progress", 7]


async def test_what_a_client_lost_while_it_was_away_is_told_when_it_is_back(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    gate = Gate()
    gateway.add("gate", gate)
    session = await hello(peer)
    first = await Stream.open(peer, call("gate", progressToken="t"), session)
    await first.head()
    primed = await first.event()
    first.writer.transport.abort()
    gate.open.set()
    await until(lambda: gate.ended)
    assert primed.id is not None
    got = await peer.send("GET", headers={**session, "last-event-id": primed.id})
    assert [message.get("id") for message in got.messages] == [None, None, 1]


async def test_a_slow_call_begins_its_stream_before_anything_is_lost(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    opened = asyncio.Event()

    async def wait(call: Call) -> Result:
        await opened.wait()
        return done()

    gateway.add("wait", wait)
    stream = await Stream.open(peer, call("wait"), await hello(peer))
    await stream.head()
    assert (await stream.event()).data == b""
    opened.set()
    assert json.loads((await stream.event()).data)["id"] == 1
    stream.writer.close()


async def test_a_stream_that_is_not_there_any_more_is_refused_or_begun_anew(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    session, other = await hello(peer), await hello(peer)
    stream = await Stream.open(peer, call("talk", progressToken=1), session)
    await stream.head()
    event = await stream.event()
    assert event.id is not None
    stream.writer.close()
    for headers in (
        {**other, "last-event-id": event.id},
        {**session, "last-event-id": "nobody.1"},
        {**session, "last-event-id": "x" * 1000},
    ):
        got = await peer.send("GET", headers=headers)
        assert (got.status, got.error["code"]) == (400, -32600)


async def test_the_session_s_own_stream_goes_on_where_it_was_lost(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    session = await hello(peer)
    first = await Stream.open(peer, None, session, "GET")
    await first.head()
    gateway.add("late")
    told = await first.event()
    first.writer.close()
    assert told.id is not None
    name, _, number = told.id.rpartition(".")
    back = {**session, "last-event-id": f"{name}.{int(number) - 1}"}
    second = await Stream.open(peer, None, back, "GET")
    await second.head()
    assert await second.event() == told
    gateway.add("later")
    assert (await second.event()).data == told.data
    second.writer.close()
    lost = {**session, "last-event-id": "session~nobody.3"}  # such as of before a restart
    third = await Stream.open(peer, None, lost, "GET")
    await third.head()
    gateway.add("latest")
    assert (await third.event()).data == told.data
    third.writer.close()


async def test_older_clients_get_no_event_without_data(peer: HttpPeer) -> None:
    got = await peer.post(call("talk", progressToken=1), await hello(peer, "2025-06-18"))
    assert [event.get("method", "answer") for event in got.messages] == [
        *("notifications/progress", "notifications/message"),
        "answer",
    ]


async def test_an_ended_session_ends_the_streams_that_were_come_back_for(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    gateway.add("gate", Gate())
    session = await hello(peer)
    first = await Stream.open(peer, call("gate", progressToken="t"), session)
    await first.head()
    primed = await first.event()
    assert primed.id is not None
    second = await Stream.open(peer, None, {**session, "last-event-id": primed.id}, "GET")
    await second.head()
    await second.event()
    await peer.send("DELETE", headers=session)
    assert (await within(second.reader.read())).endswith(b"0\r\n\r\n")
    second.writer.close()
    first.writer.close()


async def test_an_answer_finds_its_question_and_stray_ones_are_taken(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    async def ask(call: Call) -> Result:
        answer = await call.listener.ask(ELICIT)
        return Result(raw=b'{"content":[],"answer":%b}' % answer)

    gateway.add("ask", ask)
    session, other = await hello(peer, elicitation={}), await hello(peer, elicitation={})
    stream = await Stream.open(peer, call("ask"), session)
    await stream.head()
    await stream.event()
    question = json.loads((await stream.event()).data)
    assert question["method"] == "elicitation/create"
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "n": 10**30}}
    for headers, body in (
        (other, {**answer, "result": {"action": "decline"}}),
        (session, {**answer, "id": 1}),
        (session, answer),
        (session, answer),
    ):
        assert (await peer.post(body, headers)).status == 202
    reply = json.loads((await stream.event()).data)
    assert reply["result"]["answer"] == {"action": "accept", "n": 10**30}
    stream.writer.close()


async def test_a_client_that_takes_no_stream_is_not_asked(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    async def ask(call: Call) -> Result:
        with pytest.raises(NotAsked):
            await call.listener.ask(ELICIT)
        return done()

    gateway.add("ask", ask)
    session = await hello(peer, elicitation={})
    got = await peer.post(call("ask"), {**session, "accept": "application/json"})
    assert got.json["id"] == 1


async def test_a_session_is_known_after_a_restart_with_the_same_key(gateway: FakeGateway) -> None:
    settings = replace(SETTINGS, seal_key=b"k" * 32)
    async with serving(gateway, settings) as url:
        session = await hello(HttpPeer(url), roots={})
        ended = await hello(HttpPeer(url))
        await HttpPeer(url).send("DELETE", headers=ended)
        assert (await HttpPeer(url).post(call("echo"), ended)).status == 404
    async with serving(gateway, settings) as url:
        assert (await HttpPeer(url).post(call("echo"), session)).status == 200
        assert gateway.calls[-1].session.capabilities == {"roots": {}}
        await HttpPeer(url).send("DELETE", headers=session)
        assert (await HttpPeer(url).post(call("echo"), session)).status == 404
    async with serving(gateway, SETTINGS) as url:
        assert (await HttpPeer(url).post(call("echo"), session)).status == 404


NOTE = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
PING = request("ping", {}, "p")


async def test_a_batch_is_answered_as_one_array(peer: HttpPeer, gateway: FakeGateway) -> None:
    session = await hello(peer, "2025-03-26")
    got = await peer.post([PING, NOTE, call("echo", 2), call("nobody", 3), {"id": 4}], session)
    assert got.headers["content-type"] == "application/json"
    outcomes = [(one["id"], one.get("error", {}).get("code", 0)) for one in got.json]
    assert outcomes == [("p", 0), (2, 0), (3, -32602), (4, -32600)]
    assert [told[1] for told in gateway.told] == ["notifications/roots/list_changed"]
    assert (await peer.post([NOTE, NOTE], session)).status == 202


async def test_a_batch_with_notifications_is_answered_on_one_stream(peer: HttpPeer) -> None:
    session = await hello(peer, "2025-03-26")
    got = await peer.post([call("talk", 1, progressToken="t"), PING], session)
    assert got.headers["content-type"] == "text/event-stream"
    assert [message.get("id") for message in got.messages] == [None, None, 1, "p"]


@pytest.mark.parametrize(
    "batch",
    [
        [],
        [PING] * 2,
        [PING] * 101,
        [PING, request("initialize", {}, 2)],
    ],
)
async def test_a_batch_that_breaks_the_rules_is_refused_whole(
    peer: HttpPeer, gateway: FakeGateway, batch: list[Any]
) -> None:
    session = await hello(peer, "2025-03-26")
    got = await peer.post([*batch, call("echo", 9)] if batch else batch, session)
    assert (got.status, got.error["code"]) == (400, -32600)
    assert gateway.calls == []


async def test_other_versions_have_no_batches(peer: HttpPeer) -> None:
    for version in ("2024-11-05", "2025-06-18", "2025-11-25"):
        got = await peer.post([PING], await hello(peer, version))
        assert (got.status, got.error["code"]) == (400, -32600), version
    assert (await peer.post([PING], {"mcp-protocol-version": NEW})).status == 400
    assert (await peer.post([PING])).status == 400


async def test_batches_travel_over_a_pipe(gateway: FakeGateway) -> None:
    async with piped(gateway) as pipe:
        assert await say(pipe, [PING]) == {"id": None, "code": -32600}
        params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}}
        await say(pipe, request("initialize", params, 0))
        got = await say(pipe, [PING, call("echo", 2), NOTE])
        assert [one["id"] for one in got] == ["p", 2]
        assert await say(pipe, [PING] * 2) == {"id": None, "code": -32600}


async def test_a_batch_over_a_pipe_has_the_bounds_and_ids_of_single_requests(
    gateway: FakeGateway,
) -> None:
    gate = Gate()
    gateway.add("gate", gate)
    async with piped(gateway, replace(SETTINGS, max_running=3)) as pipe:
        params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}}
        await say(pipe, request("initialize", params, 0))
        pipe[1].write(json.dumps(call("gate", 1)).encode() + b"\n")
        await until(lambda: gateway.calls)
        got = await say(pipe, [call("echo", 1), PING])
        assert [(one["id"], "error" in one) for one in got] == [(1, True), ("p", False)]
        many = [request("ping", {}, number) for number in range(2, 5)]
        assert await say(pipe, many) == {"id": None, "code": -32603}
        cancel = {"method": "notifications/cancelled", "params": {"requestId": 9}}
        pipe[1].write(json.dumps([call("gate", 9), PING]).encode() + b"\n")
        await until(lambda: len(gateway.calls) == 2)
        assert await say(pipe, {"jsonrpc": "2.0", **cancel}) == [PONG]
        gate.open.set()
        assert json.loads(await within(pipe[0].readline()))["id"] == 1


PONG = {"jsonrpc": "2.0", "id": "p", "result": {}}


async def say(pipe: Pipe, message: object) -> Any:
    reader, writer = pipe
    writer.write(json.dumps(message).encode() + b"\n")
    got = json.loads(await within(reader.readline()))
    if isinstance(got, dict) and "error" in got:
        return {"id": got["id"], "code": got["error"]["code"]}
    return got


@pytest.mark.parametrize(
    ("method", "member", "value"),
    [("prompts/get", "name", "greet"), ("resources/read", "uri", "test://a b/å?x=1")],
)
async def test_named_headers_of_every_method_must_equal_the_body(
    peer: HttpPeer, method: str, member: str, value: str
) -> None:
    encoded = "=?base64?dGVzdDovL2EgYi/DpT94PTE=?=" if member == "uri" else value
    body = request(method, {member: value, "_meta": ENVELOPE})
    for name, code in ((encoded, -32602), ("other", -32020), ("", -32020)):
        headers = {"mcp-protocol-version": NEW, "mcp-method": method}
        got = await peer.post(body, {**headers, "mcp-name": name} if name else headers)
        assert (got.status, got.error["code"]) == (400, code), name


async def test_a_read_of_either_era_says_of_caching_what_the_era_has(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    async def read(call: Call) -> Result:
        return Result(
            raw=b'{"contents":[],"ttlMs":5,"cacheScope":"public","resultType":"complete"}'
        )

    async def plain(call: Call) -> Result:
        return Result(raw=b'{"contents":[]}')

    gateway.offer("uri", "test:new", read).offer("uri", "test:old", plain)
    for uri, ttl, scope in (("test:new", 5, "public"), ("test:old", 0, "private")):
        headers = {"mcp-name": uri}
        new = (await peer.ask("resources/read", {"uri": uri}, headers=headers)).json["result"]
        assert (new["ttlMs"], new["cacheScope"], new["resultType"]) == (ttl, scope, "complete")
        body = request("resources/read", {"uri": uri})
        old = (await peer.post(body, await hello(peer))).json["result"]
        assert old == {"contents": []}


async def test_the_sdk_s_client_gets_its_answer_although_the_connection_was_cut(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.surface.tapes.RETRY_MS", 20)
    gate, seen = Gate(), asyncio.Event()
    gateway.add("gate", gate)

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.set()

    async with serving(gateway) as url:
        with CuttingProxy(HttpPeer(url).port) as proxy:
            async with Client(f"http://127.0.0.1:{proxy.port}/mcp", mode="legacy") as client:
                asked = asyncio.create_task(client.call_tool("gate", {}, progress_callback=note))
                await within(seen.wait())
                proxy.cut()
                gate.open.set()
                result = await within(asked)
                assert isinstance(result.content[0], TextContent)
                assert result.content[0].text == "the answer"
