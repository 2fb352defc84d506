"""Faults of a gRPC server beyond one call: at connecting, opening and listing, storms, cancels."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from grpc import aio

from tests.support.upstreams import Rig, rig
from tests.support.waiting import until, within
from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamError,
    UpstreamLost,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import GrpcTransport, Server, UpstreamState
from thoughtgate.testing.faults import read_plan
from thoughtgate.testing.grpc_host import FakeGrpc, fake_grpc
from thoughtgate.upstream.grpc.channel import Answers
from thoughtgate.upstream.grpc.native import MOST_TOLD

HOSTILE = "password=hunter2\r\n\x1b[31m at /srv/app.py\u202e"
CANCELS = 2_000


@pytest.fixture
async def fake() -> AsyncIterator[FakeGrpc]:
    async with fake_grpc() as made:
        yield made


def plan(fake: FakeGrpc, *faults: dict[str, Any]) -> None:
    fake.server.faults.put(read_plan(list(faults)))


def server(fake: FakeGrpc, **fields: Any) -> Server:
    return Server(name="peer", transport=GrpcTransport(url=fake.url), **fields)


def asked(fake: FakeGrpc, method: str) -> int:
    return sum(message.get("method") == method for message in fake.server.seen)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"name": "status", "code": 400}, "cannot be reached"),
        ({"name": "wrong"}, "cannot be reached"),
        ({"name": "hang"}, "0.4 seconds"),
    ],
)
async def test_a_port_that_speaks_something_else_is_told_and_called_once_it_is_mended(
    fake: FakeGrpc, fault: dict[str, Any], said: str
) -> None:
    plan(fake, {**fault, "on": "connect"})
    async with rig(server(fake, start_timeout=0.4)) as made:
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.upstreams.discover("peer"))
        assert said in caught.value.message
        plan(fake)
        await within(made.upstreams.restart("peer"))
        assert await made.call("echo", {"n": 1}) == {"n": 1}


@pytest.mark.parametrize("on", ["initialize", "tools/list"])
async def test_each_status_at_opening_and_listing_says_why_in_words_that_may_be_shown(
    fake: FakeGrpc, on: str
) -> None:
    for code in range(1, 17):
        plan(fake, {"name": "error", "on": on, "code": code, "text": HOSTILE})
        async with rig(server(fake, start_timeout=2)) as made:
            with pytest.raises(UpstreamError):
                await within(made.upstreams.discover("peer"))
            status = made.statuses[-1]
        assert (status.state is UpstreamState.NEEDS_AUTH) == (code == 16), (on, code)
        assert status.state is not UpstreamState.READY
        assert status.reason.isprintable()
        if code in {2, 4, 7, 13, 14, 15, 16}:
            assert "hunter2" not in status.reason, (on, code)


async def test_credentials_that_are_refused_in_a_call_are_a_matter_for_an_operator(
    fake: FakeGrpc,
) -> None:
    async with rig(server(fake)) as made:
        await made.call("echo")
        plan(fake, {"name": "error", "code": 16, "text": HOSTILE})
        with pytest.raises(UpstreamDenied) as caught:
            await within(made.send("echo"))
        assert "hunter2" not in str(caught.value)
        await until(lambda: made.statuses[-1].state is UpstreamState.NEEDS_AUTH)


async def test_a_tool_that_is_gone_is_told_and_the_list_is_read_again(fake: FakeGrpc) -> None:
    async with rig(server(fake)) as made:
        await made.call("echo")
        before = asked(fake, "tools/list")
        plan(fake, {"name": "error", "code": 5, "text": HOSTILE, "times": 1})
        with pytest.raises(UpstreamReplied) as caught:
            await within(made.send("echo"))
        assert caught.value.rpc_code == -32602
        assert "hunter2" not in str(caught.value)
        await until(lambda: asked(fake, "tools/list") > before)


async def test_a_storm_of_revisions_is_listed_a_few_times_only(fake: FakeGrpc) -> None:
    async with rig(server(fake)) as made:
        await made.call("echo")
        await until(lambda: fake.server.listeners)
        before = asked(fake, "tools/list")
        plan(fake, {"name": "storm", "count": 500})
        for n in range(3):
            assert await made.call("echo", {"n": n}) == {"n": n}
        assert fake.revision >= MOST_TOLD  # then nobody listens for a moment
        await until(lambda: asked(fake, "tools/list") > before)
        assert asked(fake, "tools/list") - before <= 6


async def test_pages_that_go_in_circles_end_with_a_warning(fake: FakeGrpc) -> None:
    plan(fake, {"name": "loop", "on": "tools/list"})
    async with rig(server(fake)) as made:
        listing = await within(made.upstreams.discover("peer"))
        assert "echo" in {tool["name"] for tool in listing.tools}
        assert listing.warnings
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_a_watch_that_ends_again_and_again_costs_no_call(fake: FakeGrpc) -> None:
    plan(fake, {"name": "error", "on": "GET", "code": 13})
    async with rig(server(fake)) as made:
        for n in range(5):
            assert await made.call("echo", {"n": n}) == {"n": n}


async def test_a_server_that_restarts_all_the_time_loses_calls_and_is_called_again(
    fake: FakeGrpc,
) -> None:
    async with rig(server(fake)) as made:
        for n in range(20):
            hanging = asyncio.ensure_future(made.send("hang"))
            await until(lambda: fake.server.running)
            fake.front.cut()
            with pytest.raises(UpstreamLost):
                await within(hanging)
            await until(lambda: not fake.server.running)
            assert await _again(made, n) == {"n": n}


async def _again(made: Rig, n: int) -> Any:
    """Call until the connection is there again: what was not sent may be."""
    while True:
        with suppress(UpstreamUnreachable, UpstreamLost):
            return await made.call("echo", {"n": n})
        await asyncio.sleep(0)


async def test_a_server_that_neither_reads_nor_writes_is_called_again_after_a_restart(
    fake: FakeGrpc,
) -> None:
    async with rig(server(fake)) as made:
        await made.call("echo")
        plan(fake, {"name": "half_open", "times": 1})
        with pytest.raises(UpstreamTimeout):
            await within(made.send("echo", timeout=0.3))
        await within(made.upstreams.restart("peer"))
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_thousands_of_cancelled_calls_leave_nothing_here_and_nothing_there(
    fake: FakeGrpc,
) -> None:
    async with rig(server(fake)) as made:
        await _cancelled(made, fake, CANCELS // 10)  # what is kept once is kept now
        before = _held()
        await _cancelled(made, fake, CANCELS)
        await until(lambda: _held() - before == Counter())
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def _cancelled(made: Rig, fake: FakeGrpc, count: int) -> None:
    """Let so many calls begin and be given up, some hundred at a time."""
    for _ in range(count // 100):
        calls = [asyncio.ensure_future(made.send("hang")) for _ in range(100)]
        await until(lambda: fake.server.running == 100)
        for call in calls:
            call.cancel()
        await within(asyncio.wait(calls))
        assert all(call.cancelled() for call in calls)
        await until(lambda: not fake.server.running)
    fake.server.seen.clear()


def _held() -> Counter[str]:
    """Return how many there are of what a call is made of: tasks, streams and RPCs."""
    gc.collect()
    kinds = (Answers, aio.Call, asyncio.Task)
    return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, kinds))
