"""What every recorder promises, and what the exporting one promises to a real receiver."""

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Iterator

import pytest

from tests.support.golden import matches_golden
from tests.support.spans import TRACE, make_span
from tests.support.waiting import within
from thoughtgate.core.ports import Recorder
from thoughtgate.core.traces import SpanContext, SpanKind
from thoughtgate.telemetry import names
from thoughtgate.telemetry.environment import from_environment
from thoughtgate.telemetry.exporter import SpanExporter
from thoughtgate.telemetry.otlp import SeenSpan
from thoughtgate.testing.otlp import OtlpReceiver
from thoughtgate.testing.recorder import ListRecorder


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address that takes connections and never answers: nobody accepts them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def exporter_to(url: str, **more: str) -> SpanExporter:
    exporter = from_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **more})
    assert exporter is not None
    return exporter


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(params=["list", "exporter"])
def recorder(request: pytest.FixtureRequest, receiver: OtlpReceiver) -> Iterator[Recorder]:
    if request.param == "list":
        yield ListRecorder()
        return
    exporter = exporter_to(receiver.url)
    yield exporter
    assert exporter.shutdown()


def test_recording_never_raises_whatever_the_span_holds(recorder: Recorder) -> None:
    for value in ("\ud800", 10**5000, float("nan"), b"", object(), {1: {2}}, ["x"] * 10_000):
        recorder.record(make_span(attributes={"x": value}, error="\ud800", cancelled=True))


def test_the_receiver_gets_exactly_the_ids_that_were_recorded(receiver: OtlpReceiver) -> None:
    exporter = exporter_to(receiver.url)
    remote = SpanContext(trace_id=TRACE, span_id=0xB7AD6B7169203331, sampled=False)
    server = make_span(2, kind=SpanKind.SERVER, parent=remote.span_id)
    client = make_span(3, kind=SpanKind.CLIENT, parent=2)
    exporter.record(client)
    exporter.record(server)
    assert exporter.shutdown()
    seen = [(span.trace_id, span.span_id, span.parent_id, span.kind) for span in receiver.spans()]
    trace = f"{TRACE:032x}"
    assert seen == [
        (trace, f"{3:016x}", f"{2:016x}", "client"),
        (trace, f"{2:016x}", "b7ad6b7169203331", "server"),
    ]


def test_a_thousand_spans_arrive_once_each(receiver: OtlpReceiver) -> None:
    exporter = exporter_to(receiver.url)
    for number in range(1, 1001):
        exporter.record(make_span(number))
    assert exporter.shutdown()
    assert sorted(span.span_id for span in receiver.spans()) == [
        f"{n:016x}" for n in range(1, 1001)
    ]


async def test_a_black_holed_target_holds_nobody(black_hole: str) -> None:
    """The request may hang for a minute; recording is immediate and shutdown keeps its deadline."""
    exporter = exporter_to(
        black_hole,
        OTEL_EXPORTER_OTLP_TIMEOUT="60",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE="1",
        OTEL_BSP_MAX_QUEUE_SIZE="64",
    )
    for number in range(1, 1001):
        exporter.record(make_span(number, parent=9))
    assert await within(asyncio.to_thread(exporter.shutdown, 0.2)) is False
    counts = exporter.counts()
    assert (counts.exported, counts.dropped + counts.waiting) == (0, 1000)
    assert counts.dropped >= 900


@pytest.mark.parametrize("target", [closed_port, lambda: "http://[bad", lambda: "ftp://x"])
async def test_a_target_that_is_not_there_costs_spans_and_one_line(
    target: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    exporter = exporter_to(target(), OTEL_EXPORTER_OTLP_TIMEOUT="0.2")
    with caplog.at_level(logging.DEBUG, logger="thoughtgate"):
        exporter.record(make_span(1))
        assert await within(asyncio.to_thread(exporter.shutdown, 4.0)) is True
    assert exporter.counts().failed == 1
    assert [record.name for record in caplog.records if record.levelno >= logging.WARNING] == [
        "thoughtgate.telemetry.exporter"
    ]


def test_a_target_that_refuses_is_not_asked_again_with_the_same_spans(
    receiver: OtlpReceiver,
) -> None:
    receiver.answer(400)
    exporter = exporter_to(receiver.url)
    exporter.record(make_span(1))
    assert exporter.shutdown()
    assert (receiver.refused, exporter.counts().failed) == (1, 1)


def test_a_target_that_stalls_and_recovers_gets_what_waited(receiver: OtlpReceiver) -> None:
    receiver.stall()
    exporter = exporter_to(receiver.url, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="2")
    for number in range(1, 8):
        exporter.record(make_span(number))
    receiver.resume()
    assert len(receiver.wait_for(6)) >= 6
    assert exporter.shutdown()
    assert exporter.counts().exported == 7


def test_a_call_and_a_run_look_as_they_did_before(receiver: OtlpReceiver) -> None:
    """The golden spans: names, kinds, attributes and status, as a backend would get them."""
    exporter = exporter_to(receiver.url, OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test")
    call = {
        names.MCP_METHOD: names.METHOD_TOOLS_CALL,
        names.GEN_AI_OPERATION: names.OPERATION_EXECUTE_TOOL,
        names.GEN_AI_TOOL_NAME: "logs__find",
        names.DOMAIN: "default",
        names.SERVER: "logs",
        names.TOOL_DIGEST: "sha256:00",
        names.NOTES: ["repaired:/days"],
        names.CATALOGUE_REVISION: 3,
    }
    thought = {names.KIND: names.KIND_THOUGHT, names.OPENINFERENCE_KIND: names.KIND_CHAIN,
               names.STEP_ID: "find", names.THOUGHT_SOURCE: names.SOURCE_PLAN}  # fmt: skip
    name = names.tool_call_span("logs__find")
    exporter.record(make_span(3, name=name, kind=SpanKind.CLIENT, parent=2, attributes=call))
    exporter.record(make_span(2, name=name, kind=SpanKind.SERVER, parent=1, attributes=call))
    exporter.record(
        make_span(4, name=names.step_span("thought", "find"), parent=1, attributes=thought)
    )
    exporter.record(make_span(5, name=name, parent=1, error="disk password=x", attributes={
        names.ERROR_TYPE: names.ERROR_TOOL}))  # fmt: skip
    exporter.record(make_span(6, name=name, parent=1, cancelled=True))
    assert exporter.shutdown()
    seen = [plain(span) for span in receiver.spans()]
    assert matches_golden("spans.json", json.dumps(seen, indent=1, ensure_ascii=False) + "\n")


def plain(span: SeenSpan) -> dict[str, object]:
    """Leave out what differs from run to run: process and versions."""
    return {
        "name": span.name,
        "ids": [span.trace_id, span.span_id, span.parent_id],
        "kind": span.kind,
        "nanoseconds": [span.start_ns, span.end_ns],
        "status": [span.status, span.description],
        "attributes": dict(span.attributes),
        "service": [span.resource["service.name"], span.resource["deployment.environment"]],
    }
