"""Values of the OTEL_* variables that mean nothing to us, or not what they seem to.

Never decides what is done instead: that is `environment`'s.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_EXPORTERS = frozenset({"otlp", "console", "none"})
_PROTOCOLS = frozenset({"http/protobuf"})
_COMPRESSIONS = frozenset({"none", "gzip", "deflate"})
_SAMPLERS = frozenset({"always_on", "parentbased_always_on"})
_NUMBERS = {
    "OTEL_EXPORTER_OTLP_TIMEOUT": "10",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "10",
    "OTEL_BSP_SCHEDULE_DELAY": "1000",
    "OTEL_BSP_MAX_QUEUE_SIZE": "16384",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "512",
}
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A variable whose value means nothing: what is wrong with it, and a value that is right."""

    variable: str
    text: str
    usual: str


def doubts(environ: Mapping[str, str]) -> tuple[Doubt, ...]:
    """Return each variable of the exporter that is set to what is not known."""
    set_ = {name: value.strip() for name, value in environ.items() if value.strip()}
    if set_.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ()
    return (*_words(set_), *_numbers(set_), *_endpoints(set_), *_sampler(set_))


def _words(environ: Mapping[str, str]) -> Iterator[Doubt]:
    exporters = environ.get("OTEL_TRACES_EXPORTER", "").lower().split(",")
    yield from _unknown("OTEL_TRACES_EXPORTER", exporters, _EXPORTERS, "otlp")
    for part in ("OTEL_EXPORTER_OTLP", "OTEL_EXPORTER_OTLP_TRACES"):
        protocol, compression = f"{part}_PROTOCOL", f"{part}_COMPRESSION"
        yield from _unknown(protocol, [environ.get(protocol, "")], _PROTOCOLS, "http/protobuf")
        yield from _unknown(compression, [environ.get(compression, "")], _COMPRESSIONS, "gzip")


def _unknown(variable: str, words: list[str], known: frozenset[str], usual: str) -> Iterator[Doubt]:
    for word in words:
        if word.strip() and word.strip() not in known:
            text = f"{word.strip()[:40]} is not known; known are {', '.join(sorted(known))}"
            yield Doubt(variable=variable, text=text, usual=usual)


def _numbers(environ: Mapping[str, str]) -> Iterator[Doubt]:
    for variable, usual in _NUMBERS.items():
        text = environ.get(variable)
        if text is not None and not _is_positive(text):
            yield Doubt(variable=variable, text="it is not a positive number", usual=usual)


def _endpoints(environ: Mapping[str, str]) -> Iterator[Doubt]:
    for variable in _ENDPOINTS:
        url = environ.get(variable)
        if url is not None and not url.lower().startswith(("http://", "https://")):
            text = "it must begin with http:// or https://"
            yield Doubt(variable=variable, text=text, usual="http://localhost:4318")


def _sampler(environ: Mapping[str, str]) -> Iterator[Doubt]:
    if environ.get("OTEL_TRACES_SAMPLER", "always_on") not in _SAMPLERS:
        text = "the gateway does not sample, every call is traced; let the collector do it"
        yield Doubt(variable="OTEL_TRACES_SAMPLER", text=text, usual="always_on")


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False
