"""The gateway under measurement: validation both ways, tracing and audit on, in a home of its own.

Never faster than what users run: it is the command `thoughtgate serve` with a configuration file.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import Load, Watch
from benchmarks.processes import free_port, own, process

Places = Mapping[str, str | Sequence[str]]
"""Tool servers by name: a URL or a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway that answers: its pid, its port, and where it keeps what it knows."""

    pid: int
    port: int
    home: Path

    def url(self, domain: str = "") -> str:
        """Return the endpoint of a domain."""
        path = f"/mcp/{domain}" if domain else "/mcp"
        return f"http://127.0.0.1:{self.port}{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Tool servers of several kinds, ready for a gateway, and a receiver of its traces."""

    places: Places
    upstreams: Mapping[str, Watch]
    receiver: Watch
    traces: str

    def watched(self, kind: str, running: Running | None) -> Mapping[str, Watch]:
        """Return whose CPU counts for calls to one kind, straight or through a gateway."""
        up = {"upstream": self.upstreams[kind]} if kind in self.upstreams else {}
        if running is None:
            return up
        return {"gateway": Watch(pid=running.pid, lazy=True), "receiver": self.receiver, **up}

    def load(self, kind: str, running: Running | None) -> Load:
        """Return a load for one kind, straight or through a gateway; its era is to be set."""
        if running is not None:
            return Load(url=running.url(), tools=[f"{kind}__echo"], era="")
        place = self.places[kind]
        return Load(url=place, era="") if isinstance(place, str) else Load(command=place, era="")


@contextmanager
def stand(*kinds: str) -> Iterator[Stand]:
    """Run a tool server of each kind: `default`, `fast`, or `stdio`, which is only a command."""
    places: dict[str, str | Sequence[str]] = {}
    upstreams = {}
    with ExitStack() as ending:
        receiver_pid, traces = ending.enter_context(receiver())
        for kind in kinds:
            if kind == "stdio":
                places[kind] = own("echo_server.py", "stdio")
                continue
            pid, port = ending.enter_context(upstream(kind))
            places[kind] = f"http://127.0.0.1:{port}/mcp"
            upstreams[kind] = Watch(pid=pid)
        yield Stand(
            places=places, upstreams=upstreams, receiver=Watch(pid=receiver_pid), traces=traces
        )


@contextmanager
def before(*kinds: str) -> Iterator[tuple[Stand, Running]]:
    """Run a tool server of each kind, and a gateway before them all in a place of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        stand(*kinds) as standing,
        gateway(Path(folder) / "gate", standing.places, standing.traces) as running,
    ):
        yield standing, running


@contextmanager
def upstream(kind: str, tools: int = 4) -> Iterator[tuple[int, int]]:
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
    home: Path,
    servers: Places,
    traces: str,
    *,
    more: str = "",
    workers: int = 1,
    program: Sequence[str] = (sys.executable, "-m", "thoughtgate"),
) -> Iterator[Running]:
    """Run a gateway over `servers`, by name: a URL or a command; `more` is put into its file.

    A home that was used before keeps what the gateway knew. Without `traces` nothing is traced.
    """
    port = free_port()
    home.mkdir(exist_ok=True)
    config = home / "gate.toml"
    config.write_text(_config(port, workers, servers, more), encoding="utf-8")
    environ = {
        "THOUGHTGATE_HOME": str(home / "state"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": traces,
    }
    command = [*program, "--config", str(config), "serve"]
    with process(command, port, environ, log=home / "log") as pid:
        yield Running(pid=pid, port=port, home=home)


def _config(port: int, workers: int, servers: Places, more: str) -> str:
    lines = ["[gateway]", f"port = {port}", f"workers = {workers}"]
    for name, where in servers.items():
        place = f'url = "{where}"' if isinstance(where, str) else f"command = {list(where)!r}"
        lines += [f"[servers.{name}]", place, 'results = "strict"']
    return os.linesep.join([*lines, more, ""])
