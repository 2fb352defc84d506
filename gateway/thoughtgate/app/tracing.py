"""Where traces go: as the environment says, else as the configuration does.

Never lets the configuration win: the OTEL_* variables are how operators say it everywhere.
"""

from collections.abc import Mapping

from thoughtgate.config.files import Loaded

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def trace_variables(loaded: Loaded, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the configured endpoint in it, unless it names one itself."""
    traces = loaded.settings.gateway.traces
    if not traces or environ.get(_ENDPOINT, "").strip():
        return environ
    return {**environ, _ENDPOINT: traces}
