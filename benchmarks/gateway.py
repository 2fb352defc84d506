"""The gateway under measurement: validation both ways, tracing and audit on, in a home of its own.

Never faster than what users run: it is the command `thoughtgate serve` with a configuration file.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import free_port, own, process


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway that answers: its pid, port, and the receiver of its traces."""

    pid: int
    port: int

    def url(self, domain: str = "") -> str:
        """Return the endpoint of a domain."""
        path = f"/mcp/{domain}" if domain else "/mcp"
        return f"http://127.0.0.1:{self.port}{path}"


@contextmanager
def upstream(kind: str, tools: int = 3) -> Iterator[tuple[int, int]]:
    """Run a tool server over HTTP; yield its pid and port."""
    port = free_port()
    with process(own("echo_server.py", kind, "--port", port, "--tools", tools), port) as pid:
        yield pid, port


@contextmanager
def receiver() -> Iterator[tuple[int, str]]:
    """Run a receiver of traces that costs next to nothing; yield its pid and address."""
    port = free_port()
    with process(own("otlp_sink.py", port), port) as pid:
        yield pid, f"http://127.0.0.1:{port}"


@contextmanager
def gateway(
    home: Path, servers: Mapping[str, str | Sequence[str]], traces: str, more: str = ""
) -> Iterator[Running]:
    """Run a gateway over `servers`, by name: a URL or a command; `more` is put into its file.

    A home that was used before keeps what the gateway knew.
    """
    port = free_port()
    home.mkdir(exist_ok=True)
    config = home / "gate.toml"
    config.write_text(_config(port, servers, more), encoding="utf-8")
    environ = {
        "THOUGHTGATE_HOME": str(home / "state"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": traces,
    }
    command = [sys.executable, "-m", "thoughtgate", "--config", str(config), "serve"]
    with process(command, port, environ, log=home / "log") as pid:
        yield Running(pid=pid, port=port)


def _config(port: int, servers: Mapping[str, str | Sequence[str]], more: str) -> str:
    lines = ["[gateway]", f"port = {port}"]
    for name, where in servers.items():
        place = f'url = "{where}"' if isinstance(where, str) else f"command = {list(where)!r}"
        lines += [f"[servers.{name}]", place, 'results = "strict"']
    return os.linesep.join([*lines, more, ""])
