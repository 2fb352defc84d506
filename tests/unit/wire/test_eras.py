"""The two eras and what they share: what each side reads, and what it writes."""

import json
from typing import Any

import pytest

from thoughtgate.core.calls import Notice, NoticeKind
from thoughtgate.core.json import JsonObject
from thoughtgate.core.traces import SpanContext
from thoughtgate.wire import codes, handshake, methods, stateless
from thoughtgate.wire.ids import InFlight, Pending
from thoughtgate.wire.messages import BadMessage

CLIENT: JsonObject = {"name": "c", "version": "1"}
META = stateless.envelope_meta(CLIENT, {})


def headers(method: str, **more: str) -> dict[str, str]:
    return {"mcp-protocol-version": stateless.LATEST, "mcp-method": method, **more}


def test_a_hello_is_answered_with_the_version_it_offers_or_our_newest() -> None:
    for version in handshake.VERSIONS:
        said: JsonObject = {**handshake.hello_params(CLIENT, {"roots": {}})}
        said = {**said, "protocolVersion": version}
        assert handshake.read_hello(said) == handshake.Hello(
            version=version, client=CLIENT, capabilities={"roots": {}}
        )
    for version in ("2026-07-28", "1999-01-01", ""):
        said = {"protocolVersion": version, "clientInfo": CLIENT, "capabilities": {}}
        assert handshake.read_hello(said).version == "2025-11-25"


@pytest.mark.parametrize("missing", ["protocolVersion", "clientInfo", "capabilities"])
def test_a_hello_must_be_whole(missing: str) -> None:
    said = {**handshake.hello_params(CLIENT, {}), missing: None}
    with pytest.raises(BadMessage) as caught:
        handshake.read_hello(said)
    assert caught.value.rpc_code == codes.INVALID_PARAMS


@pytest.mark.parametrize("part", ["clientInfo", "capabilities"])
def test_a_hello_is_no_store_for_large_things(part: str) -> None:
    """Ten thousand sessions, each of which said four megabytes, would be kept for half an hour."""
    said = {"protocolVersion": handshake.LATEST, "clientInfo": {}, "capabilities": {}}
    handshake.read_hello({**said, part: {"x": "y" * (methods.MAX_SAID - 100)}})
    with pytest.raises(BadMessage):
        handshake.read_hello({**said, part: {"x": "y" * methods.MAX_SAID}})


def test_an_envelope_declares_no_large_things() -> None:
    meta = {
        stateless.VERSION_KEY: stateless.LATEST,
        stateless.CAPABILITIES_KEY: {"x": "y" * 70_000},
    }
    with pytest.raises(BadMessage):
        stateless.read_envelope("tools/list", {"_meta": meta})


def test_a_welcome_is_read_as_it_was_written() -> None:
    welcome = handshake.Welcome(
        version="2025-03-26", server_info=CLIENT, capabilities={"tools": {}}, instructions="do"
    )
    assert handshake.read_welcome(handshake.welcome_result(welcome)) == welcome


def test_a_server_that_chooses_a_foreign_version_is_refused() -> None:
    with pytest.raises(BadMessage):
        handshake.read_welcome(b'{"protocolVersion":"2026-07-28"}')
    lax = handshake.read_welcome(b'{"protocolVersion":"2024-11-05","serverInfo":7}')
    assert lax.server_info == {}


def test_a_discovery_is_read_as_it_was_written() -> None:
    found = stateless.Discovered(
        versions=stateless.VERSIONS, server_info=CLIENT, capabilities={}, instructions="do"
    )
    assert stateless.read_discovered(stateless.discover_result(found, 0)) == found
    with pytest.raises(BadMessage):
        stateless.read_discovered(b'{"supportedVersions":["2025-11-25"]}')


def test_our_own_requests_pass_our_own_checks() -> None:
    for name in ("plain", "ünïcode", " edge ", "=?base64?eA==?=", "line\nend", ""):
        params = methods.call_params(name, {}, META)
        sent = stateless.request_headers(methods.TOOLS_CALL, params)
        envelope = stateless.read_envelope(methods.TOOLS_CALL, params, sent)
        assert envelope.client == CLIENT
        assert all(value.isascii() and value.isprintable() for value in sent.values())


@pytest.mark.parametrize(
    ("method", "params", "sent", "code"),
    [
        ("m", {}, None, codes.INVALID_PARAMS),
        ("m", {"_meta": []}, None, codes.INVALID_PARAMS),
        ("m", {"_meta": {stateless.VERSION_KEY: "2026-07-28"}}, None, codes.INVALID_PARAMS),
        ("m", {"_meta": {**META, stateless.VERSION_KEY: 7}}, None, codes.INVALID_PARAMS),
        ("m", {"_meta": {**META, stateless.CLIENT_KEY: "x"}}, None, codes.INVALID_PARAMS),
        ("m", {"_meta": {**META, stateless.LOG_LEVEL_KEY: "loud"}}, None, codes.INVALID_PARAMS),
        ("m", {"_meta": {**META, stateless.LOG_LEVEL_KEY: []}}, None, codes.INVALID_PARAMS),
        ("m", {"_meta": {**META, stateless.VERSION_KEY: "x"}}, None, codes.UNSUPPORTED_VERSION),
        ("m", {"_meta": META}, {}, codes.HEADER_MISMATCH),
        ("m", {"_meta": META}, headers("n"), codes.HEADER_MISMATCH),
        ("m", {"_meta": {**META, stateless.VERSION_KEY: None}}, {}, codes.HEADER_MISMATCH),
        ("tools/call", {"_meta": META, "name": "x"}, headers("tools/call"), codes.HEADER_MISMATCH),
        (
            "resources/read",
            {"_meta": META, "uri": "a:b"},
            headers("resources/read", **{"mcp-name": "a:c"}),
            codes.HEADER_MISMATCH,
        ),
        (
            "tasks/get",
            {"_meta": META, "taskId": "7"},
            headers("tasks/get", **{"mcp-name": "8"}),
            codes.HEADER_MISMATCH,
        ),
    ],
)
def test_a_bad_envelope_is_refused(
    method: str, params: JsonObject, sent: dict[str, str] | None, code: int
) -> None:
    with pytest.raises(BadMessage) as caught:
        stateless.read_envelope(method, params, sent)
    assert caught.value.rpc_code == code


def test_a_method_of_an_extension_may_name_its_target_in_a_header_or_not() -> None:
    params: JsonObject = {"_meta": META, "taskId": "7"}
    for named in ({"mcp-name": "7"}, {}):
        envelope = stateless.read_envelope("tasks/get", params, headers("tasks/get", **named))
        assert envelope.client == CLIENT


def test_every_error_code_has_its_http_status() -> None:
    assert stateless.status_of(codes.METHOD_NOT_FOUND) == 404
    assert stateless.status_of(codes.HEADER_MISMATCH) == 400
    assert stateless.status_of(codes.INTERNAL_ERROR) == stateless.status_of(0) == 200


def test_a_list_result_holds_the_tools_as_they_were_written() -> None:
    tools = b'[{"x":1.10}]'
    old, new = (
        handshake.list_result(tools, "c"),
        stateless.list_result(tools, "c", 5, b'{"name":"us"}'),
    )
    assert tools in old
    assert tools in new
    assert json.loads(old) == {"tools": [{"x": 1.1}], "nextCursor": "c"}
    assert json.loads(new)["ttlMs"] == 5
    assert "nextCursor" not in json.loads(stateless.list_result(tools, None, 5, b"{}"))
    for raw in (old, new):
        assert methods.read_page(raw) == methods.Page(entries=({"x": 1.1},), cursor="c")


def test_a_page_without_a_list_is_refused_and_odd_entries_are_kept_out() -> None:
    with pytest.raises(BadMessage):
        methods.read_page(b'{"tools":{}}')
    assert methods.read_page(b'{"tools":[1,{"name":"a"}],"nextCursor":7}') == methods.Page(
        entries=({"name": "a"},), cursor=None
    )


def test_what_belongs_to_a_hop_stays_there() -> None:
    meta = {
        **META,
        "progressToken": "t",
        "traceparent": f"00-{1:032x}-{2:016x}-01",
        "tracestate": "a=b",
        "k": {"io.modelcontextprotocol/x": 1},
    }
    read = methods.read_meta({"_meta": meta})
    assert read.kept == {"k": {"io.modelcontextprotocol/x": 1}}
    assert read.progress_token == "t"
    assert read.trace == SpanContext(trace_id=1, span_id=2, sampled=True, state="a=b")
    ours = methods.hop_meta(read.kept, progress_token=7, trace=read.trace, idempotency_key="e1")
    assert ours == {
        "k": {"io.modelcontextprotocol/x": 1},
        "progressToken": 7,
        "traceparent": meta["traceparent"],
        "tracestate": "a=b",
        "thoughtgate/idempotencyKey": "e1",
    }
    assert methods.hop_meta({}, progress_token=None, trace=None, idempotency_key="") == {}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 1},
        {"name": "x", "arguments": None},
        {"name": "x", "arguments": []},
        {"name": "x", "_meta": 1},
        {"name": "x", "_meta": {"progressToken": 1.5}},
        {"name": "x", "_meta": {"progressToken": {}}},
    ],
)
def test_a_call_that_is_none_is_refused(params: JsonObject) -> None:
    with pytest.raises(BadMessage) as caught:
        methods.read_tool_call(params)
    assert caught.value.rpc_code == codes.INVALID_PARAMS


def test_absent_arguments_are_an_empty_object() -> None:
    call = methods.read_tool_call({"name": "x"})
    assert call.arguments == {}
    assert call.meta.kept == {}


def test_progress_finds_its_token_and_loses_it_on_the_way() -> None:
    notice = Notice(kind=NoticeKind.PROGRESS, params={"progress": 1, "x": None})
    frame = methods.encode_notice(notice, "t")
    assert frame is not None
    assert methods.read_progress(json.loads(frame)["params"]) == ("t", notice)
    assert methods.encode_notice(notice, None) is None


def test_levels_are_ordered() -> None:
    loud: dict[str, Any] = {"level": "error"}
    assert methods.loud_enough(loud, "error")
    assert methods.loud_enough(loud, "debug")
    assert not methods.loud_enough(loud, "critical")
    assert not methods.loud_enough(loud, None)
    assert methods.loud_enough({"level": "odd"}, "emergency")
    assert methods.read_level({"level": "notice"}) == "notice"
    with pytest.raises(BadMessage):
        methods.read_level({"level": "LOUD"})


def test_a_subscription_carries_its_id_in_every_frame() -> None:
    key = stateless.SUBSCRIPTION_KEY
    honoured = stateless.Filter(lists=frozenset({"tools"}), resources=("a:b",))
    frames = [
        stateless.acknowledged("s", honoured),
        stateless.subscribed("s", methods.TOOLS_CHANGED, {"_meta": {key: "theirs"}}),
    ]
    assert all(json.loads(frame)["params"]["_meta"] == {key: "s"} for frame in frames)
    told = json.loads(frames[0])["params"]["notifications"]
    assert told == {"toolsListChanged": True, "resourceSubscriptions": ["a:b"]}
    assert json.loads(stateless.listen_result(3))["_meta"] == {key: 3}
    assert "tools" in stateless.read_listen(stateless.listen_params({})).lists
    assert not stateless.read_listen({"notifications": {"toolsListChanged": 1}}).lists
    many = [str(number) for number in range(257)]
    for wrong in (None, {"resourceSubscriptions": "a:b"}, {"resourceSubscriptions": many}):
        with pytest.raises(BadMessage):
            stateless.read_listen({"notifications": wrong})


def test_what_one_era_says_of_caching_is_taken_off_or_put_on() -> None:
    raw = b'{"contents":[],"ttlMs":7,"resultType":"complete"}'
    assert handshake.finish_read(raw) == b'{"contents":[]}'
    assert handshake.finish_read(b'{"contents": []}') == b'{"contents": []}'
    told = json.loads(stateless.cached(raw, 0))
    assert (told["ttlMs"], told["cacheScope"]) == (7, "private")


def test_our_ids_are_never_used_twice_and_late_answers_find_nobody() -> None:
    pending: Pending[str] = Pending()
    first = pending.add("a")
    assert pending.get(first) == pending.get(str(first)) == "a"
    assert pending.pop(first) == "a"
    second = pending.add("b")
    assert second != first
    assert pending.pop(first) is None
    odd_ids: tuple[object, ...] = (None, 1.5, "x", [], str(10**30), True)
    assert all(pending.get(odd) is None for odd in odd_ids)
    assert pending.drain() == ["b"]
    assert len(pending) == 0


def test_ids_of_a_peer_keep_their_type() -> None:
    flight: InFlight[str] = InFlight()
    assert flight.add(1, "int")
    assert flight.add("1", "text")
    assert not flight.add(1, "again")
    assert (flight.get(1), flight.get("1"), flight.get(True)) == ("int", "text", None)
    assert flight.get({}) is None
    flight.discard(1)
    flight.discard(1)
    assert flight.values() == ["text"]
