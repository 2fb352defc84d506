"""OTLP decoded from both encodings, and the receiver that tests rely on."""

import http.client
import json
import zlib

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from thoughtgate.core.errors import Malformed
from thoughtgate.telemetry.otlp import SeenSpan, from_json, from_protobuf
from thoughtgate.testing.otlp import OtlpReceiver

DOCUMENT = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "a"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "0AF7651916CD43DD8448EB211C80319C",
                            "spanId": "b7ad6b7169203331",
                            "parentSpanId": "00f067aa0ba902b7",
                            "name": "tools/call find",
                            "kind": 2,
                            "startTimeUnixNano": "1790000000000000000",
                            "endTimeUnixNano": "1790000000000000009",
                            "flags": 768,
                            "traceState": "a=1",
                            "status": {"code": 2, "message": "no"},
                            "attributes": [
                                {"key": "i", "value": {"intValue": "9223372036854775807"}},
                                {"key": "d", "value": {"doubleValue": 1.5}},
                                {"key": "b", "value": {"boolValue": True}},
                                {"key": "l", "value": {"arrayValue": {"values": [
                                    {"stringValue": "x"}, {"intValue": 2}]}}},
                                {"key": "m", "value": {"kvlistValue": {"values": [
                                    {"key": "k", "value": {"stringValue": "v"}}]}}},
                                {"key": "n", "value": {}},
                            ],
                        }
                    ]
                }
            ],
        }
    ]
}  # fmt: skip

EXPECTED = SeenSpan(
    name="tools/call find",
    trace_id="0af7651916cd43dd8448eb211c80319c",
    span_id="b7ad6b7169203331",
    parent_id="00f067aa0ba902b7",
    kind="server",
    start_ns=1790000000000000000,
    end_ns=1790000000000000009,
    attributes={"i": 2**63 - 1, "d": 1.5, "b": True, "l": ["x", 2], "m": {"k": "v"}, "n": None},
    status="error",
    description="no",
    trace_state="a=1",
    remote_parent=True,
    resource={"service.name": "a"},
)


def as_protobuf() -> bytes:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "a"
    span = group.scope_spans.add().spans.add(
        trace_id=bytes.fromhex(EXPECTED.trace_id),
        span_id=bytes.fromhex(EXPECTED.span_id),
        parent_span_id=bytes.fromhex(EXPECTED.parent_id),
        name=EXPECTED.name,
        kind=2,
        start_time_unix_nano=EXPECTED.start_ns,
        end_time_unix_nano=EXPECTED.end_ns,
        flags=768,
        trace_state="a=1",
    )
    span.status.code, span.status.message = Status.STATUS_CODE_ERROR, "no"
    span.attributes.add(key="i").value.int_value = 2**63 - 1
    span.attributes.add(key="d").value.double_value = 1.5
    span.attributes.add(key="b").value.bool_value = True
    items = span.attributes.add(key="l").value.array_value.values
    items.add(string_value="x")
    items.add(int_value=2)
    span.attributes.add(key="m").value.kvlist_value.values.add(key="k").value.string_value = "v"
    span.attributes.add(key="n")
    return request.SerializeToString()


def test_both_encodings_give_the_same_span() -> None:
    assert from_json(json.dumps(DOCUMENT)) == (EXPECTED,)
    assert from_protobuf(as_protobuf()) == (EXPECTED,)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b"null", b'{"resourceSpans": 3}', b'{"resourceSpans": [{}]}',
     b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}', b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_trace_document_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        from_json(body)


def test_bytes_that_are_no_message_are_malformed() -> None:
    with pytest.raises(Malformed):
        from_protobuf(b"\xff\xff")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (json.dumps(DOCUMENT).encode(), {"Content-Type": "application/json"}, 200),
        (as_protobuf(), {"Content-Type": "application/x-protobuf"}, 200),
        (zlib.compress(as_protobuf()), {"Content-Encoding": "deflate"}, 200),
        (zlib.compress(as_protobuf(), wbits=31), {"Content-Encoding": "gzip"}, 200),
        (b"\xff", {"Content-Type": "application/x-protobuf"}, 400),
        (b"plain", {"Content-Encoding": "gzip"}, 400),
    ],
)
def test_the_receiver_takes_what_exporters_send(
    body: bytes, headers: dict[str, str], status: int
) -> None:
    with OtlpReceiver() as receiver:
        connection = http.client.HTTPConnection(receiver.url.removeprefix("http://"), timeout=5)
        connection.request("POST", "/v1/traces", body, headers)
        reply = connection.getresponse()
        reply.read()
        seen = receiver.spans()
        connection.close()
    assert reply.status == status
    assert seen == ((EXPECTED,) if status == 200 else ())


def test_waiting_for_spans_that_do_not_come_ends() -> None:
    with OtlpReceiver() as receiver, pytest.raises(TimeoutError, match="0 of 1"):
        receiver.wait_for(1, seconds=0.01)
