"""A native gRPC server behind the gateway's upstreams: calls, lists, changes, ends."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.native_peer import (
    STRICT,
    NativePeer,
    grpc_server,
    progress,
    result,
    serving,
)
from tests.support.upstreams import Heard, Rig, rig
from tests.support.waiting import until, within
from thoughtgate.core import errors
from thoughtgate.core.errors import UpstreamError, UpstreamGarbled
from thoughtgate.core.servers import UpstreamState
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb


@pytest.fixture
async def peer() -> NativePeer:
    return NativePeer()


@pytest.fixture
async def made(peer: NativePeer) -> AsyncIterator[Rig]:
    async with serving(peer) as port, rig(grpc_server(f"grpc://127.0.0.1:{port}")) as one:
        yield one


async def failed(rig: Rig, name: str, arguments: Any = None, **fields: Any) -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        await within(rig.send(name, arguments, **fields))
    return caught.value


async def scripted(rig: Rig, peer: NativePeer, *events: Any, **fields: Any) -> Any:
    peer.scripts.append(list(events))
    return await within(rig.send("script", **fields))


async def test_the_peer_is_known_by_its_own_words(made: Rig) -> None:
    listing = await within(made.upstreams.discover("peer"))
    assert listing.version == "thoughtgate.tools.v1"
    assert listing.server_info == {"name": "peer", "version": "7"}
    assert made.statuses[-1].state is UpstreamState.READY


async def test_a_tool_is_listed_with_everything_that_is_said_of_it(
    peer: NativePeer, made: Rig
) -> None:
    tool = pb.Tool(
        name="a",
        title="A",
        description="does a",
        input_schema_json=STRICT,
        output_schema_json=b"true",
        meta_json=b'{"thoughtgate/idempotency":"key"}',
    )
    tool.hints.read_only, tool.hints.open_world = True, False
    peer.pages = [pb.ListToolsResponse(tools=[tool], revision="r0")]
    listing = await within(made.upstreams.discover("peer"))
    assert listing.tools == (
        {
            "name": "a",
            "title": "A",
            "description": "does a",
            "inputSchema": json.loads(STRICT),
            "outputSchema": True,
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
            "_meta": {"thoughtgate/idempotency": "key"},
        },
    )


async def test_a_schema_that_is_not_json_costs_that_tool_only(peer: NativePeer, made: Rig) -> None:
    tools = [pb.Tool(name="bad", input_schema_json=b'{"a":1,"a":2}'), peer.tool("echo")]
    peer.pages = [pb.ListToolsResponse(tools=tools, revision="r0")]
    listing = await within(made.upstreams.discover("peer"))
    assert [tool["inputSchema"] for tool in listing.tools] == ["not JSON", {"type": "object"}]


async def test_a_list_that_changes_while_it_is_read_is_read_again(
    peer: NativePeer, made: Rig
) -> None:
    one, other = peer.tool("echo"), peer.tool("sum")
    peer.pages = [
        pb.ListToolsResponse(tools=[one], next_page_token="1", revision="a"),
        pb.ListToolsResponse(tools=[other], revision="b"),
        pb.ListToolsResponse(tools=[other], revision="b"),
    ]
    listing = await within(made.upstreams.discover("peer"))
    assert [tool["name"] for tool in listing.tools] == ["sum"]


async def test_a_list_that_never_holds_still_is_given_up(peer: NativePeer, made: Rig) -> None:
    pages = range(10)
    peer.pages = [
        pb.ListToolsResponse(next_page_token="1" if n % 2 == 0 else "", revision=str(n))
        for n in pages
    ]
    with pytest.raises(errors.UpstreamUnreachable, match="changes faster"):
        await within(made.upstreams.discover("peer"))


async def test_pages_that_go_in_circles_end_with_a_warning(peer: NativePeer, made: Rig) -> None:
    peer.pages = [
        pb.ListToolsResponse(tools=[peer.tool("echo")], next_page_token="1", revision="a")
        for _ in range(10)
    ]
    listing = await within(made.upstreams.discover("peer"))
    assert "repeats a cursor" in listing.warnings[0]


async def test_content_and_meta_arrive_as_they_were_sent(peer: NativePeer, made: Rig) -> None:
    exact = b'[{"type": "text", "text": "\\u65e5"}]'
    event = result(b"123456789012345678901234567890", content_json=exact, meta_json=b'{"m": 1.50}')
    reply = await scripted(made, peer, event)
    assert reply.raw == (
        b'{"content":' + exact + b',"structuredContent":123456789012345678901234567890'
        b',"_meta":{"m": 1.50}}'
    )


async def test_no_structured_content_is_not_the_same_as_null(peer: NativePeer, made: Rig) -> None:
    nothing = await scripted(made, peer, pb.CallToolResponse(result=pb.CallResult()))
    assert json.loads(nothing.raw) == {"content": []}
    null = await scripted(made, peer, result(b"null"))
    assert json.loads(null.raw) == {"content": [], "structuredContent": None}


async def test_a_tool_that_failed_says_so_in_its_result(peer: NativePeer, made: Rig) -> None:
    reply = await scripted(made, peer, result(b"{}", is_error=True))
    assert reply.is_error
    assert json.loads(reply.raw)["isError"] is True


async def test_progress_that_is_no_number_is_dropped_and_whole_numbers_stay_whole(
    peer: NativePeer, made: Rig
) -> None:
    heard = Heard()
    events = (progress(float("nan")), progress(1, total=float("inf")), progress(2), progress(2.5))
    await scripted(made, peer, *events, result({}), listener=heard, wants_progress=True)
    assert heard.params == [{"progress": 2}, {"progress": 2.5}]
    assert made.upstreams.counts("peer").noise == 2


GARBLED: list[tuple[list[Any], str]] = [
    ([], "without a result"),
    ([progress(1)], "without a result"),
    ([result({}), result({})], "went on after"),
    ([result({}), progress(1)], "went on after"),
    ([result(b"{")], "structured_content_json is not valid JSON"),
    ([result(b'{"a":1,"a":2}')], "duplicate key"),
    ([result(b"NaN")], "not valid JSON"),
    ([result(b"1e999")], "not valid JSON"),
    ([result(b'"\xff"')], "not valid JSON"),
    ([result(b'"\\ud800"')], "not valid JSON"),
    ([result(b"[" * 99 + b"]" * 99)], "nested deeper"),
    ([result({}, content_json=b"{}")], "content_json is not an array"),
    ([result({}, meta_json=b"[]")], "meta_json is not an object"),
]


@pytest.mark.parametrize(
    ("events", "words"), GARBLED, ids=lambda one: one if isinstance(one, str) else ""
)
async def test_events_that_break_the_protocol_fail_that_call(
    events: list[Any], words: str, peer: NativePeer, made: Rig
) -> None:
    with pytest.raises(UpstreamGarbled, match=words):
        await scripted(made, peer, *events)
    assert await made.call("echo", {"still": "there"}) == {"still": "there"}


async def test_an_event_that_is_not_known_is_passed_over(peer: NativePeer, made: Rig) -> None:
    reply = await scripted(made, peer, pb.CallToolResponse(), result({"a": 1}))
    assert json.loads(reply.raw)["structuredContent"] == {"a": 1}


async def test_a_status_is_told_with_its_details(made: Rig) -> None:
    wanted = {"status": "INVALID_ARGUMENT", "reason": "INVALID_ARGUMENTS"}
    error = await failed(made, "fail", wanted)
    assert isinstance(error, errors.UpstreamRefused)
    assert error.message == "server peer: it does not take the arguments: /a must be odd"
    assert error.data["reason"] == "INVALID_ARGUMENTS"


async def test_one_call_that_is_not_allowed_leaves_the_server_ready(made: Rig) -> None:
    error = await failed(made, "fail", {"status": "PERMISSION_DENIED", "text": "s3cret"})
    assert isinstance(error, errors.UpstreamRefused)
    assert "s3cret" not in error.message
    assert made.upstreams.statuses()[0].state is UpstreamState.READY


async def test_credentials_that_are_refused_are_a_matter_for_an_operator(made: Rig) -> None:
    error = await failed(made, "fail", {"status": "UNAUTHENTICATED"})
    assert isinstance(error, errors.UpstreamDenied)
    assert made.upstreams.statuses()[0].state is UpstreamState.NEEDS_AUTH


async def test_a_tool_that_is_gone_is_unknown_and_the_list_is_read_again(
    peer: NativePeer, made: Rig
) -> None:
    await within(made.upstreams.discover("peer"))
    listed = peer.listed
    error = await failed(made, "vanished")
    assert isinstance(error, errors.UpstreamReplied)
    assert error.rpc_code == -32602
    await until(lambda: peer.listed > listed)


async def test_a_call_is_named_so_that_a_server_can_tell_it_again(
    peer: NativePeer, made: Rig
) -> None:
    await made.call("echo", idempotency_key="key-1")
    await made.call("echo")
    assert [request.call_id for request in peer.calls] == ["key-1", "1"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("key-2", "key-2"),
        ("a\nb", "1"),
        ("é", "1"),
        (" x", "1"),
        ("", "1"),
        (7, "1"),
        ("x" * 256, "1"),
    ],
)
async def test_a_client_s_key_names_its_call_where_it_can(
    peer: NativePeer, made: Rig, given: Any, name: str
) -> None:
    await made.call("echo", meta={"thoughtgate/idempotencyKey": given})
    assert [request.call_id for request in peer.calls] == [name]


async def test_a_server_knows_how_long_it_has(peer: NativePeer, made: Rig) -> None:
    await made.call("echo", timeout=4.0)
    left = peer.deadlines[0]
    assert left is not None
    assert 0 < left < 4.0


async def test_arguments_that_a_server_does_not_take_are_not_sent(
    peer: NativePeer, made: Rig
) -> None:
    peer.info.max_arguments_bytes = 10
    error = await failed(made, "echo", {"text": "x" * 100})
    assert isinstance(error, errors.UpstreamRefused)
    assert peer.calls == []


async def test_a_server_s_own_limit_on_requests_is_told(made: Rig) -> None:
    error = await failed(made, "echo", {"text": "x" * 4_200_000})
    assert isinstance(error, errors.UpstreamRefused)
    assert "4194304 bytes" in error.message


async def test_answers_above_our_limit_fail_that_call_and_large_ones_below_it_arrive() -> None:
    peer = NativePeer()
    async with (
        serving(peer) as port,
        rig(grpc_server(f"grpc://127.0.0.1:{port}"), max_result=6_000_000) as made,
    ):
        large = await scripted(made, peer, result(json.dumps("x" * 5_000_000).encode()))
        assert len(large.raw) > 5_000_000
        with pytest.raises(UpstreamGarbled, match="6000000 bytes"):
            await scripted(made, peer, result(json.dumps("x" * 6_000_000).encode()))
        assert await made.call("echo") == {}


async def test_trailers_above_the_limit_fail_that_call(made: Rig) -> None:
    error = await failed(made, "huge")
    assert isinstance(error, UpstreamGarbled)
    assert await made.call("echo") == {}
