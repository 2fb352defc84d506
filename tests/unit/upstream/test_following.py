"""Subscriptions to resources: who is told of which change, and what the server is asked for."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from tests.support.callers import Client
from tests.support.upstreams import Rig, fake_stdio, http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.calls import Notice, NoticeKind, Question
from thoughtgate.core.errors import Overloaded, UpstreamError, UpstreamReplied
from thoughtgate.core.servers import Era, Sharing
from thoughtgate.core.tools import Kind
from thoughtgate.testing.fake_http import FakeHttp, fake_http
from thoughtgate.testing.fake_server import FakeServer
from thoughtgate.testing.fake_turn import Script
from thoughtgate.upstream.outlets import ROOM, Outlets
from thoughtgate.upstream.subscriptions import MAX_SUBSCRIPTIONS, MAX_URI, Subscriptions

ONE = "mem://one"
UPDATED = "notifications/resources/updated"
PEERS = [
    (transport, era, sharing)
    for transport in ("stdio", "http")
    for era in Era
    for sharing in (Sharing.SHARED, Sharing.SESSION)
    if transport == "http" or sharing is Sharing.SHARED  # else each client has a child
]


@pytest.fixture(params=PEERS, ids=lambda case: "-".join(case))
async def peer(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    transport, era, sharing = request.param
    if transport == "stdio":
        async with rig(fake_stdio("--offers", era=era, sharing=sharing)) as made:
            yield made
    else:
        async with (
            fake_http(FakeServer(Script(offers=True))) as endpoint,
            rig(http_server(endpoint.url, era=era, sharing=sharing)) as made,
        ):
            yield made


async def subscribe(client: Client, peer: Rig, uri: str = ONE) -> None:
    assert await client.ask_for(peer, Kind.SUBSCRIBE, uri) == {}


async def updated(client: Client, peer: Rig, uri: str = ONE, **more: Any) -> None:
    await client.call(peer, "update", {"uri": uri, **more})


async def test_each_of_those_who_follow_a_resource_is_told_and_nobody_else(peer: Rig) -> None:
    one, two, three = (Client(f"s{n}") for n in range(3))
    for client in (one, two):
        await subscribe(client, peer)
    await subscribe(three, peer, "mem://two")
    await updated(three, peer)
    await until(lambda: one.told and two.told)
    assert one.told == two.told == [(UPDATED, {"uri": ONE})]
    assert one.notices[0].server == "peer"
    assert three.told == []


async def test_who_has_unsubscribed_is_told_no_more_and_the_others_are(peer: Rig) -> None:
    one, two = Client("s1"), Client("s2")
    for client in (one, two):
        await subscribe(client, peer)
    assert await one.ask_for(peer, Kind.UNSUBSCRIBE, ONE) == {}
    await updated(two, peer)
    await until(lambda: two.told)
    assert one.told == []


async def test_who_has_left_is_told_no_more(peer: Rig) -> None:
    one, two = Client("s1", reachable=False), Client("s2")
    for client in (one, two):
        await subscribe(client, peer)
    await subscribe(one, peer, "mem://two")
    peer.upstreams.leave(one)
    await updated(two, peer)
    await until(lambda: two.told)
    assert one.told == []


async def test_a_part_of_what_is_followed_is_told_of_too(peer: Rig) -> None:
    client = Client()
    await subscribe(client, peer, "mem://dir")
    await updated(client, peer, "mem://dir/a?b", follows="mem://dir")
    await until(lambda: client.told == [(UPDATED, {"uri": "mem://dir/a?b"})])


def followed(endpoint: FakeHttp) -> set[str]:
    """Return what the server is asked to tell of, by anybody and in any way."""
    book = endpoint.server.followed
    old = {uri for uris in book.uris.values() for uri in uris}
    return old | {uri for turn in book.listening for uri in book.wanted(turn)}


def nobody_follows(endpoint: FakeHttp) -> bool:
    return not followed(endpoint)


@pytest.mark.parametrize("era", list(Era))
async def test_the_server_is_asked_once_and_told_when_nobody_is_left(era: Era) -> None:
    async with (
        fake_http(FakeServer(Script(offers=True))) as endpoint,
        rig(http_server(endpoint.url, era=era, sharing=Sharing.SHARED)) as made,
    ):
        clients = [Client(f"s{n}") for n in range(5)]
        await within(asyncio.gather(*(subscribe(client, made) for client in clients)))
        if era is Era.HANDSHAKE:
            sent = [message.get("method") for message in endpoint.server.seen]
            assert sent.count("resources/subscribe") == 1
        assert followed(endpoint) == {ONE}
        for client in clients[:4]:
            await client.ask_for(made, Kind.UNSUBSCRIBE, ONE)
        assert followed(endpoint) == {ONE}
        made.upstreams.leave(clients[4])
        await until(lambda: not followed(endpoint))


async def test_a_stateless_server_has_one_subscription_open_at_a_time() -> None:
    async with (
        fake_http(FakeServer(Script(offers=True))) as endpoint,
        rig(http_server(endpoint.url, era=Era.STATELESS)) as made,
    ):
        client = Client()
        for n in range(5):
            await subscribe(client, made, f"mem://{n}")
        await until(lambda: len(endpoint.server.followed.listening) == 1)
        (turn,) = endpoint.server.followed.listening
        assert turn.request.params["notifications"] == {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": [f"mem://{n}" for n in range(5)],
        }
        endpoint.cut()
        await until(lambda: endpoint.server.followed.listening not in ([], [turn]))
        await updated(client, made, "mem://3")
        await until(lambda: client.told)


async def test_a_child_that_is_replaced_is_asked_for_everything_again() -> None:
    for era in Era:
        async with rig(fake_stdio("--offers", era=era)) as made:
            client = Client()
            await subscribe(client, made)
            with pytest.raises(UpstreamError):
                await client.call(made, "crash")
            for _ in range(500):
                await updated(client, made)
                if client.told:
                    break
            assert client.told[0] == (UPDATED, {"uri": ONE})


async def test_a_server_that_cannot_be_followed_says_so_and_nothing_is_kept() -> None:
    for era in Era:
        server = FakeServer(Script(offers=True, no_following=True))
        async with (
            fake_http(server) as endpoint,
            rig(http_server(endpoint.url, era=era, sharing=Sharing.SHARED)) as made,
        ):
            for _ in range(2):
                with pytest.raises(UpstreamReplied):
                    await subscribe(Client(), made)
            await until(partial(nobody_follows, endpoint))


async def test_changes_of_any_list_are_listed_again(peer: Rig) -> None:
    client = Client()
    await within(peer.upstreams.discover("peer"), 10.0)
    for number, what in enumerate(("prompts", "resources")):
        await client.call(peer, "announce", {"method": f"notifications/{what}/list_changed"})
        await until(partial(listed, peer, 2 + number))


def listed(peer: Rig, times: int) -> bool:
    return len(peer.listings) >= times


def test_what_is_followed_is_bounded() -> None:
    following = Subscriptions()
    for n in range(MAX_SUBSCRIPTIONS):
        following.add(str(n), Deaf())
    for uri in ("one more", "x" * (MAX_URI + 1)):
        with pytest.raises(Overloaded):
            following.add(uri, Deaf())
    assert len(following) == MAX_SUBSCRIPTIONS


class Deaf:
    """A listener that takes nothing until its gate opens."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.got: list[Notice] = []

    async def notify(self, notice: Notice) -> None:
        await self.gate.wait()
        self.got.append(notice)

    async def ask(self, question: Question) -> bytes:
        raise NotImplementedError


async def test_a_listener_without_room_loses_the_oldest_and_holds_up_nobody() -> None:
    outlets, slow, quick = Outlets(), Deaf(), Deaf()
    quick.gate.set()
    notices = [Notice(kind=NoticeKind.OTHER, params={"n": n}) for n in range(ROOM + 10)]
    dropped = sum(not outlets.put(slow, notice) for notice in notices)
    outlets.put(quick, notices[0])
    await until(lambda: quick.got)
    assert dropped == 10
    slow.gate.set()
    await until(lambda: len(slow.got) == ROOM)
    assert [notice.params["n"] for notice in slow.got] == list(range(10, ROOM + 10))


async def test_a_listener_that_left_gets_nothing_that_still_waits() -> None:
    outlets, slow = Outlets(), Deaf()
    for n in range(3):
        outlets.put(slow, Notice(kind=NoticeKind.OTHER, params={"n": n}))
    await asyncio.sleep(0)
    outlets.drop(slow)
    slow.gate.set()
    outlets.put(slow, Notice(kind=NoticeKind.OTHER, params={"n": 9}))
    await until(lambda: slow.got)
    assert [notice.params["n"] for notice in slow.got] == [9]
