"""From recorded spans to OTLP: same ids, bounded values, honest status, as the SDK would send."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.sdk_spans import sdk_request
from tests.support.spans import START, TRACE, make_span
from thoughtgate.core.traces import Shared, SpanContext, SpanKind, SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.encode import Encoder, Origin
from thoughtgate.telemetry.otlp import SeenSpan, from_protobuf
from thoughtgate.telemetry.redact import HIDDEN
from thoughtgate.telemetry.values import ATTRIBUTE_LIMIT, DESCRIPTION_LIMIT, VALUE_LIMIT

ORIGIN = Origin(resource={"service.name": "test", "process.pid": 7}, version="1.2")


def request_of(*spans: SpanRecord) -> bytes:
    """Encode as the exporter does; each span twice: what is kept of the first serves the second."""
    encoder = Encoder(ORIGIN)
    first, again = ([encoder.span(span) for span in spans] for _ in range(2))
    assert first == again
    return encoder.request(again)


def through(span: SpanRecord) -> SeenSpan:
    (seen,) = from_protobuf(request_of(span))
    return seen


def in_order(request: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    """Sort attributes, whose order says nothing (only ours puts shared ones last)."""
    for group in request.resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                span.attributes.sort(key=lambda pair: pair.key)
    return request


def assert_as_the_sdk(*spans: SpanRecord) -> None:
    ours = ExportTraceServiceRequest.FromString(request_of(*spans))
    assert in_order(ours) == in_order(sdk_request(spans, ORIGIN))


def attribute(value: object) -> object:
    return through(make_span(attributes={"x": value})).attributes["x"]


def test_the_ids_and_times_are_those_that_were_recorded() -> None:
    context = SpanContext(trace_id=TRACE, span_id=0xB7AD6B7169203331, state="a=1,b=2")
    seen = through(make_span(7, kind=SpanKind.SERVER, parent=0xAB, context=context))
    assert (seen.trace_id, seen.span_id) == (f"{TRACE:032x}", "b7ad6b7169203331")
    assert (seen.parent_id, seen.remote_parent) == (f"{0xAB:016x}", True)
    assert (seen.start_ns, seen.end_ns) == (START + 7_000_000, START + 9_500_000)
    assert (seen.kind, seen.trace_state) == ("server", "a=1,b=2")


def test_a_root_has_no_parent_and_an_inner_span_a_local_one() -> None:
    assert through(make_span(parent=0)).parent_id == ""
    assert not through(make_span(kind=SpanKind.CLIENT, parent=5)).remote_parent


def test_an_end_before_the_start_becomes_no_negative_time() -> None:
    seen = through(make_span()._replace(end_ns=START - 5))
    assert seen.end_ns == seen.start_ns


@pytest.mark.parametrize("state", ["", "!!", "a=1,a=2", "x" * 512, "k=\x00", "a=1," * 100])
def test_a_bad_tracestate_harms_no_span(state: str) -> None:
    context = SpanContext(trace_id=TRACE, span_id=1, state=state)
    assert through(make_span(context=context)).span_id == f"{1:016x}"


def test_a_span_of_an_unsampled_caller_is_exported_all_the_same() -> None:
    seen = through(make_span(context=SpanContext(trace_id=1, span_id=2, sampled=False)))
    assert seen.span_id == f"{2:016x}"


def test_success_leaves_the_status_unset() -> None:
    seen = through(make_span())
    assert (seen.status, names.ERROR_TYPE in seen.attributes) == ("unset", False)


def test_cancelled_is_no_error_but_does_not_look_like_success() -> None:
    seen = through(make_span(cancelled=True))
    assert (seen.status, seen.attributes[names.ERROR_TYPE]) == ("unset", "cancelled")


def test_a_cause_that_was_recorded_stands_over_the_mark_of_cancellation() -> None:
    seen = through(
        make_span(cancelled=True, error="too late", attributes={names.ERROR_TYPE: "deadline"})
    )
    assert (seen.status, seen.attributes[names.ERROR_TYPE]) == ("error", "deadline")


def test_a_description_is_one_clean_bounded_line() -> None:
    seen = through(make_span(error="no\x1b[31m\nuse, password=hunter2 " + "x" * 5000))
    assert seen.status == "error"
    assert "hunter2" not in seen.description
    assert seen.description.isprintable()
    assert len(seen.description) < DESCRIPTION_LIMIT + 40


def test_a_failure_without_description_is_a_failure() -> None:
    assert through(make_span(error="")).status == "error"


@pytest.mark.parametrize("value", ["x", "", "中文 🙂", True, False, 0, -(2**63), 2**63 - 1, 1.5])
def test_a_plain_value_arrives_as_it_is(value: object) -> None:
    assert attribute(value) == value
    assert type(attribute(value)) is type(value)


def test_integers_beyond_64_bits_arrive_as_digits() -> None:
    assert attribute(2**63) == str(2**63)
    assert attribute(-(10**30)) == str(-(10**30))
    assert attribute(10**100_000) == "<integer of 332193 bits>"


def test_a_lone_surrogate_costs_neither_the_value_nor_the_span() -> None:
    assert attribute("a\ud800b") == "a?b"
    assert through(make_span(name="n\udfff")).name == "n?"


def test_a_list_arrives_as_strings() -> None:
    assert attribute(["repaired:/x", "y\ud800"]) == ["repaired:/x", "y?"]
    assert attribute((1, 2)) == ["1", "2"]


@pytest.mark.parametrize(
    "value", ["x" * (VALUE_LIMIT + 1), "中" * VALUE_LIMIT, "x" * 11_000_000], ids=len
)
def test_a_value_beyond_the_limit_is_cut_and_marked(value: str) -> None:
    seen = through(make_span(attributes={"big": value, "small": 1}))
    shown = seen.attributes["big"]
    assert isinstance(shown, str)
    assert value.startswith(shown.partition("…")[0])
    assert len(shown.encode()) < VALUE_LIMIT + 64
    assert shown.endswith(f"[cut from {len(value)} characters]")
    assert seen.attributes[names.TRUNCATED] == ["big"]
    assert seen.attributes["small"] == 1


def test_the_first_attributes_survive_when_there_are_too_many() -> None:
    many = {f"a{number}": number for number in range(ATTRIBUTE_LIMIT + 50)}
    kept = through(make_span(attributes=many)).attributes
    assert len(kept) == ATTRIBUTE_LIMIT
    assert "a0" in kept


def test_a_secret_is_hidden_in_name_values_and_lists_and_the_span_says_so() -> None:
    seen = through(
        make_span(
            name="GET https://me:hunter2@host/",
            attributes={
                "http.request.header.authorization": "hunter2",
                names.GEN_AI_TOOL_ARGUMENTS: '{"password":"hunter2","path":"/tmp"}',
                names.NOTES: ["token=hunter2"],
                names.GEN_AI_INPUT_TOKENS: 12,
            },
        )
    )
    assert "hunter2" not in repr(seen)
    assert seen.attributes["http.request.header.authorization"] == HIDDEN
    assert seen.attributes[names.GEN_AI_INPUT_TOKENS] == 12
    assert "/tmp" in str(seen.attributes[names.GEN_AI_TOOL_ARGUMENTS])
    assert seen.attributes[names.REDACTED] == [
        "http.request.header.authorization",
        names.GEN_AI_TOOL_ARGUMENTS,
    ]


def test_a_value_that_no_attribute_can_hold_arrives_as_json_or_by_its_type() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert attribute({"a": [1, None]}) == '{"a": [1, null]}'
    assert attribute({"a": {1}}) == '{"a": "<set>"}'
    assert attribute(b"bytes") == "<bytes>"
    assert attribute(cycle) == ["<list>"]
    assert attribute({(1, 2): 3}) == "<dict>"


def test_an_absent_value_is_left_out() -> None:
    assert "x" not in through(make_span(attributes={"x": None})).attributes


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


named = st.dictionaries(
    st.text(max_size=30) | st.sampled_from([names.ERROR_TYPE, names.NOTES, "password"]),
    anything,
    max_size=8,
)


@given(named, named, st.text(), st.none() | st.text(), st.booleans())
def test_whatever_is_recorded_is_sent_as_the_sdk_would_send_it(
    own: dict[str, object], shared: dict[str, object], name: str, error: str | None, cancelled: bool
) -> None:
    span = make_span(name=name, attributes=own, error=error, cancelled=cancelled)
    assert_as_the_sdk(span._replace(shared=Shared(attributes=shared)), span)


SAID = {names.GEN_AI_TOOL_NAME: "find", names.SERVER: "logs", "ünïcode": "中文 🙂"}
SECRET = {names.INPUT_VALUE: '{"password":"hunter2"}', names.NOTES: ["token=hunter2", "x"]}
PLAIN = {"text": "x", "empty": "", "yes": True, "no": False, "zero": 0, "least": -(2**63),
         "most": 2**63 - 1, "beyond": 2**64, "real": 1.5, "list": ["a", "b"], "none": [],
         "absent": None}  # fmt: skip


@pytest.mark.parametrize(
    ("own", "shared"),
    [
        (PLAIN, SAID),
        (SAID, PLAIN),
        (SECRET, SAID),
        (SAID, SECRET),
        ({"big": "x" * 70_000, "wide": "中" * 30_000, "many": ["y"] * 300}, SAID),
        (SAID, {"big": "x" * 70_000}),
        ({f"a{number}": number for number in range(ATTRIBUTE_LIMIT)}, SAID),
        (SAID, {f"a{number}": number for number in range(ATTRIBUTE_LIMIT + 9)}),
        (SAID, {**SAID, names.SERVER: "another"}),
        ({names.SERVER: 5}, {names.ERROR_TYPE: "tool_error"}),
        ({"lone\ud800": 1, "lone?": "2", "n" * 300: 3}, {"lone\udfff": 4}),
    ],
)
def test_attributes_of_every_kind_arrive_as_the_sdk_sends_them(
    own: Mapping[str, object], shared: Mapping[str, object]
) -> None:
    span = make_span(attributes=own, cancelled=True)._replace(shared=Shared(attributes=shared))
    assert_as_the_sdk(span, make_span(2, attributes=own, parent=1), span)


@pytest.mark.parametrize("kind", list(SpanKind))
@pytest.mark.parametrize("parent", [0, 0xAB])
@pytest.mark.parametrize("state", ["", "a=1,b=2", " a=1 , b=2,", "t@v=1", "!!", "a=1,a=2"])
def test_kinds_parents_and_states_arrive_as_the_sdk_sends_them(
    kind: SpanKind, parent: int, state: str
) -> None:
    context = SpanContext(trace_id=TRACE, span_id=(1 << 64) - 1, state=state)
    assert_as_the_sdk(make_span(3, kind=kind, parent=parent, context=context))


@pytest.mark.parametrize("error", [None, "", "no\x1b[31m\nuse, password=hunter2", "中" * 600])
def test_every_status_arrives_as_the_sdk_sends_it(error: str | None) -> None:
    assert_as_the_sdk(make_span(error=error), make_span(error=error, cancelled=True))


def test_one_request_holds_spans_behind_one_resource_and_one_scope() -> None:
    request = ExportTraceServiceRequest.FromString(request_of(*map(make_span, range(1, 300))))
    (group,) = request.resource_spans
    (scope,) = group.scope_spans
    assert [attribute.key for attribute in group.resource.attributes] == [*ORIGIN.resource]
    assert (scope.scope.name, scope.scope.version) == ("thoughtgate", "1.2")
    assert len(scope.spans) == 299
