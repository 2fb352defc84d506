"""The processes of a server leg: the fixture, and thoughtgate in front of it as a user runs it.

Never shares state between legs: each has a fixture, a home and a gateway of its own.
"""

import json
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conformance.fixture import NAME, SEEN
from tests.support.gate import ROOT, Gate, gate, home, python_server
from thoughtgate.testing.otlp import OtlpReceiver

START: Final = 30.0
STOP: Final = 10.0

UNPREFIXED: Final = """
[domains.default]
prefixed = false
max_tools = 1000
"""
"""One server under its own names: the name table is all that differs from the usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A gateway before a server, and what receives its spans."""

    running: Gate
    receiver: OtlpReceiver

    @property
    def url(self) -> str:
        """Return the endpoint."""
        return self.running.url()


class Unready(Exception):
    """The fixture server did not say its address in time."""


@contextmanager
def fixture() -> Iterator[str]:
    """Serve the fixture on a port of its own and yield its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.fixture"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield _announced(process)
    finally:
        process.terminate()
        try:
            process.wait(STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP)


def _announced(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    overdue = threading.Timer(START, process.kill)
    overdue.start()
    try:
        with process.stdout as lines:
            url = lines.readline().strip()
    finally:
        overdue.cancel()
    if not url:
        raise Unready
    return url


def seen(url: str) -> dict[str, int]:
    """Return how often the fixture at `url` was asked for each target."""
    with urllib.request.urlopen(url.removesuffix("/mcp") + SEEN, timeout=START) as answer:
        counts: dict[str, int] = json.load(answer)
    return counts


def at(url: str, settings: str = "") -> str:
    """Return the lines that configure the server at `url`."""
    return f"[servers.{NAME}]\nurl = {json.dumps(url)}\n{settings}"


def child(counted: Path) -> str:
    """Return the lines that configure the fixture as a child, which counts into a file."""
    return python_server(NAME, "tests.conformance.fixture", "stdio", str(counted))


@contextmanager
def in_front(server: str) -> Iterator[Front]:
    """Serve a gateway before a server, ready when the block begins."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, OtlpReceiver() as receiver:
        place = home(
            Path(folder),
            server + UNPREFIXED,
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
            OTEL_BSP_SCHEDULE_DELAY="100",
        )
        with gate(place) as running:
            yield Front(running=running, receiver=receiver)
