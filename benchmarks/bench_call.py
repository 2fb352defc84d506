"""What a call through the gateway costs: CPU per call and added latency, beside the direct call.

    python -m benchmarks.bench_call [--json] [--calls N] [--rounds N]

Validation both ways, tracing to a local OTLP receiver and audit are on. Every row is the median of
rounds that alternate between direct and gateway. CPU is the dependable figure on a shared machine.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.load import HANDSHAKE, STATELESS, Load, Measured, measure

HERE = Path(__file__).resolve().parent
RECEIVER = (
    "import sys, time; from thoughtgate.testing.otlp import OtlpReceiver\n"
    "with OtlpReceiver() as receiver:\n"
    "    print(receiver.url, flush=True); sys.stdin.read()\n"
)
START = 30.0


@contextmanager
def process(command: list[str], environ: Mapping[str, str], port: int) -> Iterator[int]:
    """Run a process until the block ends; wait until it listens on `port`."""
    with subprocess.Popen(command, env={**os.environ, **environ}) as running:
        try:
            _wait(port)
            yield running.pid
        finally:
            running.terminate()


@contextmanager
def receiver() -> Iterator[str]:
    """Run an OTLP receiver in a process of its own; yield its address."""
    command = [sys.executable, "-c", RECEIVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.terminate()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def _wait(port: int) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(port)


def rows(calls: int, rounds: int) -> list[dict[str, Any]]:
    """Measure every row and return them."""
    with ExitStack() as ending:
        home = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        up, gate = free_port(), free_port()
        echo = [sys.executable, str(HERE / "echo_server.py"), str(up), "fast"]
        pids = {"upstream": ending.enter_context(process(echo, {}, up))}
        config = home / "gate.toml"
        config.write_text(
            f"[gateway]\nport = {gate}\n"
            f'[servers.echo]\nurl = "http://127.0.0.1:{up}/mcp"\nresults = "strict"\n',
            encoding="utf-8",
        )
        environ = {
            "THOUGHTGATE_HOME": str(home / "state"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": ending.enter_context(receiver()),
        }
        serve = [sys.executable, "-m", "thoughtgate", "--config", str(config), "serve"]
        pids["gateway"] = ending.enter_context(process(serve, environ, gate))
        urls = {
            "direct": (f"http://127.0.0.1:{up}/mcp", "echo"),
            "gateway": (f"http://127.0.0.1:{gate}/mcp", "echo__echo"),
        }
        return [
            _row(name, era, sessions, _rounds(urls, (era, sessions, calls), pids, rounds)[name])
            for era in (STATELESS, HANDSHAKE)
            for sessions in (1, 32)
            for name in urls
        ]


def _rounds(
    urls: Mapping[str, tuple[str, str]],
    shape: tuple[str, int, int],
    pids: Mapping[str, int],
    rounds: int,
) -> dict[str, list[Measured]]:
    era, sessions, calls = shape
    found: dict[str, list[Measured]] = {name: [] for name in urls}
    for _ in range(rounds):
        for name, (url, tool) in urls.items():
            load = Load(
                url=url,
                tool=tool,
                arguments={"text": "hello"},
                era=era,
                sessions=sessions,
                calls=calls,
            )
            found[name].append(asyncio.run(measure(load, pids)))
    return found


def _row(name: str, era: str, sessions: int, found: list[Measured]) -> dict[str, Any]:
    def median(values: Iterator[float]) -> float:
        return round(statistics.median(values), 3)

    return {
        "path": name,
        "era": era,
        "sessions": sessions,
        "calls": sum(one.calls for one in found),
        "errors": sum(one.errors for one in found),
        "rate": median(one.rate for one in found),
        "p50_ms": median(one.p50 for one in found),
        "p99_ms": median(one.p99 for one in found),
        "gateway_cpu_ms": median(one.cpu["gateway"] for one in found),
        "upstream_cpu_ms": median(one.cpu["upstream"] for one in found),
    }


def main() -> int:
    """Print the table, or JSON; 1 when a call failed."""
    parser = argparse.ArgumentParser(description="CPU and latency of a call through the gateway.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    found = rows(given.calls, given.rounds)
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    (out / "call.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    if given.json:
        print(json.dumps(found, indent=1))
    else:
        print("  ".join(found[0]))
        for row in found:
            print("  ".join(f"{value!s:>{len(key)}}" for key, value in row.items()))
    return 1 if any(row["errors"] for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
