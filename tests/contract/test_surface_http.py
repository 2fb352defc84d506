"""The MCP face over HTTP against a raw peer: hostile input, limits, headers, sessions."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.support.fake_gateway import FakeGateway, done, talk
from tests.support.http_peer import NEW, HttpPeer, read_reply, request
from tests.support.mcp_faces import SETTINGS, serving
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Notice, NoticeKind, Principal, Result
from thoughtgate.surface.http_io import Headers
from thoughtgate.surface.http_protocol import TimedHttpProtocol

ROUTES = ["/", "/mcp", "/mcp/other", "/healthz", "/ui", "/v1/models", "/metrics", "/nowhere"]
LISTING = {"mcp-protocol-version": NEW, "mcp-method": "tools/list"}


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway().add("echo").add("talk", talk)


@pytest.fixture
async def peer(gateway: FakeGateway) -> AsyncIterator[HttpPeer]:
    async with serving(gateway, replace(SETTINGS, max_body=100_000, body_timeout=0.2)) as url:
        yield HttpPeer(url)


@pytest.mark.parametrize("route", ROUTES)
async def test_a_foreign_host_is_refused_on_every_route(peer: HttpPeer, route: str) -> None:
    for host in ("evil.example:8000", "evil.example", "127.0.0.1.evil.example", "[::1].evil", ""):
        for method in ("GET", "POST"):
            got = await peer.send(method, route, headers={"host": host})
            assert (got.status, got.error["code"]) == (421, -32600), host


@pytest.mark.parametrize("route", ROUTES)
async def test_a_foreign_origin_is_refused_on_every_route(peer: HttpPeer, route: str) -> None:
    for origin in ("https://evil.example", "null", "http://localhost.evil.example", "http://[::1"):
        got = await peer.send("POST", route, headers={"origin": origin})
        assert (got.status, got.error["code"]) == (403, -32600), origin


async def test_a_local_origin_may_call(peer: HttpPeer) -> None:
    origin = {"origin": "http://localhost:6274", "host": "LOCALHOST:1"}
    assert (await peer.ask("tools/list", {}, headers=origin)).status == 200


async def test_two_hosts_are_refused(peer: HttpPeer) -> None:
    hosts = [("host", "evil.example"), ("host", "127.0.0.1")]
    assert (await peer.send("GET", "/healthz", headers=hosts)).status == 400


async def test_the_health_route_answers_and_others_do_not_exist(peer: HttpPeer) -> None:
    assert (await peer.send("GET", "/healthz")).json == {"status": "ok"}
    assert (await peer.send("POST", "/healthz")).status == 405
    for path in ("/", "/mcpx", "/mcp/nobody", "/mcp/other/deeper", "/x/mcp"):
        assert (await peer.send("POST", path)).status == 404


async def test_a_body_that_is_too_large_is_refused_before_it_is_parsed(peer: HttpPeer) -> None:
    got = await peer.send("POST", body=b"[", headers={"content-length": "100001"})
    assert got.status == 413
    reader, writer = await peer.open()
    writer.write(peer.head("POST", "/mcp", None, {"transfer-encoding": "chunked"}))
    writer.write(b"1000\r\n" + b"[" * 4096 + b"\r\n" + b"18000\r\n" + b"[" * 98304 + b"\r\n")
    assert (await within(read_reply(reader))).status == 413
    writer.close()


async def test_a_body_that_does_not_arrive_is_not_waited_for(peer: HttpPeer) -> None:
    reader, writer = await peer.open()
    writer.write(peer.head("POST", "/mcp", 100, {}) + b'{"json')
    assert (await within(read_reply(reader))).status == 408
    writer.close()


async def test_a_head_that_does_not_arrive_closes_the_connection(
    peer: HttpPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedHttpProtocol, "head_timeout", 0.1)
    for start in (b"", b"POST /mcp HTT", b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nx: "):
        reader, writer = await peer.open()
        writer.write(start)
        assert await within(reader.read()) == b""
        writer.close()
    reader, writer = await peer.open()
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    await within(reader.readuntil(b'{"status":"ok"}'))
    writer.write(b"GET /heal")
    assert await within(reader.read()) == b""
    writer.close()


PARSE, INVALID, PARAMS = -32700, -32600, -32602


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", PARSE),
        (b"\xff\xfe", PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":1,"na\\u006de":2}}', PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e999}}', PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}', PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%b}}' % (b"1" * 5000), PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b}' % (b"[" * 9999), PARSE),
        (b'{"jsonrpc":"2.0","id":1,"Method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method\\u0000":"ping"}', INVALID),
        ('{"jſonrpc":"2.0","id":1,"method":"ping"}'.encode(), INVALID),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', PARAMS),
    ],
)
async def test_what_two_parsers_could_read_differently_is_refused(
    peer: HttpPeer, body: bytes, code: int
) -> None:
    for headers in ({}, LISTING):
        got = await peer.post(body, headers)
        assert (got.status, got.error["code"]) == (400, code)


async def test_an_id_that_is_none_is_not_echoed(peer: HttpPeer) -> None:
    for id_ in ("x" * 50_000, {"a": 1}, [1], 1.5, True, None, 10**200):
        got = await peer.post(request("ping", {}, id_), LISTING)
        assert (got.status, got.json["id"]) == (400, None)
        assert len(got.body) < 300


async def test_ids_come_back_as_they_were(peer: HttpPeer) -> None:
    session = await peer.hello()
    for id_ in (0, -1, 2**63, "1", "", "å" * 256):
        got = await peer.post(request("ping", {}, id_), session)
        assert got.json == {"jsonrpc": "2.0", "id": id_, "result": {}}


async def test_two_clients_with_the_same_id_get_their_own_answers(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    gates = {"a": asyncio.Event(), "b": asyncio.Event()}

    async def wait(call: Call) -> Result:
        await gates[call.arguments["who"]].wait()
        return done(call.arguments["who"])

    gateway.add("wait", wait)
    first, second = await peer.hello(), await peer.hello()

    async def ask(session: dict[str, str], who: str) -> str:
        params = {"name": "wait", "arguments": {"who": who}}
        got = await peer.post(request("tools/call", params), session)
        return str(got.json["result"]["content"][0]["text"])

    asked = [asyncio.create_task(ask(first, "a")), asyncio.create_task(ask(second, "b"))]
    await until(lambda: len(gateway.calls) == 2)
    gates["b"].set()
    assert await within(asked[1]) == "b"
    gates["a"].set()
    assert await within(asked[0]) == "a"


async def test_an_id_in_flight_is_refused_and_the_first_call_goes_on(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> Result:
        await gate.wait()
        return done()

    gateway.add("wait", wait)
    session = await peer.hello()
    first = asyncio.create_task(peer.post(request("tools/call", {"name": "wait"}), session))
    await until(lambda: gateway.calls)
    second = await peer.post(request("ping", {}), session)
    assert second.error["code"] == -32600
    gate.set()
    assert "result" in (await within(first)).json


async def test_a_session_serves_its_principal_only(gateway: FakeGateway) -> None:
    def identify(headers: Headers) -> Principal:
        return Principal(id=headers.get(b"authorization", b"").decode())

    async with serving(gateway, replace(SETTINGS, identify=identify)) as url:
        peer = HttpPeer(url)
        session = await peer.hello()
        for method in ("GET", "DELETE"):
            got = await peer.send(method, headers={**session, "authorization": "b"})
            assert got.status == 404
        stolen = await peer.post(request("ping", {}), {**session, "authorization": "b"})
        assert stolen.status == 404
        assert (await peer.post(request("ping", {}), session)).status == 200


async def test_a_session_belongs_to_its_domain(peer: HttpPeer) -> None:
    session = await peer.hello("/mcp/other")
    assert (await peer.post(request("ping", {}), session)).status == 404
    assert (await peer.post(request("ping", {}), session, path="/mcp/other")).status == 200


async def test_a_deleted_session_is_gone_and_its_calls_are_given_up(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    cancelled = asyncio.Event()

    async def wait(call: Call) -> Result:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return done()

    gateway.add("wait", wait)
    session = await peer.hello()
    call = asyncio.create_task(peer.post(request("tools/call", {"name": "wait"}), session))
    await until(lambda: gateway.calls)
    assert (await peer.send("DELETE", headers=session)).status == 204
    await within(cancelled.wait())
    assert (await within(call)).messages == []
    assert (await peer.post(request("ping", {}), session)).status == 404


async def test_without_a_session_the_client_is_told_to_say_hello(peer: HttpPeer) -> None:
    assert (await peer.post(request("tools/list", {}))).status == 400
    assert (await peer.post(request("tools/list", {}), {"mcp-session-id": "guess"})).status == 404


async def test_a_lost_connection_cancels_only_in_the_stateless_era(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    ended: list[str] = []
    gate = asyncio.Event()

    async def wait(call: Call) -> Result:
        try:
            await gate.wait()
            ended.append(f"{call.session.era}: finished")
        except asyncio.CancelledError:
            ended.append(f"{call.session.era}: cancelled")
            raise
        return done()

    gateway.add("wait", wait)
    session = await peer.hello()
    old = asyncio.create_task(peer.post(request("tools/call", {"name": "wait"}), session))
    new = asyncio.create_task(peer.ask("tools/call", {"name": "wait"}))
    await until(lambda: len(gateway.calls) == 2)
    old.cancel()
    new.cancel()
    await until(lambda: ended)
    gate.set()
    await until(lambda: len(ended) == 2)
    assert ended == ["stateless: cancelled", "handshake: finished"]


async def test_a_reply_is_plain_json_unless_a_notification_comes_first(peer: HttpPeer) -> None:
    plain = await peer.ask("tools/call", {"name": "echo", "arguments": {}})
    assert plain.headers["content-type"] == "application/json"
    meta = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"}
    stream = await peer.ask("tools/call", {"name": "talk", "_meta": meta})
    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["x-accel-buffering"] == "no"
    methods = [message.get("method", "reply") for message in stream.messages]
    assert methods == ["notifications/progress", *["notifications/message"] * 2, "reply"]
    assert stream.messages[0]["params"]["progressToken"] == "t"


async def test_a_client_that_takes_no_stream_gets_its_result_alone(peer: HttpPeer) -> None:
    meta = {"progressToken": 1}
    accept = {"accept": "application/json"}
    got = await peer.ask("tools/call", {"name": "talk", "_meta": meta}, headers=accept)
    assert "result" in got.json
    assert (
        await peer.ask("subscriptions/listen", {"notifications": {}}, headers=accept)
    ).status == 406
    assert (await peer.ask("tools/list", {}, headers={"accept": "text/html"})).status == 406
    assert (await peer.ask("tools/list", {}, headers={"content-type": "text/plain"})).status == 415


async def test_a_silent_stream_is_kept_alive(gateway: FakeGateway) -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> Result:
        await gate.wait()
        return done()

    gateway.add("wait", wait)
    async with serving(gateway, replace(SETTINGS, keepalive=0.05)) as url:
        peer = HttpPeer(url)
        for headers in ({}, await peer.hello()):
            reader, writer = await peer.open()
            if headers:
                body = json.dumps(request("tools/call", {"name": "wait"})).encode()
            else:
                headers = {"mcp-protocol-version": NEW, "mcp-method": "subscriptions/listen"}
                body = json.dumps(_listen()).encode()
            writer.write(peer.head("POST", "/mcp", len(body), headers) + body)
            await within(reader.readuntil(b": keepalive"))
            await within(reader.readuntil(b": keepalive"))
            writer.close()
        gate.set()


async def test_a_subscriber_hears_only_what_it_asked_for(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    body = json.dumps(_listen(toolsListChanged=False, promptsListChanged=True)).encode()
    headers = {"mcp-protocol-version": NEW, "mcp-method": "subscriptions/listen"}
    reader, writer = await peer.open()
    writer.write(peer.head("POST", "/mcp", len(body), headers) + body)
    frame = await within(reader.readuntil(b"acknowledged" + b'"'))
    frame += await within(reader.readuntil(b"\n\n"))
    assert b'"notifications":{"promptsListChanged":true}' in frame
    gateway.add("late").offer("name", "later")
    frame = await within(reader.readuntil(b"list_changed"))
    assert b"tools" not in frame
    writer.close()


def _listen(**wanted: bool) -> dict[str, object]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return request("subscriptions/listen", {"notifications": wanted, "_meta": meta}, "sub")


async def test_a_newer_stream_of_a_session_ends_the_older_one(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    session = await peer.hello()
    older, older_writer = await peer.open()
    older_writer.write(peer.head("GET", "/mcp", None, session))
    await within(older.readuntil(b": keepalive"))
    newer, newer_writer = await peer.open()
    newer_writer.write(peer.head("GET", "/mcp", None, session))
    await within(newer.readuntil(b": keepalive"))
    assert b"list_changed" not in await within(older.read())
    gateway.add("late")
    await within(newer.readuntil(b"list_changed"))
    older_writer.close()
    newer_writer.close()


async def test_a_change_between_streams_is_told_by_the_next_one(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    session = await peer.hello()
    gateway.add("late")
    reader, writer = await peer.open()
    writer.write(peer.head("GET", "/mcp", None, session))
    await within(reader.readuntil(b"list_changed"))
    writer.close()


async def test_the_stateless_era_takes_nothing_but_post(peer: HttpPeer) -> None:
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        got = await peer.send(method, headers={"mcp-protocol-version": NEW})
        assert (got.status, got.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp-protocol-version": "2099-01-01"}, -32020),
        ({"mcp-protocol-version": ""}, -32020),
        ({"mcp-method": "tools/call"}, -32020),
        ({"mcp-method": ""}, -32020),
        ({"mcp-name": "other"}, -32020),
        ({"mcp-name": ""}, -32020),
        ({"mcp-name": "=?base64?!!?="}, -32020),
        ({"mcp-method": "tools/call  ", "mcp-name": "\t=?base64?ZWNobw==?= "}, 0),
    ],
)
async def test_headers_must_equal_the_body(
    peer: HttpPeer, headers: dict[str, str], code: int
) -> None:
    method = "tools/call" if any(name == "mcp-name" for name in headers) else "tools/list"
    params = {"name": "echo"} if method == "tools/call" else {}
    got = await peer.ask(method, params, headers=headers)
    assert got.status == (400 if code else 200)
    assert got.json.get("error", {}).get("code", 0) == code


async def test_an_unknown_version_names_the_versions_of_its_era(peer: HttpPeer) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    headers = {"mcp-protocol-version": "2099-01-01"}
    got = await peer.ask("server/discover", {"_meta": meta}, headers=headers)
    assert got.status == 400
    assert got.error["code"] == -32022
    assert got.error["data"] == {"supported": [NEW], "requested": "2099-01-01"}
    found = (await peer.ask("server/discover", {})).json["result"]
    assert found["supportedVersions"] == [NEW]
    assert found["cacheScope"] == "private"


async def test_an_envelope_is_needed(peer: HttpPeer) -> None:
    got = await peer.post(request("tools/list", {}), LISTING)
    assert (got.status, got.error["code"]) == (400, -32602)


async def test_methods_that_are_not_carried_do_not_exist(peer: HttpPeer) -> None:
    for method in (
        *("initialize", "ping", "logging/setLevel", "Tools/call", "acme/unknown"),
        *("resources/subscribe", "resources/unsubscribe", "roots/list"),
    ):
        got = await peer.ask(method, {})
        assert (got.status, got.error["code"]) == (404, -32601)
    session = await peer.hello()
    for method in ("sampling/createMessage", "server/discover", "acme/unknown"):
        got = await peer.post(request(method, {}), session)
        assert (got.status, got.error["code"]) == (200, -32601)


async def test_mirrored_arguments_must_equal_the_body(peer: HttpPeer, gateway: FakeGateway) -> None:
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
    gateway.add("far", inputSchema=schema)
    params = {"name": "far", "arguments": {"region": "eu"}}
    assert (await peer.ask("tools/call", params, headers={"mcp-param-region": "eu"})).status == 200
    for sent in ({"mcp-param-region": "us"}, {}):
        got = await peer.ask("tools/call", params, headers=sent)
        assert (got.status, got.error["code"]) == (400, -32020)
    assert len(gateway.calls) == 1


async def test_a_result_is_stamped_and_the_server_s_own_stamps_are_taken_off(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    theirs = {"io.modelcontextprotocol/serverInfo": {"name": "them"}, "k": 1.50}

    async def answer(call: Call) -> Result:
        return Result(raw=json.dumps({"content": [], "_meta": theirs, "n": 10**30}).encode())

    gateway.add("stamped", answer)
    new = (await peer.ask("tools/call", {"name": "stamped"})).json["result"]
    ours = {"io.modelcontextprotocol/serverInfo": SETTINGS.info}
    assert new == {
        "content": [],
        "_meta": {"k": 1.5, **ours},
        "n": 10**30,
        "resultType": "complete",
    }
    session = await peer.hello()
    old = await peer.post(request("tools/call", {"name": "stamped"}), session)
    assert old.json["result"] == {"content": [], "_meta": {"k": 1.5}, "n": 10**30}


async def test_the_parent_span_comes_from_the_body_before_the_header(
    peer: HttpPeer, gateway: FakeGateway
) -> None:
    header = {"traceparent": f"00-{1:032x}-{2:016x}-01", "tracestate": "a=b"}
    await peer.ask("tools/call", {"name": "echo"}, headers=header)
    body = {"traceparent": f"00-{3:032x}-{4:016x}-00"}
    await peer.ask("tools/call", {"name": "echo", "_meta": body}, headers=header)
    first, second = (call.trace for call in gateway.calls)
    assert first is not None
    assert second is not None
    assert (first.trace_id, first.span_id, first.state) == (1, 2, "a=b")
    assert (second.trace_id, second.sampled) == (3, False)
    assert all("traceparent" not in call.meta for call in gateway.calls)


async def test_notifications_and_replies_are_acknowledged_or_refused(peer: HttpPeer) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/anything"}
    reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
    session = await peer.hello()
    assert (await peer.post(note, session)).status == 202
    assert (await peer.post(reply, session)).status == 202
    assert (await peer.post(note, {"mcp-protocol-version": NEW})).status == 202
    assert (await peer.post(reply, {"mcp-protocol-version": NEW})).status == 400
    assert (await peer.post(note, {"mcp-protocol-version": "2099-01-01"})).error["code"] == -32022


async def test_a_slow_reader_holds_back_who_notifies(peer: HttpPeer, gateway: FakeGateway) -> None:
    sent = 0

    async def flood(call: Call) -> Result:
        nonlocal sent
        for _ in range(5000):
            params = {"progress": sent, "message": "x" * 10_000}
            await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params=params))
            sent += 1
        return done()

    gateway.add("flood", flood)
    session = await peer.hello()
    body = request("tools/call", {"name": "flood", "_meta": {"progressToken": 1}})
    data = json.dumps(body).encode()
    _, writer = await peer.open()
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
    writer.write(peer.head("POST", "/mcp", len(data), session) + data)
    counts = [0]

    def held_back() -> bool:
        counts.append(sent)
        return counts[-1] == counts[-2] > 0

    await until(held_back)
    assert sent < 5000
    writer.transport.abort()
