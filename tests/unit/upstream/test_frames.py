"""What workers tell each other, as bytes: whole, bounded, and nothing that cannot be read."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.crews import crew_folder, crewed
from tests.support.upstreams import fake_stdio, http_server
from tests.support.waiting import until, within
from thoughtgate.core.errors import (
    CallerReplied,
    GateError,
    NotAsked,
    Overloaded,
    Refused,
    UpstreamDenied,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamReplied,
)
from thoughtgate.core.servers import UpstreamState, UpstreamStatus
from thoughtgate.core.workers import Crew
from thoughtgate.testing.fake_http import fake_http
from thoughtgate.upstream import door
from thoughtgate.upstream.auth import ScopeMissing
from thoughtgate.upstream.carried import error_of, fault_of
from thoughtgate.upstream.frame_pipe import LONGEST, FramePipe
from thoughtgate.upstream.frames import (
    Asking,
    Done,
    Fault,
    GivenUp,
    Wish,
    encode,
    read_guest,
    read_host,
)


@asynccontextmanager
async def ends() -> AsyncIterator[tuple[FramePipe, FramePipe, list[bytes]]]:
    """Give both ends of a pipe, and what comes out at the second."""
    heard: list[bytes] = []
    loop = asyncio.get_running_loop()
    with crew_folder() as folder:
        place, accepted = str(folder / "s"), list[FramePipe]()

        def accept() -> FramePipe:
            accepted.append(FramePipe(heard.append))
            return accepted[0]

        server = await loop.create_unix_server(accept, place)
        _, pipe = await loop.create_unix_connection(lambda: FramePipe(heard.append), place)
        await until(lambda: accepted)
        try:
            yield pipe, accepted[0], heard
        finally:
            server.close()
            pipe.abort()
            accepted[0].abort()
            await within(asyncio.wait([pipe.ended, accepted[0].ended]))


async def test_frames_of_any_size_come_whole_and_in_order() -> None:
    sent = [b"", b"a" * 3_000_000, b"b", b"c" * 70_000, b""]
    async with ends() as (pipe, _, heard):
        for frame in sent:
            await within(pipe.room())
            assert pipe.send(frame)
        await until(lambda: len(heard) == len(sent))
        assert heard == sent


async def test_nothing_is_sent_when_the_other_end_is_gone() -> None:
    async with ends() as (pipe, other, _):
        other.close()
        await within(asyncio.shield(pipe.ended))
        assert not pipe.send(b"a")
        await within(pipe.room())


async def said(crew: Crew, data: bytes) -> None:
    """Say something to the worker that runs the servers; returns when it has hung up."""
    reader, writer = await asyncio.open_unix_connection(str(crew.door(crew.index)))
    writer.write(data)
    await within(reader.read())
    writer.close()
    await within(writer.wait_closed())


async def test_a_frame_that_claims_to_be_endless_ends_its_pipe_and_no_other() -> None:
    async with crewed(fake_stdio()) as pair:
        await said(pair.crew, (LONGEST + 1).to_bytes(4, "big"))
        assert await pair.far.call("echo", {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    "frame", [b"\xc1", b"", b"\x93\x63\x01\x02", encode(GivenUp(number=1))[:-1]]
)
async def test_what_cannot_be_read_ends_its_pipe_and_no_other(
    frame: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with crewed(fake_stdio()) as pair:
        await said(pair.crew, len(frame).to_bytes(4, "big") + frame)
        assert "another worker cannot be understood" in caplog.text
        assert await pair.far.call("echo", {"a": 1}) == {"a": 1}


async def test_a_worker_that_reads_nothing_does_not_stay_when_the_door_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "PARTING", 0.05)
    status = UpstreamStatus(server="peer", state=UpstreamState.READY, reason="x" * 1_000_000)
    async with crewed(fake_stdio()) as pair:
        place = str(pair.crew.door(pair.crew.index))
        reader, writer = await asyncio.open_unix_connection(place)
        with contextlib.closing(writer):
            await within(reader.readexactly(1))  # it is in
            for _ in range(20):
                pair.door.stands(status)
            await within(pair.door.aclose())
            came = 0
            with contextlib.suppress(ConnectionError):
                while part := await within(reader.read(1 << 20)):
                    came += len(part)
            assert came < 20 * len(status.reason)


async def test_a_worker_hears_nothing_of_a_server_that_is_its_own_affair() -> None:
    heard: list[bytes] = []
    async with fake_http() as endpoint, crewed(http_server(endpoint.url)) as pair:
        place = str(pair.crew.door(pair.crew.index))
        loop = asyncio.get_running_loop()
        _, pipe = await loop.create_unix_connection(lambda: FramePipe(heard.append), place)
        await within(pair.own.upstreams.discover("peer"))
        pipe.send(encode(Asking(number=1, server="peer", wish=Wish.FIRST)))
        await until(lambda: heard)
        assert [type(read_host(frame)) for frame in heard] == [Done]
        pipe.abort()
        await within(asyncio.shield(pipe.ended))


async def test_only_this_user_can_come_in_by_the_door() -> None:
    async with crewed(fake_stdio()) as pair:
        assert mode(pair.crew.door(pair.crew.index)) == 0o600


def mode(place: Path) -> int:
    return place.stat().st_mode & 0o777


@pytest.mark.parametrize(
    "error",
    [
        UpstreamLost(message="a", data={"n": 2**70}),
        UpstreamGarbled(message="b", data={"status": 500}),
        UpstreamReplied(rpc_code=-1, rpc_message="c", rpc_data=[None, {"a": 1}]),
        CallerReplied(rpc_code=-2, rpc_message="d"),
        NotAsked(message="e"),
        Overloaded(message="f"),
    ],
)
def test_an_error_is_the_same_at_the_other_end(error: GateError) -> None:
    again = error_of(fault_of(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)


def test_an_error_that_nobody_expects_leaves_the_outcome_open() -> None:
    assert isinstance(error_of(fault_of(Refused(message="a"))), UpstreamLost)
    assert isinstance(error_of(Fault(code="new", message="b")), UpstreamLost)
    denied = error_of(fault_of(ScopeMissing(message="c")))
    assert type(denied) is UpstreamDenied


def test_a_frame_is_read_as_it_was_written() -> None:
    assert read_guest(encode(GivenUp(number=7))) == GivenUp(number=7)
