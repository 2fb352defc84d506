"""Spans of a call: two of them, one below the other, whatever became of the call."""

import asyncio
import hashlib
from dataclasses import replace

import pytest

from tests.support.waiting import until, within
from tests.unit.calls.conftest import FLIGHT, WEATHER, Bench
from thoughtgate.core.calls import Call, Result, Source
from thoughtgate.core.errors import (
    GateError,
    InvalidArguments,
    Overloaded,
    Refused,
    UnknownTarget,
    UpstreamLost,
    UpstreamReplied,
)
from thoughtgate.core.servers import HttpTransport, StdioTransport, Transport
from thoughtgate.core.traces import NOTHING_SHARED, SpanContext, SpanKind, SpanRecord
from thoughtgate.testing.sender import EMPTY
from thoughtgate.testing.values import SESSION

PARENT = SpanContext(trace_id=0xABC, span_id=0xDEF, sampled=False, state="vendor=1")


async def test_a_call_has_a_server_span_and_a_client_span_below_it(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo"}, trace=PARENT)
    client, server = bench.recorder.spans
    assert (server.name, server.kind) == ("tools/call air__book", SpanKind.SERVER)
    assert (client.name, client.kind) == ("tools/call book", SpanKind.CLIENT)
    assert server.context.trace_id == client.context.trace_id == PARENT.trace_id
    assert (server.parent_id, client.parent_id) == (PARENT.span_id, server.context.span_id)
    assert server.start_ns <= client.start_ns <= client.end_ns <= server.end_ns
    assert server.error is None
    assert client.error is None


async def test_the_server_gets_the_client_span_as_its_parent(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo"}, trace=PARENT)
    assert bench.sender.sent[0].trace == bench.recorder.spans[0].context
    assert bench.sender.sent[0].trace.state == "vendor=1"


async def test_a_caller_that_switches_sampling_off_is_traced_all_the_same(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo"}, trace=PARENT)
    assert all(span.context.sampled for span in bench.recorder.spans)
    assert bench.recorder.spans[1].attributes["thoughtgate.remote.unsampled"] is True


async def test_a_call_without_context_begins_a_trace(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    for _ in range(2):
        await bench.call("air__book", {"to": "Oslo"})
    roots = bench.recorder.spans[1::2]
    assert [root.parent_id for root in roots] == [0, 0]
    assert len({root.context.trace_id for root in roots}) == 2


async def test_an_engines_call_is_internal(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo"}, source=Source.ENGINE, run_id="r1", depth=1)
    span = bench.recorder.spans[1]
    assert span.kind is SpanKind.INTERNAL
    assert span.attributes["thoughtgate.run.id"] == "r1"


async def test_attributes_follow_the_conventions(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    session = replace(SESSION, id="s1", version="2025-11-25")
    await bench.call("air__book", {"to": "Oslo", "seat": None}, session=session)
    tool = bench.sender.sent[0].tool
    client, server = bench.recorder.spans
    expected = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "air__book",
        "gen_ai.tool.call.id": bench.sender.sent[0].id,
        "mcp.protocol.version": "2025-11-25",
        "mcp.session.id": hashlib.sha256(b"s1").hexdigest()[:32],
        "thoughtgate.domain": "default",
        "thoughtgate.server": "air",
        "thoughtgate.tool.digest": tool.digest,
        "thoughtgate.tool.effect": "write",
        "thoughtgate.catalogue.revision": bench.gateway.catalog.revision,
        "thoughtgate.notes": ["repaired:/seat"],
    }
    assert expected.items() <= server.attributes.items()
    assert client.attributes["gen_ai.tool.name"] == "book"
    assert "error.type" not in {*server.attributes, *client.attributes}


@pytest.mark.parametrize(
    ("transport", "expected"),
    [
        (StdioTransport(argv=("air",)), {"network.transport": "pipe"}),
        (
            HttpTransport(url="https://air.example/mcp?key=hush", headers={"x": "hush"}),
            {
                "network.transport": "tcp",
                "server.address": "air.example",
                "server.port": 443,
            },
        ),
        (
            HttpTransport(url="http://user:hush@[::1]:8000/mcp"),
            {"network.transport": "tcp", "server.address": "::1", "server.port": 8000},
        ),
    ],
)
async def test_the_client_span_says_where_the_server_is(
    bench: Bench, transport: Transport, expected: dict[str, object]
) -> None:
    bench.offer("air", FLIGHT, transport=transport)
    await bench.call("air__book", {"to": "Oslo"})
    attributes = bench.recorder.spans[0].attributes
    assert {name: attributes[name] for name in expected} == expected
    assert "hush" not in str(bench.recorder.spans)


@pytest.mark.parametrize(
    ("error", "error_type", "fault"),
    [
        (UpstreamLost(message="gone"), "upstream_lost", True),
        (UpstreamReplied(rpc_code=-32603, rpc_message="boom"), "-32603", True),
        (UpstreamReplied(rpc_code=-32000, rpc_message="boom"), "-32000", True),
        (UpstreamReplied(rpc_code=-32602, rpc_message="boom"), "-32602", False),
        (Overloaded(message="full"), "overloaded", True),
        (Refused(message="no"), "refused", False),
    ],
)
async def test_an_error_is_the_clients_span_fault_and_the_servers_only_if_it_was_not_the_caller(
    bench: Bench, error: GateError, error_type: str, fault: bool
) -> None:
    bench.sender.otherwise = error
    bench.offer("air", FLIGHT)
    with pytest.raises(type(error)):
        await bench.call("air__book", {"to": "Oslo"})
    client, server = bench.recorder.spans
    assert [span.attributes["error.type"] for span in (client, server)] == [error_type] * 2
    assert client.error is not None
    assert (server.error is not None) is fault
    assert "boom" not in str(bench.recorder.spans)


async def test_a_failed_tool_is_a_fault_with_a_result(bench: Bench) -> None:
    bench.sender.otherwise = Result(raw=b'{"content":[],"isError":true}', is_error=True)
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo"})
    for span in bench.recorder.spans:
        assert span.attributes["error.type"] == "tool_error"
        assert span.error is not None


async def test_a_bug_below_leaves_spans_and_a_row(bench: Bench) -> None:
    bench.sender.otherwise = ZeroDivisionError()
    bench.offer("air", FLIGHT)
    with pytest.raises(ZeroDivisionError):
        await bench.call("air__book", {"to": "Oslo"})
    assert [span.attributes["error.type"] for span in bench.recorder.spans] == [
        "internal_error"
    ] * 2
    assert [row.outcome for row in bench.audit.rows] == ["internal_error"]


async def test_a_cancelled_call_is_marked_in_spans_and_row(bench: Bench) -> None:
    async def hang(call: Call) -> Result:
        await asyncio.Event().wait()
        return EMPTY

    bench.sender.otherwise = hang
    bench.offer("air", FLIGHT)
    task = asyncio.create_task(bench.call("air__book", {"to": "Oslo"}))
    await until(lambda: bench.sender.sent)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert [span.cancelled for span in bench.recorder.spans] == [True, True]
    assert [row.outcome for row in bench.audit.rows] == ["cancelled"]


async def test_names_that_no_tool_has_make_no_new_span_names(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    with pytest.raises(UnknownTarget):
        await bench.call("x" * 1000)
    (span,) = bench.recorder.spans
    assert span.name == "tools/call"
    assert span.attributes["gen_ai.tool.name"] == "x" * 128
    assert span.error is None


async def test_content_is_kept_only_when_capture_is_on_and_only_so_much(bench: Bench) -> None:
    bench.extra["capture"] = 20
    bench.sender.otherwise = Result(raw=b'{"content":[],"secret":"' + b"z" * 100 + b'"}')
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo 奥斯陆" * 10})
    attributes = bench.recorder.spans[1].attributes
    for name in ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"):
        assert 17 <= len(str(attributes[name]).encode()) <= 20
    assert attributes["input.value"] == attributes["gen_ai.tool.call.arguments"]


async def test_without_capture_no_content_is_in_any_span(bench: Bench) -> None:
    bench.sender.otherwise = Result(raw=b'{"structuredContent":{"degrees":"hush"},"content":[]}')
    bench.offer("air", FLIGHT)
    bench.offer("sky", WEATHER)
    await bench.call("sky__weather", {"place": "hush"})
    with pytest.raises(InvalidArguments):
        await bench.call("air__book", {"to": ["hush"]})
    assert "hush" not in f"{bench.recorder.spans}{bench.audit.rows}"


async def test_nothing_is_traced_without_a_recorder(bench: Bench) -> None:
    bench.extra["recorder"] = None
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo"}, trace=PARENT)
    assert bench.sender.sent[0].trace is PARENT
    assert bench.audit.rows[0].trace_id == f"{PARENT.trace_id:032x}"


class Spans:
    """A recorder that keeps spans as they come, with what they share apart."""

    def __init__(self) -> None:
        self.kept: list[SpanRecord] = []

    def record(self, span: SpanRecord) -> None:
        self.kept.append(span)


async def test_calls_of_one_tool_share_all_that_does_not_differ_from_call_to_call(
    bench: Bench,
) -> None:
    spans = Spans()
    bench.extra["recorder"] = spans
    bench.offer("air", FLIGHT, WEATHER)
    for tool in ("air__book", "air__book", "air__weather"):
        await bench.call(tool, {"to": "Oslo"})
    client, server, next_client, next_server, other_client, other_server = spans.kept
    assert next_server.shared is server.shared
    assert next_client.shared is client.shared
    assert {other_client.shared, other_server.shared}.isdisjoint({client.shared, server.shared})
    for span in (client, server):
        assert span.shared.attributes.keys().isdisjoint(span.attributes)
        assert "thoughtgate.server" in span.shared.attributes
        assert "gen_ai.tool.call.id" in span.attributes


async def test_names_that_nothing_has_are_kept_for_nobody(bench: Bench) -> None:
    """A client could fill the memory with them."""
    spans = Spans()
    bench.extra["recorder"] = spans
    bench.offer("air", FLIGHT)
    with pytest.raises(UnknownTarget):
        await bench.call("air__nobody")
    assert spans.kept[0].shared is NOTHING_SHARED
