"""What every link promises, held against the SDK's own server over both transports and eras.

And against a native gRPC server, which has no log messages and no errors of JSON-RPC.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.native_peer import TOOLS as NATIVE_TOOLS
from tests.support.native_peer import NativePeer, grpc_server, serving
from tests.support.sdk_server import TOOLS, sdk_over_http
from tests.support.sdk_sse import sdk_over_sse
from tests.support.upstreams import Heard, Rig, http_server, rig, stdio_server
from tests.support.waiting import until, within
from thoughtgate.core.calls import NoticeKind
from thoughtgate.core.errors import UpstreamReplied, UpstreamTimeout
from thoughtgate.core.servers import Era, Server
from thoughtgate.core.traces import SpanContext

pytestmark = pytest.mark.asyncio(loop_scope="module")
"""The peers start once for all tests of this module: importing the SDK takes a second."""

STDIO = "tests.support.sdk_server"


ERAS = (Era.HANDSHAKE, Era.STATELESS)
OLDEST = ("sse", Era.HANDSHAKE)
STREAMING = [*((transport, era) for transport in ("stdio", "http") for era in ERAS), OLDEST]
ALL = [*STREAMING, *(("json", era) for era in ERAS)]

GRPC = ("grpc", Era.STATELESS)


def by(cases: list[tuple[str, Era]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "peer", cases, indirect=True, ids=lambda case: f"{case[0]}-{case[1]}", scope="module"
    )


streaming = by([*STREAMING, GRPC])
"""A peer that answers in plain JSON has no stream for notifications, and none to close."""


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[*ALL, GRPC],
    ids=lambda case: f"{case[0]}-{case[1]}",
)
async def peer(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    transport, era = request.param
    if transport == "stdio":
        async with rig(stdio_server(STDIO, era=era)) as made:
            yield made
    elif transport == "grpc":
        async with (
            serving(NativePeer()) as port,
            rig(grpc_server(f"grpc://127.0.0.1:{port}")) as made,
        ):
            yield made
    elif transport == "sse":
        async with sdk_over_sse() as url, rig(http_server(url)) as made:
            yield made
    else:
        async with (
            sdk_over_http(json_response=transport == "json") as url,
            rig(http_server(url, era=era)) as made,
        ):
            yield made


async def test_discovery_follows_all_pages_and_says_who_answered(peer: Rig) -> None:
    listing = await within(peer.upstreams.discover("peer"), 10.0)
    wanted = NATIVE_TOOLS if listing.version == "thoughtgate.tools.v1" else TOOLS
    assert [tool["name"] for tool in listing.tools[: len(wanted)]] == list(wanted)
    assert listing.server_info["name"] == "peer"
    assert listing.instructions == "be kind"
    assert listing.warnings == ()
    assert peer.listings[-1] == listing


async def test_a_call_returns_the_structured_content_as_it_was_sent(peer: Rig) -> None:
    arguments: dict[str, Any] = {
        "n": 123456789012345678901234567890,
        "none": None,
        "text": "日本\u2028🎉",
        "x": [{}],
    }
    assert await peer.call("echo", arguments) == arguments


async def test_many_calls_at_once_each_get_their_own_answer(peer: Rig) -> None:
    await peer.call("echo")
    sent = [peer.call("echo", {"n": n}) for n in range(30)]
    assert await within(asyncio.gather(*sent)) == [{"n": n} for n in range(30)]


@streaming
async def test_progress_reaches_the_caller_in_order_and_before_the_result(peer: Rig) -> None:
    heard = Heard()
    await peer.call("progress", listener=heard, wants_progress=True)
    assert [params["progress"] for params in heard.params] == [0, 1, 2]
    assert heard.params[0] == {"progress": 0, "total": 3, "message": "step 0"}
    assert {notice.kind for notice in heard.notices} == {NoticeKind.PROGRESS}


async def test_no_progress_is_asked_for_unless_the_caller_wants_it(peer: Rig) -> None:
    heard = Heard()
    await peer.call("progress", listener=heard)
    seen = await peer.call("meta")
    assert heard.notices == []
    assert "progressToken" not in seen["meta"]


@by(STREAMING)
async def test_log_messages_of_the_wanted_level_reach_the_caller(peer: Rig) -> None:
    heard = Heard()
    await peer.call("log", listener=heard, log_level="warning")
    assert [params["level"] for params in heard.params] == ["warning", "error"]
    silent = Heard()
    await peer.call("log", listener=silent)
    assert silent.notices == []


@streaming
async def test_cancelling_a_call_cancels_it_at_the_server(peer: Rig) -> None:
    before = await peer.call("cancelled")
    sending = asyncio.ensure_future(peer.send("wait"))
    await counted(peer, waiting=1, cancelled=before["cancelled"])
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(sending)
    await counted(peer, waiting=0, cancelled=before["cancelled"] + 1)


@streaming
async def test_a_call_without_an_answer_times_out_and_is_cancelled_at_the_server(
    peer: Rig,
) -> None:
    before = await peer.call("cancelled")
    with pytest.raises(UpstreamTimeout) as caught:
        await within(peer.send("wait", timeout=0.3))
    assert "peer" in caught.value.message
    await counted(peer, waiting=0, cancelled=before["cancelled"] + 1)


@streaming
async def test_a_changed_list_of_tools_is_listed_again(peer: Rig) -> None:
    await within(peer.upstreams.discover("peer"), 10.0)
    await settled_watch(peer)
    extra = (await peer.call("change"))["extra"][-1]
    await until(lambda: extra in peer.names())


@by(ALL)
async def test_an_error_reply_is_relayed_as_it_is(peer: Rig) -> None:
    await peer.call("echo")
    with pytest.raises(UpstreamReplied) as caught:
        await within(peer.send("no_such_tool"))
    assert caught.value.rpc_code in {0, -32603}


async def test_meta_trace_and_key_travel_with_the_call(peer: Rig) -> None:
    trace = SpanContext(trace_id=0xABC, span_id=0xDEF, state="vendor=1")
    seen = await peer.call(
        "meta", trace=trace, meta={"mine/x": {"deep": [1]}}, idempotency_key="key-1"
    )
    meta, headers = seen["meta"], seen["headers"]
    assert meta["traceparent"] == f"00-{0xABC:032x}-{0xDEF:016x}-01"
    assert meta["tracestate"] == "vendor=1"
    assert meta["mine/x"] == {"deep": [1]}
    assert meta["thoughtgate/idempotencyKey"] == "key-1"
    if "mcp-protocol-version" in headers:  # one pipe for everything has none of their own
        assert headers["traceparent"] == meta["traceparent"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_an_era_that_is_not_known_is_probed(transport: str) -> None:
    async with sdk_over_http() as url:
        server: Server = stdio_server(STDIO) if transport == "stdio" else http_server(url)
        async with rig(server) as made:
            listing = await within(made.upstreams.discover("peer"), 10.0)
    assert listing.era is Era.STATELESS


async def counted(peer: Rig, **expected: int) -> None:
    """Return once the server counts what is expected."""
    seen: dict[str, int] = {}
    for _ in range(500):
        seen = await peer.call("cancelled")
        if seen == expected:
            return
    pytest.fail(f"{seen} is not {expected}")


async def settled_watch(peer: Rig) -> None:
    """Return once the server knows that we listen, so that no change goes unheard."""
    for _ in range(20):
        await peer.call("echo")
