"""The reply on a connection: what is written when."""

import asyncio
import logging
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from thoughtgate.surface.http_cycle import Cycle

OK = b"HTTP/1.1 200 OK\r\n"
LARGE = b"x" * 1_000_000


class Wire(asyncio.Transport):
    """A transport that keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.writes.append(b"".join(list_of_data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def served(*messages: dict[str, Any], method: str = "POST", wire: Wire | None = None) -> Wire:
    """Serve one request by an application that sends these messages."""
    wire, quiet = wire or Wire(), logging.getLogger("tests.quiet")
    scope: Any = {"type": "http", "method": method}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    cycle = Cycle(
        scope=scope,
        transport=wire,
        flow=FlowControl(wire),
        logger=quiet,
        access_logger=quiet,
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=True,
        on_response=lambda: None,
    )
    await cycle.run_asgi(app)
    return wire


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def length(data: bytes) -> tuple[bytes, bytes]:
    return (b"content-length", b"%d" % len(data))


@pytest.mark.parametrize("data", [b"{}", b"", LARGE])
async def test_a_whole_reply_is_one_write(data: bytes) -> None:
    wire = await served(start((b"x", b"y"), length(data)), body(data))
    assert wire.writes == [OK + b"x: y\r\ncontent-length: %d\r\n\r\n" % len(data) + data]
    assert not wire.closed


async def test_nothing_is_written_to_a_connection_that_has_closed_already(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wire = Wire()
    wire.close()
    await served(start(length(b"{}")), body(b"{}"), wire=wire)
    assert wire.writes == []
    assert not caplog.records  # that a client has left is no mistake of ours


async def test_the_head_of_a_stream_waits_for_nothing() -> None:
    wire = await served(start(), body(b"one", more=True), body(b"two", more=True), body(b""))
    head = OK + b"transfer-encoding: chunked\r\n\r\n"
    assert wire.writes == [head, b"3\r\none\r\n", b"3\r\ntwo\r\n", b"0\r\n\r\n"]


async def test_a_body_of_known_length_may_come_in_parts() -> None:
    wire = await served(start(length(b"onetwo")), body(b"one", more=True), body(b"two"))
    assert wire.writes == [OK + b"content-length: 6\r\n\r\none", b"two"]


@pytest.mark.parametrize("sent", [b"", b"on", b"onetwo"])
async def test_a_body_of_another_length_ends_the_connection_before_it_is_sent(sent: bytes) -> None:
    wire = await served(start(length(b"one")), body(sent))
    assert (wire.writes, wire.closed) == ([], True)


async def test_a_head_is_not_sent_for_a_reply_without_end() -> None:
    wire = await served(start(length(b"one")))
    assert (wire.writes, wire.closed) == ([], True)


async def test_a_reply_to_head_has_no_body() -> None:
    wire = await served(start(length(b"one")), body(b"one"), method="HEAD")
    assert wire.writes == [OK + b"content-length: 3\r\n\r\n"]
    assert not wire.closed


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb: c", b"a\rb", b"a\0b"])
async def test_no_header_makes_another(value: bytes) -> None:
    wire = await served(start((b"x", value), length(b"")), body(b""))
    assert [write.split(b"\r\n")[0] for write in wire.writes] == [
        b"HTTP/1.1 500 Internal Server Error"
    ]
    assert b"b: c" not in wire.writes[0]


async def test_the_last_reply_says_so_and_closes() -> None:
    wire = await served(start((b"connection", b"close"), length(b"")), body(b""))
    assert wire.writes == [OK + b"content-length: 0\r\nconnection: close\r\n\r\n"]
    assert wire.closed


@pytest.mark.parametrize(
    "messages",
    [[body(b"")], [start(length(b"")), start()], [start(length(b"")), body(b""), body(b"")]],
)
async def test_parts_out_of_turn_are_no_reply(messages: list[dict[str, Any]]) -> None:
    assert (await served(*messages)).closed
