"""The life of a link to a native gRPC server: opened, watched, broken off, opened again."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from tests.support.native_peer import NativePeer, Sick, grpc_server, serving
from tests.support.upstreams import Rig, rig
from tests.support.waiting import until, within
from thoughtgate.core import errors
from thoughtgate.core.servers import GrpcTransport, Sharing, UpstreamState
from thoughtgate.core.tools import Effect
from thoughtgate.upstream.grpc import native
from thoughtgate.upstream.grpc.channel import connect
from thoughtgate.upstream.ports import Identity
from thoughtgate.upstream.sharing import is_piped, sharing_of
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb


@pytest.fixture
async def peer() -> NativePeer:
    return NativePeer()


def at(port: int, **fields: Any) -> Any:
    return grpc_server(f"grpc://127.0.0.1:{port}", **fields)


@pytest.fixture
async def made(peer: NativePeer) -> AsyncIterator[Rig]:
    async with serving(peer) as port, rig(at(port)) as one:
        yield one


def test_everybody_shares_the_one_channel() -> None:
    server = at(1, sharing=Sharing.SESSION)
    assert sharing_of(server, None) is Sharing.SHARED
    assert not is_piped(server)


async def test_a_change_is_heard_and_the_tools_are_listed_again(
    peer: NativePeer, made: Rig
) -> None:
    await within(made.upstreams.discover("peer"))
    await until(lambda: peer.watching)
    await peer.change()
    await until(lambda: "extra0" in made.names())


async def test_a_change_that_came_while_nobody_watched_is_heard_at_once(peer: NativePeer) -> None:
    async with serving(peer) as port:
        async with rig(at(port)) as made:
            await within(made.upstreams.discover("peer"))
            await until(lambda: peer.watching)
        await until(lambda: not peer.watching)
        async with rig(at(port)) as made:
            await within(made.upstreams.discover("peer"))
            await peer.change()  # perhaps before the new stream, perhaps after
            await until(lambda: "extra0" in made.names())


async def test_a_server_that_cannot_be_watched_is_asked_again_when_its_list_is_old(
    peer: NativePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.upstream.grpc.native.SHORTEST_TTL", 0.01)
    peer.watchable, peer.ttl = False, 0.05
    async with serving(peer) as port, rig(at(port)) as made:
        await within(made.upstreams.discover("peer"))
        peer.extra.append("late")
        await until(lambda: "late" in made.names())
        assert made.listings[-1].capabilities == {"tools": {}}


async def test_a_server_that_starts_late_is_called_then() -> None:
    peer = NativePeer()
    async with serving(NativePeer()) as port:
        pass
    async with rig(at(port)) as made:
        with pytest.raises(errors.UpstreamUnreachable, match="nobody listens"):
            await within(made.send("echo"))
        async with serving(peer, address=f"127.0.0.1:{port}"):
            await until(lambda: made.upstreams.statuses()[0].state is UpstreamState.READY)
            assert await made.call("echo", {"n": 2}) == {"n": 2}


async def test_a_connection_that_breaks_is_opened_again_and_the_list_read(
    peer: NativePeer,
) -> None:
    again = NativePeer()
    again.extra.append("newer")
    async with rig() as made:
        async with serving(peer) as port:
            await within(made.upstreams.apply([at(port)]))
            await within(made.upstreams.discover("peer"))
            await until(lambda: peer.watching)
        await until(lambda: made.upstreams.statuses()[0].state is not UpstreamState.READY)
        async with serving(again, address=f"127.0.0.1:{port}"):
            await until(lambda: "newer" in made.names())
            assert await made.call("echo", {"n": 2}) == {"n": 2}


async def test_a_server_that_ends_its_connections_now_and_then_loses_no_call(
    peer: NativePeer,
) -> None:
    async with serving(peer, age=0.2) as port, rig(at(port)) as made:
        await within(made.upstreams.discover("peer"))
        listed = peer.listed
        sending = asyncio.ensure_future(made.send("wait"))
        await until(lambda: peer.listed > listed)  # another connection: perhaps another server
        for n in range(20):
            assert await made.call("echo", {"n": n}) == {"n": n}
        assert not sending.done()
        sending.cancel()
        await until(lambda: not peer.waiting)
    assert UpstreamState.DEGRADED not in {status.state for status in made.statuses}


async def test_a_write_that_was_under_way_is_lost_and_not_sent_again(peer: NativePeer) -> None:
    again = NativePeer()
    async with rig() as made:
        async with serving(peer) as port:
            await within(made.upstreams.apply([at(port)]))
            sending = asyncio.ensure_future(made.send("wait"))
            await until(lambda: peer.waiting)
        async with serving(again, address=f"127.0.0.1:{port}"):
            with pytest.raises(errors.UpstreamLost) as caught:
                await within(sending)
            assert "server peer" in caught.value.message
            await until(lambda: again.watching)
            assert again.calls == []


class Hasty(NativePeer):
    """A peer that breaks the first call off, as one does that ends while a call is under way."""

    async def tool_wait(self, request: Any, context: Any) -> AsyncIterator[Any]:
        if len(self.calls) == 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "going away")
        async for event in super().tool_wait(request, context):
            yield event


async def test_a_read_that_was_under_way_is_sent_again_with_the_same_name() -> None:
    hasty = Hasty()
    async with serving(hasty) as port, rig(at(port)) as made:
        sending = asyncio.ensure_future(made.send("wait", effect=Effect.READ))
        await until(lambda: hasty.waiting)
        first, second = hasty.calls
        assert first.call_id == second.call_id
        sending.cancel()
        await until(lambda: not hasty.waiting)


async def test_a_stream_that_is_left_open_after_its_result_is_cancelled(
    peer: NativePeer, made: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.upstream.grpc.native_call.END", 0.05)
    assert await made.call("lasting") == {"a": 1}
    await until(lambda: not peer.waiting)


class Talkative(NativePeer):
    """A peer that tells one revision after the other, as fast as they are taken."""

    async def WatchTools(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.watching += 1
        for number in itertools.count():
            yield pb.WatchToolsResponse(revision=f"r{number}")


async def test_a_server_that_tells_revisions_without_end_is_heard_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "FIRST_PAUSE", 0.01)
    peer, heard = Talkative(), list[int]()
    async with serving(peer) as port:
        transport = GrpcTransport(url=f"grpc://127.0.0.1:{port}")
        link = native.NativeLink(await connect(transport), Identity(name="test", version="1"))
        watching = asyncio.ensure_future(link.watch(lambda _: heard.append(peer.watching)))
        await until(lambda: peer.watching == 3)
        watching.cancel()
        await asyncio.wait([watching])
        await link.aclose()
    assert heard.count(1) <= native.MOST_TOLD


async def test_a_removed_server_s_watch_ends_with_its_channel(peer: NativePeer, made: Rig) -> None:
    await within(made.upstreams.discover("peer"))
    await until(lambda: peer.watching)
    await within(made.upstreams.apply([]))
    await until(lambda: not peer.watching)


async def test_calls_that_wait_when_the_channel_closes_are_lost(
    peer: NativePeer, made: Rig
) -> None:
    sending = asyncio.ensure_future(made.send("wait"))
    await until(lambda: peer.waiting)
    await within(made.upstreams.aclose())
    with pytest.raises(errors.UpstreamLost):
        await within(sending)
    await until(lambda: not peer.waiting)


async def test_a_server_that_does_not_serve_now_is_not_ready(peer: NativePeer) -> None:
    async with serving(peer, more=Sick()) as port, rig(at(port)) as made:
        with pytest.raises(errors.UpstreamUnreachable, match="does not serve now"):
            await within(made.upstreams.discover("peer"))


async def test_a_server_that_speaks_another_protocol_is_told_how_to_be_used() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with rig(at(port)) as made:
        with pytest.raises(errors.UpstreamUnreachable, match="reflect"):
            await within(made.upstreams.discover("peer"))
    await within(server.stop(None))


async def test_headers_reach_the_server_with_each_call(peer: NativePeer) -> None:
    headers = {"Authorization": "Bearer x", "x-raw-bin": "AP8"}
    async with serving(peer) as port, rig(at(port, headers=headers)) as made:
        seen = await made.call("meta")
    assert seen["headers"]["authorization"] == "Bearer x"
    assert seen["headers"]["x-raw-bin"] == str(b"\x00\xff")
    assert seen["headers"]["user-agent"].startswith("thoughtgate ")


async def test_a_header_that_cannot_be_sent_opens_nothing(peer: NativePeer) -> None:
    async with serving(peer) as port, rig(at(port, headers={"x": "a\nb"})) as made:
        with pytest.raises(errors.UpstreamUnreachable, match="header 'x'"):
            await within(made.upstreams.discover("peer"))
    assert peer.listed == 0


async def test_an_address_of_ip_version_6_is_reached(peer: NativePeer) -> None:
    async with (
        serving(peer, address="[::1]:0") as port,
        rig(grpc_server(f"grpc://[::1]:{port}")) as made,
    ):
        assert await made.call("echo", {"n": 6}) == {"n": 6}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("grpc://", "HOST:PORT"),
        ("http://127.0.0.1:1", "grpc://"),
        ("grpc://127.0.0.1", "names no port"),
        ("grpc://127.0.0.1:99999", "malformed"),
        ("grpc://user:s3cret@127.0.0.1:1", "no user and password"),
        ("grpc://127.0.0.1:1/path", "ends after the port"),
        ("grpc://münchen.example:1", "xn--"),
    ],
)
async def test_a_url_that_is_no_address_is_refused(url: str, words: str) -> None:
    async with rig(grpc_server(url)) as made:
        with pytest.raises(errors.UpstreamUnreachable, match=words) as caught:
            await within(made.upstreams.discover("peer"))
    assert "s3cret" not in caught.value.message


async def test_a_name_that_nobody_knows_is_said_to_be_unknown() -> None:
    async with rig(grpc_server("grpc://nobody.invalid:1")) as made:
        with pytest.raises(errors.UpstreamUnreachable, match="name is not known"):
            await within(made.upstreams.discover("peer"))
