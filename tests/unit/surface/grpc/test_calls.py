"""Calls over gRPC: what reaches the gateway, and what comes back, on real sockets."""

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, ResourceInfo
from google.rpc.status_pb2 import Status

from tests.support.fake_gateway import FakeGateway, done
from tests.support.grpc_gateway import Caller, grpc_serving
from tests.support.waiting import until, within
from thoughtgate.core.calls import LOCAL, Call, Notice, NoticeKind, Question, Result
from thoughtgate.core.errors import (
    GateError,
    NotAsked,
    Overloaded,
    Refused,
    StoreCorrupt,
    UpstreamLost,
    UpstreamReplied,
    UpstreamTimeout,
)
from thoughtgate.core.traces import SpanContext
from thoughtgate.surface.settings import FaceSettings

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def refused(caller: Caller, *call: Any, **options: Any) -> tuple[grpc.StatusCode, Status]:
    """Return how a call ends that has no result."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.events(*call, **options)
    details = dict(caught.value.trailing_metadata() or ())["grpc-status-details-bin"]
    assert isinstance(details, bytes)
    assert len(details) < 8_192
    return caught.value.code(), Status.FromString(details)


def info(status: Status) -> ErrorInfo:
    found = ErrorInfo()
    assert any(one.Unpack(found) for one in status.details if one.Is(found.DESCRIPTOR))
    assert found.domain == "thoughtgate.gateway.v1"
    return found


async def progressing(call: Call) -> Result:
    for params in ({"progress": 1, "total": 2, "message": "half"}, {"progress": "?"}, {}):
        await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params=params))
    await call.listener.notify(Notice(kind=NoticeKind.LOG, params={"level": "error", "data": 1}))
    await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params={"progress": 2**60}))
    return done("end", structured={"n": 2**70})


async def test_a_call_arrives_as_it_was_made() -> None:
    gateway = FakeGateway().add("echo")
    metadata = (("traceparent", TRACE), ("tracestate", "a=b"))
    async with grpc_serving(gateway) as caller:
        meta = b'{"thoughtgate/idempotencyKey":"k","progressToken":7}'
        await caller.events(
            "echo", b'{"n":1180591620717411303424}', domain="other", meta=meta, metadata=metadata
        )
    (call,) = gateway.calls
    assert (call.domain, call.arguments, call.principal) == ("other", {"n": 2**70}, LOCAL)
    assert call.meta == {"thoughtgate/idempotencyKey": "k"}
    assert call.trace == SpanContext(
        trace_id=0x0AF7651916CD43DD8448EB211C80319C, span_id=0xB7AD6B7169203331, state="a=b"
    )
    assert (call.session.origin, call.session.id, call.wants_progress) == ("grpc", "", False)


async def test_the_result_comes_last_with_the_bytes_that_the_server_sent() -> None:
    raw = b'{"content" : [ {"type":"text","text":"\\u00e9"} ],"structuredContent": 1.0,"_meta":{}}'

    async def exact(call: Call) -> Result:
        return Result(raw=raw)

    async with grpc_serving(FakeGateway().add("exact", exact)) as caller:
        ((kind, result),) = await caller.events("exact")
    assert kind == "result"
    assert result.content_json == b'[ {"type":"text","text":"\\u00e9"} ]'
    assert (result.structured_content_json, result.meta_json) == (b"1.0", b"{}")


async def test_a_structured_null_is_not_an_absent_one() -> None:
    async def null(call: Call) -> Result:
        return Result(raw=b'{"content":[],"structuredContent":null}')

    gateway = FakeGateway().add("null", null).add("plain", _plain)
    async with grpc_serving(gateway) as caller:
        ((_, given),) = await caller.events("null")
        ((_, absent),) = await caller.events("plain")
    assert given.HasField("structured_content_json")
    assert not absent.HasField("structured_content_json")


async def _plain(call: Call) -> Result:
    return done()


async def test_progress_comes_in_order_before_the_result_where_it_is_wanted() -> None:
    async with grpc_serving(FakeGateway().add("p", progressing)) as caller:
        wanted = await caller.events("p", progress=True)
        unwanted = await caller.events("p")
    assert [kind for kind, _ in wanted] == ["progress", "progress", "result"]
    first = wanted[0][1]
    assert (first.progress, first.total, first.message) == (1, 2, "half")
    assert not wanted[1][1].HasField("total")
    assert [kind for kind, _ in unwanted] == ["result"]


async def test_a_client_over_grpc_cannot_be_asked() -> None:
    async def ask(call: Call) -> Result:
        with pytest.raises(NotAsked):
            await call.listener.ask(Question(method="elicitation/create", params={}))
        return done()

    async with grpc_serving(FakeGateway().add("ask", ask)) as caller:
        ((kind, _),) = await caller.events("ask")
    assert kind == "result"


@pytest.mark.parametrize(
    "error",
    [
        Refused(message="no"),
        Overloaded(message="full"),
        UpstreamLost(message="server s: gone"),
        UpstreamTimeout(message="server s: late"),
    ],
)
async def test_what_a_model_may_mend_is_a_result_as_over_mcp(error: GateError) -> None:
    async def fail(call: Call) -> Result:
        raise error

    async with grpc_serving(FakeGateway().add("fail", fail)) as caller:
        ((_, result),) = await caller.events("fail")
    assert result.is_error
    assert f'"error":"{error.code}"'.encode() in result.structured_content_json


async def test_an_unknown_tool_is_not_found_and_named() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        code, status = await refused(caller, "nope")
    named = ResourceInfo()
    assert code is grpc.StatusCode.NOT_FOUND
    assert info(status).reason == "UNKNOWN_TOOL"
    assert any(one.Unpack(named) for one in status.details if one.Is(named.DESCRIPTOR))
    assert (named.resource_type, named.resource_name) == ("tool", "nope")


async def test_an_unknown_domain_is_not_found() -> None:
    async with grpc_serving(FakeGateway().add("echo")) as caller:
        code, status = await refused(caller, "echo", domain="nope")
    assert (code, info(status).reason) == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_TOOL")


@pytest.mark.parametrize(
    ("rpc_code", "code"),
    [
        (-32602, grpc.StatusCode.INVALID_ARGUMENT),
        (-32601, grpc.StatusCode.UNIMPLEMENTED),
        (-32000, grpc.StatusCode.UNKNOWN),
    ],
)
async def test_a_server_s_own_error_is_a_status(rpc_code: int, code: grpc.StatusCode) -> None:
    async def fail(call: Call) -> Result:
        raise UpstreamReplied(rpc_code=rpc_code, rpc_message="no\nsuch thing\x00é")

    async with grpc_serving(FakeGateway().add("fail", fail)) as caller:
        ended, status = await refused(caller, "fail")
    assert (ended, status.message) == (code, "no\nsuch thing\x00é")
    assert info(status).metadata == {"upstreamCode": str(rpc_code)}


@pytest.mark.parametrize("error", [ValueError("secret /etc/path"), StoreCorrupt(message="secret")])
async def test_a_bug_is_an_id_and_nothing_else(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(call: Call) -> Result:
        raise error

    async with grpc_serving(FakeGateway().add("fail", fail)) as caller:
        code, status = await refused(caller, "fail")
    (record,) = (one for one in caplog.records if one.message == "request failed")
    assert code is grpc.StatusCode.INTERNAL
    assert "secret" not in str(status)
    assert info(status).metadata["id"] == vars(record)["incident"]


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":"\xff"}',
        b'{"a":"\\ud800"}',
        b"[" * 100 + b"]" * 100,
        b"[]",
        b"null",
        b" ",
        b"{",
    ],
)
@pytest.mark.parametrize("field", ["arguments_json", "meta_json"])
async def test_json_that_can_be_read_in_two_ways_reaches_nobody(
    arguments: bytes, field: str
) -> None:
    gateway = FakeGateway().add("echo")
    async with grpc_serving(gateway) as caller:
        given = {"arguments": arguments} if field == "arguments_json" else {"meta": arguments}
        code, status = await refused(caller, "echo", **given)
    bad = BadRequest()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert info(status).reason == "MALFORMED"
    assert any(one.Unpack(bad) for one in status.details if one.Is(bad.DESCRIPTOR))
    assert [one.field for one in bad.field_violations] == [f"/{field}"]
    assert gateway.calls == []


async def test_bytes_that_are_no_message_are_malformed() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        raw: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = caller.channel.unary_stream(
            "/thoughtgate.gateway.v1.GatewayServer/CallTool"
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await within(raw(b"\xff\xff").read())
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_cancelled_rpc_cancels_the_call() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> Result:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with grpc_serving(FakeGateway().add("wait", wait).add("echo")) as caller:
        stream = caller.call("wait")
        reading = asyncio.ensure_future(stream.read())
        await within(started.wait())
        stream.cancel()
        await within(ended.wait())
        assert await within(asyncio.gather(reading, return_exceptions=True))
        assert await caller.events("echo")


async def test_a_deadline_becomes_the_call_s_own_a_little_before() -> None:
    left: list[float] = []

    async def look(call: Call) -> Result:
        left.append(call.deadline - asyncio.get_running_loop().time())
        return done()

    settings = FaceSettings(info={}, call_timeout=50.0)
    async with grpc_serving(FakeGateway().add("look", look), settings) as caller:
        for timeout in (None, 30.0, 1_000.0):
            await caller.events("look", timeout=timeout)
    assert 40 < left[0] <= 50
    assert 20 < left[1] < 29.9
    assert 40 < left[2] <= 50


async def test_a_call_without_time_is_not_made() -> None:
    gateway = FakeGateway().add("echo")
    async with grpc_serving(gateway) as caller:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await caller.events("echo", timeout=-1)
        await caller.events("echo")
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert len(gateway.calls) == 1


async def test_a_deadline_that_comes_cancels_the_call() -> None:
    ended = asyncio.Event()

    async def wait(call: Call) -> Result:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with grpc_serving(FakeGateway().add("wait", wait)) as caller:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await caller.events("wait", timeout=0.2)
        await within(ended.wait())
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_runs_are_not_served_yet() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        start: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = caller.channel.unary_unary(
            "/thoughtgate.gateway.v1.RunServer/StartRun"
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await within(_once(start))
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def _once(method: Any) -> Any:
    return await method(b"")


async def test_a_storm_of_cancelled_calls_leaves_nothing() -> None:
    running: set[str] = set()

    async def wait(call: Call) -> Result:
        running.add(call.id)
        try:
            await asyncio.Event().wait()
        finally:
            running.discard(call.id)
        raise AssertionError

    async with grpc_serving(FakeGateway().add("wait", wait).add("echo")) as caller:
        await caller.events("echo")
        before = len(asyncio.all_tasks())
        for _ in range(10):
            streams = [caller.call("wait") for _ in range(50)]
            await until(lambda: len(running) == 50)
            for stream in streams:
                stream.cancel()
            await until(lambda: not running)
        await until(lambda: len(asyncio.all_tasks()) <= before)
        assert await caller.events("echo")
