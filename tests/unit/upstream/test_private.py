"""Connections of single clients: who has one, how long it lasts, and what ends it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.callers import ABLE, Client
from tests.support.children import alive, children
from tests.support.upstreams import QUICK, Rig, fake_stdio, http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.calls import Principal
from thoughtgate.core.errors import Overloaded, UpstreamLost
from thoughtgate.core.servers import Era, Server, Sharing, UpstreamState
from thoughtgate.core.tools import Kind
from thoughtgate.testing.fake_http import FakeHttp, Manners, fake_http
from thoughtgate.upstream.sharing import sharing_of

ANN, BOB = Principal(id="ann"), Principal(id="bob")


@pytest.fixture
async def endpoint() -> AsyncIterator[FakeHttp]:
    async with fake_http() as made:
        yield made


@pytest.fixture(params=["stdio", "http"])
async def peer(request: pytest.FixtureRequest, endpoint: FakeHttp) -> AsyncIterator[Rig]:
    server = old(endpoint.url)
    if request.param == "stdio":
        server = fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)
    async with rig(server) as made:
        yield made


def old(url: str, **fields: Any) -> Server:
    return http_server(url, era=Era.HANDSHAKE, **fields)


def count(endpoint: FakeHttp, method: str) -> int:
    return sum(message.get("method") == method for message in endpoint.server.seen)


@pytest.mark.parametrize(
    ("server", "era", "expected"),
    [
        (http_server("http://a.example"), Era.HANDSHAKE, Sharing.SESSION),
        (http_server("http://a.example"), Era.STATELESS, Sharing.SHARED),
        (http_server("http://a.example"), None, None),
        (http_server("http://a.example", sharing=Sharing.SHARED), None, Sharing.SHARED),
        (
            http_server("http://a.example", sharing=Sharing.PRINCIPAL),
            Era.HANDSHAKE,
            Sharing.PRINCIPAL,
        ),
        (
            http_server("http://a.example", sharing=Sharing.SESSION),
            Era.STATELESS,
            Sharing.SHARED,
        ),
        (fake_stdio(), None, Sharing.SHARED),
        (fake_stdio(sharing=Sharing.SESSION), Era.STATELESS, Sharing.SESSION),
    ],
)
def test_who_shares_follows_the_transport_and_the_era(
    server: Server, era: Era | None, expected: Sharing | None
) -> None:
    assert sharing_of(server, era) is expected


async def test_what_a_server_remembers_of_one_client_is_never_anothers(peer: Rig) -> None:
    ann, bob = Client("s1", principal=ANN), Client("s2", principal=BOB)
    for n in range(1, 5):
        assert await ann.call(peer, "remember", {"ann": n}) == ({"ann": n - 1} if n > 1 else {})
        assert await bob.call(peer, "remember", {"bob": n}) == ({"bob": n - 1} if n > 1 else {})


async def test_two_clients_with_different_answers_at_once_are_never_mixed(peer: Rig) -> None:
    asked = {"method": "elicitation/create", "params": {"message": "?"}}
    clients = [
        Client(f"s{n}", answers={"elicitation/create": {"action": "accept", "content": {"n": n}}})
        for n in range(4)
    ]
    for _ in range(5):
        await within(asyncio.gather(*(client.call(peer, "ask", asked) for client in clients)))
    assert [len(client.questions) for client in clients] == [5] * 4


async def test_a_server_hears_of_the_clients_own_abilities_and_version(peer: Rig) -> None:
    client = Client("s1", able={**ABLE, "tasks": {}, "x": {"y": 1}}, version="2025-06-18")
    said = await client.call(peer, "greeting")
    assert said["capabilities"] == {**ABLE, "x": {"y": 1}}
    assert said["protocolVersion"] == "2025-06-18"
    assert said["clientInfo"]["name"] == "thoughtgate"
    modern = Client("", era=Era.STATELESS, version="2026-07-28", able={"roots": {}})
    said = await modern.call(peer, "greeting")
    assert said["capabilities"] == {"roots": {}}
    assert said["protocolVersion"] == "2025-11-25"


async def test_stateless_clients_of_one_principal_share_by_what_they_can(peer: Rig) -> None:
    def client(principal: Principal, able: dict[str, Any]) -> Client:
        return Client("", era=Era.STATELESS, able=able, principal=principal)

    await client(ANN, {}).call(peer, "remember", {"n": 1})
    assert await client(ANN, {}).call(peer, "remember") == {"n": 1}
    assert await client(ANN, {"roots": {}}).call(peer, "remember") == {}
    assert await client(BOB, {}).call(peer, "remember") == {}


async def test_clients_without_a_session_are_never_asked_for_each_other(peer: Rig) -> None:
    """A pipe does not say in which call it asks, and such clients look all the same."""
    asked = {"method": "elicitation/create", "params": {"message": "?"}}
    clients = [Client("", era=Era.STATELESS) for _ in range(3)]
    for client in clients:
        client.gate = asyncio.Event()
    calls = [asyncio.ensure_future(client.call(peer, "ask", asked)) for client in clients]
    await until(lambda: all(len(client.questions) == 1 for client in clients))
    for client in clients:
        assert client.gate is not None
        client.gate.set()
    await within(asyncio.gather(*calls))
    assert [len(client.questions) for client in clients] == [1, 1, 1]


async def test_runs_and_the_command_line_have_a_connection_where_nobody_is_asked(peer: Rig) -> None:
    for origin, n in (("run", 1), ("cli", 2)):
        own = Client("", able={}, origin=origin)
        assert (await own.call(peer, "greeting"))["capabilities"] == {}
        assert await own.call(peer, "remember", {"n": n}) == ({"n": 1} if n > 1 else {})
    assert await Client("s1").call(peer, "remember") == {}


@pytest.mark.parametrize(
    ("sharing", "declares"), [(Sharing.SESSION, True), (Sharing.SHARED, False)]
)
async def test_lists_are_read_by_one_who_can_answer_all_where_each_client_can_be_asked(
    endpoint: FakeHttp, sharing: Sharing, declares: bool
) -> None:
    async with rig(old(endpoint.url, sharing=sharing)) as made:
        await within(made.upstreams.discover("peer"))
    (hello,) = [m for m in endpoint.server.seen if m.get("method") == "initialize"]
    assert bool(hello["params"]["capabilities"]) is declares


async def test_the_sessions_of_one_principal_share_what_all_of_them_can(
    endpoint: FakeHttp,
) -> None:
    async with rig(old(endpoint.url, sharing=Sharing.PRINCIPAL)) as made:
        one, two = Client("s1", principal=ANN), Client("s2", principal=ANN)
        await one.call(made, "remember", {"n": 1})
        assert await two.call(made, "remember") == {"n": 1}
        assert (await two.call(made, "greeting"))["capabilities"] == ABLE
        assert (await Client("s3", principal=BOB).call(made, "remember")) == {}
        less = Client("s4", principal=ANN, able={"roots": {}})
        assert (await less.call(made, "greeting"))["capabilities"] == {}
        assert (await one.call(made, "greeting"))["capabilities"] == {}


async def test_the_end_of_a_session_ends_its_connection_and_child_at_once(peer: Rig) -> None:
    one, two = Client("s1"), Client("s2")
    await one.call(peer, "remember", {"n": 1})
    await two.call(peer, "remember", {"n": 2})
    peer.upstreams.leave_session("s1")
    assert await two.call(peer, "remember") == {"n": 2}
    assert await one.call(peer, "remember") == {}


async def test_the_children_of_an_ended_session_are_gone_with_their_own() -> None:
    server = fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)
    async with rig(server) as made:
        pids = [(await Client(f"s{n}").call(made, "orphan"))["pid"] for n in range(3)]
        assert len(children()) == 3
        for n in range(3):
            made.upstreams.leave_session(f"s{n}")
        await until(lambda: not children())
        await until(lambda: not any(alive(pid) for pid in pids))


async def test_a_session_is_given_back_when_its_client_has_gone(endpoint: FakeHttp) -> None:
    async with rig(old(endpoint.url)) as made:
        for n in range(20):
            await Client(f"s{n}").call(made, "echo")
        assert len(endpoint.sessions) == 20  # no shared one: nothing was listed
        for n in range(20):
            made.upstreams.leave_session(f"s{n}")
        await until(lambda: not endpoint.sessions)


async def test_a_connection_that_nobody_uses_ends_and_opens_again_when_needed(
    endpoint: FakeHttp,
) -> None:
    async with rig(old(endpoint.url, idle_timeout=0.2)) as made:
        client = Client()
        await client.call(made, "remember", {"n": 1})
        await until(lambda: not endpoint.sessions)
        assert await client.call(made, "remember") == {}


async def test_an_open_question_or_a_subscription_keeps_a_connection(endpoint: FakeHttp) -> None:
    async with rig(old(endpoint.url, idle_timeout=0.1)) as made:
        asked, followed, idle = Client("s1"), Client("s2"), Client("s3")
        asked.gate = asyncio.Event()
        await asked.call(made, "ask_later", {"method": "roots/list"})
        await until(lambda: asked.questions)
        await followed.ask_for(made, Kind.SUBSCRIBE, "mem://one")
        for _ in range(3):  # each time longer than what is granted to one that nobody uses
            await idle.call(made, "echo")
            assert len(endpoint.sessions) == 3
            await until(lambda: len(endpoint.sessions) == 2)
        asked.gate.set()
        await until(lambda: len(endpoint.sessions) == 1)
        await followed.ask_for(made, Kind.UNSUBSCRIBE, "mem://one")
        await until(lambda: not endpoint.sessions)


async def test_an_idle_shared_connection_ends_only_where_that_is_wished() -> None:
    async with rig(fake_stdio(idle_timeout=0.2)) as made:
        listing = await within(made.upstreams.discover("peer"))
        await until(lambda: made.statuses[-1].state is UpstreamState.IDLE)
        assert not children()
        assert made.listings == [listing]
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_the_longest_unused_connection_makes_room_and_none_is_taken_from_a_call(
    endpoint: FakeHttp,
) -> None:
    async with rig(old(endpoint.url), room=2) as made:
        one, two, three = (Client(f"s{n}") for n in range(3))
        for client in (one, two, three):
            await client.call(made, "remember", {"n": 1})
        assert await two.call(made, "remember") == {"n": 1}
        await until(lambda: len(endpoint.sessions) == 2)
        busy = [asyncio.ensure_future(client.call(made, "hang")) for client in (two, three)]
        await until(lambda: endpoint.server.running == 2)
        with pytest.raises(Overloaded):
            await one.call(made, "echo")
        for call in busy:
            call.cancel()


async def test_clients_that_come_and_go_leave_only_so_many_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients without sessions that declare something else each time are others each time."""
    monkeypatch.setattr("thoughtgate.upstream.served.MAX_CHILDREN", 1)
    async with rig(fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)) as made:
        for number in range(3):
            await Client(f"s{number}").call(made, "echo")
        await until(lambda: len(children()) == 1)


async def test_many_first_calls_of_a_session_open_one_connection(peer: Rig) -> None:
    client = Client()
    kept = [client.call(peer, "greeting") for _ in range(20)]
    assert len(await within(asyncio.gather(*kept))) == 20
    seen = (await client.call(peer, "seen"))["seen"]
    assert sum(message.get("method") == "initialize" for message in seen) == 1


async def test_a_session_that_the_server_forgot_is_opened_again_with_all_it_had(
    endpoint: FakeHttp,
) -> None:
    async with rig(old(endpoint.url)) as made:
        client = Client()
        await client.ask_for(made, Kind.SUBSCRIBE, "mem://one")
        await client.call(made, "echo", log_level="warning")
        endpoint.sessions.clear()
        said = await client.call(made, "greeting")
        assert said["capabilities"] == ABLE
        assert count(endpoint, "initialize") == 2
        assert count(endpoint, "resources/subscribe") == 2
        assert count(endpoint, "logging/setLevel") == 2
        await client.call(made, "update", {"uri": "mem://one"})
        await until(lambda: client.told)


async def test_a_crashed_child_is_replaced_for_its_own_client_only() -> None:
    server = fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)
    async with rig(server) as made:
        one, two = Client("s1"), Client("s2")
        before = await two.call(made, "pid")
        await one.call(made, "echo")
        with pytest.raises(UpstreamLost):
            await one.call(made, "crash")
        assert await one.call(made, "echo", {"n": 1}) == {"n": 1}
        assert await two.call(made, "pid") == before


async def test_a_client_that_lets_its_child_crash_costs_no_other_the_server() -> None:
    server = fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)
    async with rig(server) as made:
        one, two = Client("s1"), Client("s2")
        for _ in range(8):  # more often than a server may fail
            with pytest.raises(UpstreamLost):
                await one.call(made, "crash")
        assert await two.call(made, "echo", {"n": 1}) == {"n": 1}


async def test_a_server_without_streams_is_asked_for_one_once_for_all_clients() -> None:
    async with (
        fake_http(manners=Manners(streams=False)) as endpoint,
        rig(old(endpoint.url)) as made,
    ):
        await within(made.upstreams.discover("peer"))
        await until(lambda: "GET" in [method for method, _ in endpoint.requests])
        for n in range(5):
            await Client(f"s{n}").call(made, "echo")
        assert [method for method, _ in endpoint.requests].count("GET") == 1


async def test_a_server_that_is_down_for_one_client_is_degraded_for_people() -> None:
    async with fake_http() as first:
        url = first.url
    async with rig(old(url), backoff=QUICK) as made:
        with pytest.raises(Exception, match="peer"):
            await Client().call(made, "echo")
        down = made.statuses[-1].state
        async with fake_http(port=int(url.rpartition(":")[2].partition("/")[0])):
            assert await Client().call(made, "echo", {"n": 1}) == {"n": 1}
        assert (down, made.statuses[-1].state) == (UpstreamState.DEGRADED, UpstreamState.READY)


async def test_each_client_has_the_log_level_that_it_wants(endpoint: FakeHttp) -> None:
    async with rig(old(endpoint.url)) as made:
        loud, calm = Client("s1"), Client("s2")
        levels = {"levels": ["debug", "error"]}
        await loud.call(made, "log", levels, log_level="debug")
        await calm.call(made, "log", levels, log_level="error")
        assert [n.params["level"] for n in loud.notices] == ["debug", "error"]
        assert [n.params["level"] for n in calm.notices] == ["error"]
        wanted = [
            message["params"]["level"]
            for message in endpoint.server.seen
            if message.get("method") == "logging/setLevel"
        ]
        assert wanted == ["debug", "error"]


async def test_what_a_client_tells_reaches_its_own_connection_only(peer: Rig) -> None:
    one, two = Client("s1"), Client("s2")
    for client in (one, two):
        await client.call(peer, "echo")
    peer.upstreams.tell("s1", "notifications/roots/list_changed", {})
    peer.upstreams.tell("nobody", "notifications/x", {})
    method = "notifications/roots/list_changed"
    for _ in range(500):
        seen = (await one.call(peer, "seen"))["seen"]
        if any(message.get("method") == method for message in seen):
            break
    told = [message for message in seen if message.get("method") == method]
    assert len(told) == 1


async def test_closing_the_gateway_ends_every_connection(endpoint: FakeHttp) -> None:
    stdio = fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)
    async with rig(stdio) as made:
        for n in range(3):
            await Client(f"s{n}").call(made, "echo")
        await within(made.upstreams.discover("peer"))
        assert len(children()) == 4
    assert children() == []
    async with rig(old(endpoint.url)) as made:
        await Client().call(made, "echo")
    assert endpoint.sessions == set()


async def test_a_restart_opens_every_connection_anew(endpoint: FakeHttp) -> None:
    async with rig(old(endpoint.url)) as made:
        client = Client()
        await client.call(made, "remember", {"n": 1})
        await within(made.upstreams.restart("peer"))
        assert await client.call(made, "remember") == {}


async def test_five_hundred_clients_leave_nothing_behind(endpoint: FakeHttp) -> None:
    async with rig(old(endpoint.url)) as made:
        for n in range(500):
            await Client(f"s{n}").call(made, "echo")
            made.upstreams.leave_session(f"s{n}")
        await until(lambda: not endpoint.sessions, 10.0)
        await until(lambda: len(asyncio.all_tasks()) < 20, 10.0)
