"""The standard OTEL_* variables, read into an exporter.

Never reads the process's environment by itself: the caller passes a mapping, at the time it wants.

- `OTEL_SDK_DISABLED`: `true` switches everything off.
- `OTEL_TRACES_EXPORTER`: `otlp`, `console` (to standard error) or `none`. Unset means `otlp` when
  an endpoint is set, else off.
- `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`: the full URL; `OTEL_EXPORTER_OTLP_ENDPOINT`: the base URL,
  to which `/v1/traces` is added.
- `OTEL_EXPORTER_OTLP_HEADERS`, `_TIMEOUT`, `_COMPRESSION`, `_CERTIFICATE`, `_CLIENT_CERTIFICATE`,
  `_CLIENT_KEY`: as in the Python SDK, also with `_TRACES`; the timeout is in seconds, at most 60.
- `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`: who we are.
- `OTEL_BSP_SCHEDULE_DELAY` (milliseconds), `OTEL_BSP_MAX_QUEUE_SIZE` and
  `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` (spans).

`OTEL_TRACES_SAMPLER` is not followed: every call is traced, and `doubts` says so.
"""

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import unquote, urlsplit

from thoughtgate.telemetry.console import ConsoleSink
from thoughtgate.telemetry.encode import Origin
from thoughtgate.telemetry.exporter import Limits, Sink, SpanExporter
from thoughtgate.telemetry.redact import HIDDEN, is_secret_name, redact
from thoughtgate.telemetry.values import text_value

DEFAULT_ENDPOINT = "http://localhost:4318"
TIMEOUT_CAP = 60.0
SERVICE_NAME = "thoughtgate"

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSettings:
    """Where and how to post traces, as the variables say it; `timeout` is in seconds."""

    endpoint: str
    headers: str = field(repr=False)
    timeout: float
    compression: str
    certificate: str | None
    client_certificate: str | None
    client_key: str | None


def from_environment(environ: Mapping[str, str]) -> SpanExporter | None:
    """Return a running exporter, or None when tracing is off (then nothing is spent)."""
    kind = exporter_kind(environ)
    if kind == "none":
        return None
    sink: Sink
    if kind == "console":
        sink, target = ConsoleSink(sys.stderr), "console"
    else:
        sink, target = _otlp(environ), shown_url(endpoint(environ))
    origin = Origin(resource=resource(environ), version=_version("thoughtgate"))
    return SpanExporter(sink, origin, limits=limits(environ), target=target)


def exporter_kind(environ: Mapping[str, str]) -> str:
    """Return `otlp`, `console` or `none`; the first known name wins in a list."""
    if _get(environ, "OTEL_SDK_DISABLED").lower() == "true":
        return "none"
    wanted = _get(environ, "OTEL_TRACES_EXPORTER").lower()
    if not wanted:
        return "otlp" if _otlp_get(environ, "ENDPOINT") else "none"
    for name in wanted.split(","):
        if name.strip() in {"otlp", "console", "none"}:
            return name.strip()
    _LOG.warning("OTEL_TRACES_EXPORTER: none of otlp, console, none; traces are off")
    return "none"


def endpoint(environ: Mapping[str, str]) -> str:
    """Return the URL that traces are posted to."""
    full = _get(environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if full:
        return full
    base = _get(environ, "OTEL_EXPORTER_OTLP_ENDPOINT") or DEFAULT_ENDPOINT
    return f"{base.rstrip('/')}/v1/traces"


def resource(environ: Mapping[str, str]) -> Mapping[str, str | int]:
    """Return who makes the spans: the operator's attributes over our own."""
    attributes: dict[str, str | int] = {
        "service.name": SERVICE_NAME,
        "service.version": _version("thoughtgate"),
        "process.pid": os.getpid(),
        "telemetry.sdk.language": "python",
        "telemetry.sdk.name": "thoughtgate",
        "telemetry.sdk.version": _version("thoughtgate"),
    }
    for item in _get(environ, "OTEL_RESOURCE_ATTRIBUTES").split(","):
        name, equals, value = item.partition("=")
        if equals and name.strip():
            text = text_value(unquote(value.strip()), 4096)
            attributes[name.strip()] = HIDDEN if is_secret_name(name) else redact(text)
    if _get(environ, "OTEL_SERVICE_NAME"):
        attributes["service.name"] = text_value(_get(environ, "OTEL_SERVICE_NAME"), 256)
    return attributes


def limits(environ: Mapping[str, str]) -> Limits:
    """Return the queue's limits; a batch never exceeds the queue."""
    usual = Limits()
    queue = int(_number(environ, "OTEL_BSP_MAX_QUEUE_SIZE", usual.queue))
    batch = int(_number(environ, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", usual.batch))
    delay = _number(environ, "OTEL_BSP_SCHEDULE_DELAY", usual.delay * 1000) / 1000
    return Limits(queue=max(queue, 8), batch=max(min(batch, queue), 1), delay=delay)


def _otlp(environ: Mapping[str, str]) -> Sink:
    """Return the sink at an endpoint; it is imported only now, since that takes long."""
    settings = otlp_settings(environ)
    made: Sink = import_module("thoughtgate.telemetry.otlp_sink").OtlpSink(settings)
    return made


def otlp_settings(environ: Mapping[str, str]) -> OtlpSettings:
    """Return where and how traces are posted."""
    protocol = _otlp_get(environ, "PROTOCOL")
    if protocol not in {"", "http/protobuf"}:
        _LOG.warning("otlp protocol %s is not built in; http/protobuf is used", protocol[:40])
    seconds = _number(environ, "OTEL_EXPORTER_OTLP_TIMEOUT", 10.0)
    seconds = _number(environ, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", seconds)
    return OtlpSettings(
        endpoint=endpoint(environ),
        headers=_otlp_get(environ, "HEADERS"),
        timeout=min(seconds, TIMEOUT_CAP),
        compression=_otlp_get(environ, "COMPRESSION"),
        certificate=_otlp_get(environ, "CERTIFICATE") or None,
        client_certificate=_otlp_get(environ, "CLIENT_CERTIFICATE") or None,
        client_key=_otlp_get(environ, "CLIENT_KEY") or None,
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


def _get(environ: Mapping[str, str], name: str) -> str:
    """Return the value; the specification reads an empty one as unset."""
    return environ.get(name, "").strip()


def _otlp_get(environ: Mapping[str, str], name: str) -> str:
    specific = _get(environ, f"OTEL_EXPORTER_OTLP_TRACES_{name}")
    return specific or _get(environ, f"OTEL_EXPORTER_OTLP_{name}")


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = _get(environ, name)
    try:
        number = float(text) if text else default
    except ValueError:
        number = -1.0
    if 0 < number < float("inf"):
        return number
    _LOG.warning("%s is not a positive number; %g is used", name, default)
    return default


def shown_url(url: str) -> str:
    """Return the address without user, password and query, for the log."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
