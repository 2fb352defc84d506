"""The OTEL_* variables: what they switch, and that they come from the mapping alone."""

import logging
from pathlib import Path

import pytest

from tests.support.spans import make_span
from thoughtgate.telemetry.console import ConsoleSink
from thoughtgate.telemetry.doubts import doubts
from thoughtgate.telemetry.encode import Encoder, Origin
from thoughtgate.telemetry.environment import (
    endpoint,
    exporter_kind,
    from_environment,
    limits,
    resource,
)
from thoughtgate.telemetry.exporter import Limits
from thoughtgate.testing.otlp import OtlpReceiver

BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("environ", "kind"),
    [
        ({}, "none"),
        ({BASE: ""}, "none"),
        ({BASE: "http://c:4318"}, "otlp"),
        ({TRACES: "http://c/v1/traces"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "OTLP, console"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "jaeger,console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "none", BASE: "http://c"}, "none"),
        ({"OTEL_TRACES_EXPORTER": "zipkin", BASE: "http://c"}, "none"),
        ({"OTEL_SDK_DISABLED": "TRUE", BASE: "http://c"}, "none"),
        ({"OTEL_SDK_DISABLED": "false", BASE: "http://c"}, "otlp"),
    ],
)
def test_the_variables_choose_the_exporter(environ: dict[str, str], kind: str) -> None:
    assert exporter_kind(environ) == kind


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, "http://localhost:4318/v1/traces"),
        ({BASE: "http://c:4318"}, "http://c:4318/v1/traces"),
        ({BASE: "http://c:4318/x/"}, "http://c:4318/x/v1/traces"),
        ({BASE: "http://c", TRACES: "http://t/as/is"}, "http://t/as/is"),
    ],
)
def test_the_base_url_gets_the_path_and_the_full_url_does_not(
    environ: dict[str, str], url: str
) -> None:
    assert endpoint(environ) == url


def test_nothing_is_made_when_tracing_is_off() -> None:
    assert from_environment({}) is None
    assert from_environment({"OTEL_SDK_DISABLED": "true", BASE: "http://127.0.0.1:9"}) is None


def test_the_resource_says_who_we_are() -> None:
    plain = resource({})
    assert plain["service.name"] == "thoughtgate"
    named = resource({
        "OTEL_SERVICE_NAME": "gate-1",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=x, team=a%20b,broken,client_secret=s",
    })
    assert (named["service.name"], named["team"]) == ("gate-1", "a b")
    assert named["client_secret"] == "[redacted]"
    assert "broken" not in named


def test_the_queue_follows_the_batch_variables() -> None:
    assert limits({}) == Limits()
    assert limits({
        "OTEL_BSP_SCHEDULE_DELAY": "250",
        "OTEL_BSP_MAX_QUEUE_SIZE": "100",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "512",
    }) == Limits(queue=100, batch=100, delay=0.25)


@pytest.mark.parametrize("text", ["many", "-1", "0", "inf", "nan", "1e999"])
def test_a_number_that_is_none_falls_back_with_a_warning(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert limits({"OTEL_BSP_MAX_QUEUE_SIZE": text}) == Limits()
    assert "OTEL_BSP_MAX_QUEUE_SIZE" in caplog.text


def test_headers_compression_and_service_name_reach_the_target() -> None:
    with OtlpReceiver() as receiver:
        exporter = from_environment({
            BASE: receiver.url,
            "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=a%20b,Authorization=Bearer%20t",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_SERVICE_NAME": "gate-1",
        })
        assert exporter is not None
        exporter.record(make_span(3))
        assert exporter.shutdown()
        (span,) = receiver.spans()
        (post,) = receiver.posts
    assert (post.path, post.headers["x-tenant"]) == ("/v1/traces", "a b")
    assert post.headers["authorization"] == "Bearer t"
    assert post.headers["content-encoding"] == "gzip"
    assert span.resource["service.name"] == "gate-1"


def test_another_protocol_is_answered_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        exporter = from_environment({
            BASE: "http://127.0.0.1:9",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        })
    assert exporter is not None
    assert exporter.shutdown()
    assert "http/protobuf" in caplog.text


def test_the_console_is_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    """Standard output belongs to the protocol in stdio mode."""
    exporter = from_environment({"OTEL_TRACES_EXPORTER": "console"})
    assert exporter is not None
    exporter.record(make_span(3, name="to the console"))
    assert exporter.shutdown()
    out, err = capfd.readouterr()
    assert (out, "to the console" in err) == ("", True)


def test_a_console_that_nobody_reads_any_more_costs_spans_only(tmp_path: Path) -> None:
    out = (tmp_path / "out").open("w", encoding="utf-8")
    out.close()
    assert ConsoleSink(out).send(Encoder(Origin(resource={})).request([])) is False


@pytest.mark.parametrize(
    ("sampler", "doubted"),
    [("always_on", 0), ("parentbased_always_on", 0), ("traceidratio", 1), ("always_off", 1)],
)
def test_a_sampler_that_is_not_followed_is_told(sampler: str, doubted: int) -> None:
    found = [doubt.variable for doubt in doubts({"OTEL_TRACES_SAMPLER": sampler})]
    assert found == ["OTEL_TRACES_SAMPLER"] * doubted
