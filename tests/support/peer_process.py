"""server-everything over HTTP, as a process of its own.

Never leaves it behind.
"""

import os
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.gate import START, STOP
from tests.support.peers import environment, everything


@contextmanager
def everything_over(carrier: str) -> Iterator[str]:
    """Serve over `streamableHttp` or `sse`, and yield the URL where clients connect."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
    process = subprocess.Popen(
        everything(carrier),
        env={**environment(), "PORT": port},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        _hear(process.stderr.fileno(), f"port {port}".encode())
        yield f"http://127.0.0.1:{port}/{'sse' if carrier == 'sse' else 'mcp'}"
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate(timeout=STOP)


def _hear(stream: int, wanted: bytes) -> None:
    """Read until `wanted` was said."""
    said = b""
    while wanted not in said:
        assert select.select([stream], [], [], START)[0], said
        part = os.read(stream, 4096)
        assert part, said
        said += part
