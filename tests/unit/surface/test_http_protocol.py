"""A connection between its requests: kept while it is used, closed when it was idle for long."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
import uvicorn
from uvicorn.server import ServerState

from tests.support.waiting import until
from thoughtgate.surface.http_io import Receive, Scope, Send, respond
from thoughtgate.surface.http_protocol import TimedHttpProtocol

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that counts what is written."""

    def __init__(self, line: socket.socket) -> None:
        super().__init__({"socket": line})
        self.written = 0
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += 1

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await respond(send, 200, b"{}")


@pytest.fixture
def wire() -> Iterator[Wire]:
    with socket.socket(socket.AF_UNIX) as line:
        yield Wire(line)


@pytest.fixture
async def connection(wire: Wire) -> TimedHttpProtocol:
    config = uvicorn.Config(app, interface="asgi3", lifespan="off", log_config=None)
    config.load()
    made = TimedHttpProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    made.connection_made(wire)
    return made


async def test_one_clock_runs_on_while_requests_come(
    connection: TimedHttpProtocol, wire: Wire
) -> None:
    connection.data_received(GET)
    await until(lambda: wire.written == 1)
    clock = connection.timeout_keep_alive_task
    connection.data_received(GET)
    await until(lambda: wire.written == 2)
    assert connection.timeout_keep_alive_task is clock is not None
    connection.timeout_keep_alive_handler()  # it was set for the first request
    assert not wire.is_closing()
    assert connection.timeout_keep_alive_task is not None
    connection.connection_lost(None)
    assert connection.timeout_keep_alive_task is None


async def test_a_connection_that_was_idle_for_long_is_closed(
    connection: TimedHttpProtocol, wire: Wire
) -> None:
    connection.data_received(GET)
    connection.timeout_keep_alive_handler()
    assert not wire.is_closing()  # the request is not answered yet
    await until(lambda: wire.written == 1)
    connection.timeout_keep_alive = 0
    connection.timeout_keep_alive_handler()
    assert wire.is_closing()
    connection.connection_lost(None)
