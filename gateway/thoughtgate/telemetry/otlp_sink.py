"""The exporter that posts traces to an OTLP endpoint.

Never imported unless an endpoint is set: protobuf and the HTTP client take long to import.
"""

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.util.re import parse_env_headers

from thoughtgate.telemetry.environment import OtlpSettings

_COMPRESSIONS = {item.value: item for item in Compression}


def otlp_sink(settings: OtlpSettings) -> OTLPSpanExporter:
    """Return the exporter; a compression that it does not know is none."""
    return OTLPSpanExporter(
        endpoint=settings.endpoint,
        headers=parse_env_headers(settings.headers, liberal=True),
        timeout=settings.timeout,
        compression=_COMPRESSIONS.get(settings.compression, Compression.NoCompression),
        certificate_file=settings.certificate,
        client_certificate_file=settings.client_certificate,
        client_key_file=settings.client_key,
    )
