"""Clients over gRPC that ask too much, say it wrongly, or never listen."""

import asyncio
import os
from contextlib import closing
from typing import Any

import grpc
import pytest

from tests.support.fake_gateway import FakeGateway, done
from tests.support.grpc_gateway import grpc_serving
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Notice, NoticeKind, Result
from thoughtgate.surface.settings import FaceSettings

KILOBYTE = 1_024


def body(size: int) -> bytes:
    return b'{"a":"%b"}' % (b"x" * size)


async def ended(awaitable: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await awaitable
    code: grpc.StatusCode = caught.value.code()
    return code


async def test_a_message_beyond_the_limit_is_refused_and_reaches_nobody() -> None:
    gateway = FakeGateway().add("echo")
    settings = FaceSettings(info={}, max_body=64 * KILOBYTE)
    async with grpc_serving(gateway, settings) as caller:
        large = caller.events("echo", body(64 * KILOBYTE))
        assert await ended(large) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert gateway.calls == []
        await caller.events("echo", body(60 * KILOBYTE))
    assert len(gateway.calls) == 1


async def test_five_megabytes_are_too_many_by_default() -> None:
    async with grpc_serving(FakeGateway().add("echo")) as caller:
        large = caller.events("echo", body(5_000 * KILOBYTE))
        assert await ended(large) is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_metadata_beyond_the_limit_is_refused() -> None:
    gateway = FakeGateway().add("echo")
    async with grpc_serving(gateway) as caller:
        huge = caller.events("echo", metadata=(("x", "y" * 20_000),))
        assert await ended(huge) is grpc.StatusCode.RESOURCE_EXHAUSTED
        many = tuple((f"key-{number}", "y" * 100) for number in range(300))
        crowd = caller.events("echo", metadata=many)
        assert await ended(crowd) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert gateway.calls == []
        odd = (("x-bin", b"\x00\xff"), ("traceparent", "no"), ("x", "1"), ("x", "2"))
        await caller.events("echo", metadata=odd)


async def test_requests_beyond_the_limit_hear_when_to_come_back() -> None:
    free, running = asyncio.Event(), []

    async def wait(call: Call) -> Result:
        running.append(call)
        await free.wait()
        return done()

    settings = FaceSettings(info={}, max_running=10, max_streams=10)
    async with grpc_serving(FakeGateway().add("wait", wait), settings) as caller:
        calls = [asyncio.ensure_future(caller.events("wait")) for _ in range(20)]
        await until(lambda: len(running) == 20)
        assert await ended(caller.events("wait")) is grpc.StatusCode.RESOURCE_EXHAUSTED
        free.set()
        await within(asyncio.gather(*calls))
        await caller.events("wait")


async def test_hundreds_of_streams_at_once_are_all_served() -> None:
    async with grpc_serving(FakeGateway().add("echo")) as caller:
        answers = await within(
            asyncio.gather(*(caller.events("echo", b'{"n":%d}' % n) for n in range(500))), 30
        )
    told = [result.structured_content_json for ((_, result),) in answers]
    assert told == [b'{"n":%d}' % n for n in range(500)]


async def test_a_client_that_never_reads_holds_up_its_call_and_nothing_else() -> None:
    told = 0
    over = asyncio.Event()

    async def flood(call: Call) -> Result:
        nonlocal told
        try:
            while True:
                params = {"progress": told, "message": "x" * 100_000}
                await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params=params))
                told += 1
        finally:
            over.set()

    gateway = FakeGateway().add("flood", flood).add("echo")
    async with grpc_serving(gateway, patience=0.3) as caller:
        stream = caller.call("flood", progress=True)
        await within(stream.read())
        for _ in range(20):
            await caller.events("echo")
        await within(over.wait())
        assert told < 500
        assert await ended(within(_read_up(stream))) is grpc.StatusCode.ABORTED
        await caller.events("echo")


async def _read_up(stream: Any) -> None:
    while await stream.read() is not grpc.aio.EOF:
        pass


async def test_a_client_that_leaves_in_the_middle_of_progress_ends_the_call() -> None:
    over = asyncio.Event()

    async def flood(call: Call) -> Result:
        try:
            while True:
                params = {"progress": 1, "message": "x" * 10_000}
                await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params=params))
        finally:
            over.set()

    async with grpc_serving(FakeGateway().add("flood", flood).add("echo")) as caller:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{caller.port}") as channel:
            other = type(caller)(caller.face, caller.port, channel, type(caller.stub)(channel))
            stream = other.call("flood", progress=True)
            await within(stream.read())
        await within(over.wait())
        await caller.events("echo")


@pytest.mark.parametrize(
    "said",
    [
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
        b"\x00" * 100_000,
    ],
)
async def test_what_is_no_grpc_is_hung_up_on_and_disturbs_nobody(said: bytes) -> None:
    async with grpc_serving(FakeGateway().add("echo")) as caller:
        reader, writer = await asyncio.open_connection("127.0.0.1", caller.port)
        with closing(writer):
            writer.write(said)
            await within(_drained(reader))
            await caller.events("echo")


@pytest.mark.parametrize("begun", [b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"PRI"])
async def test_a_connection_that_says_no_more_does_not_hold_up_the_end(begun: bytes) -> None:
    async with grpc_serving(FakeGateway().add("echo")) as caller:
        reader, writer = await asyncio.open_connection("127.0.0.1", caller.port)
        writer.write(begun)
        await caller.events("echo")
    await within(_drained(reader))
    writer.close()


async def _drained(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(65_536):
            pass
    except ConnectionResetError:
        pass


async def test_connections_are_bounded_and_the_next_one_is_closed_at_once() -> None:
    async with grpc_serving(FakeGateway().add("echo"), connections=5) as caller:
        await caller.events("echo")
        held = [await asyncio.open_connection("127.0.0.1", caller.port) for _ in range(4)]
        assert all([await within(reader.read(1)) for reader, _ in held])
        over, writer = await asyncio.open_connection("127.0.0.1", caller.port)
        await within(_drained(over))
        await caller.events("echo")
        for one in (writer, *(writer for _, writer in held)):
            one.close()


async def test_many_connections_that_come_and_go_leave_no_descriptor() -> None:
    async with grpc_serving(FakeGateway().add("echo")) as caller:
        await caller.events("echo")
        before = len(os.listdir("/dev/fd"))
        for _ in range(5):
            pairs = [await asyncio.open_connection("127.0.0.1", caller.port) for _ in range(40)]
            for _, writer in pairs:
                writer.close()
        await until(lambda: len(os.listdir("/dev/fd")) <= before)
        await caller.events("echo")
