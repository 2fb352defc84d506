"""Where traces go: variables that mean nothing, and an endpoint that takes nothing.

Never sends a span: what is posted is an empty export.
"""

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from thoughtgate.app.doctor.connecting import reach
from thoughtgate.app.doctor.findings import Checked, Finding
from thoughtgate.core.errors import UpstreamError
from thoughtgate.telemetry.doubts import Doubt, doubts
from thoughtgate.telemetry.environment import OtlpSettings, exporter_kind, otlp_settings, shown_url
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.ports import HttpRequest

PATIENCE = 5.0
_REPLY = 65_536


async def check_traces(environ: Mapping[str, str]) -> Checked:
    """Look at the variables of the exporter, and post an empty export where it posts."""
    findings = [judged_doubt(doubt) for doubt in doubts(environ)]
    kind = exporter_kind(environ)
    if kind != "otlp":
        said = "printed to standard error" if kind == "console" else "off"
        return Checked(name="traces", said=said, findings=tuple(findings))
    settings = otlp_settings(environ)
    findings += await _exported(settings)
    where = shown_url(settings.endpoint)
    return Checked(name="traces", said=f"posted to {where}", findings=tuple(findings))


def judged_doubt(doubt: Doubt) -> Finding:
    """Return what a variable that means nothing leads to."""
    return Finding(
        code="exporter_value",
        where=doubt.variable,
        what=doubt.text,
        mend=f"export {doubt.variable}={doubt.usual}, or: unset {doubt.variable}",
    )


def judged_status(status: int, where: str) -> Iterator[Finding]:
    """Yield a finding when an empty export was not accepted."""
    if not 200 <= status < 300:
        denied = status in {401, 403}
        yield Finding(
            code="exporter_refuses",
            where=where,
            what=f"it answers {status} to an empty export",
            mend="export OTEL_EXPORTER_OTLP_HEADERS=authorization=…"
            if denied
            else "export OTEL_EXPORTER_OTLP_ENDPOINT=… (the base URL, without /v1/traces)",
        )


async def _exported(settings: OtlpSettings) -> list[Finding]:
    where = shown_url(settings.endpoint)
    client = PooledClient(tls=_tls(settings))
    headers = {"content-type": "application/x-protobuf", **_headers(settings.headers)}
    try:
        async with asyncio.timeout(min(settings.timeout, PATIENCE)):
            request = HttpRequest(method="POST", url=settings.endpoint, headers=headers)
            reply = await client.send(request)
            await reply.read(_REPLY)
        return list(judged_status(reply.status, where))
    except (UpstreamError, TimeoutError) as error:
        said = error.message if isinstance(error, UpstreamError) else "it does not answer in time"
        what = await reach(settings.endpoint) or said
    finally:
        await client.aclose()
    return [
        Finding(
            code="exporter_down",
            where=where,
            what=what,
            mend=f"start what takes traces at {where}, or: export OTEL_TRACES_EXPORTER=none",
        )
    ]


def _headers(text: str) -> dict[str, str]:
    pairs = (item.partition("=") for item in text.split(","))
    return {name.strip().lower(): unquote(value.strip()) for name, eq, value in pairs if eq}


def _tls(settings: OtlpSettings) -> ssl.SSLContext | None:
    if not settings.certificate:
        return None
    try:
        return ssl.create_default_context(cafile=settings.certificate)
    except OSError:  # the connection will say that it is not trusted
        return None
