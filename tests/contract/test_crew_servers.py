"""A server whose child another worker runs is to every client what it is where it runs."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from tests.support.callers import Client
from tests.support.children import alive, children
from tests.support.crews import Crewed, crewed
from tests.support.upstreams import Heard, Rig, fake_stdio, http_server, make_call, stdio_server
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Notice, NoticeKind, Retry
from thoughtgate.core.errors import (
    CallerReplied,
    Overloaded,
    UpstreamError,
    UpstreamLost,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.json import digest
from thoughtgate.core.servers import Era, Sharing, UpstreamState
from thoughtgate.core.tools import Kind
from thoughtgate.core.traces import SpanContext
from thoughtgate.testing.fake_http import fake_http
from thoughtgate.wire.input_required import read_input_required

ONE = "mem://one"
UPDATED = "notifications/resources/updated"
ELICIT: dict[str, Any] = {"method": "elicitation/create", "params": {"message": "?"}}
YES = {"action": "accept", "content": {}}


@pytest.fixture
async def pair() -> AsyncIterator[Crewed]:
    async with crewed(fake_stdio("--offers", era=Era.HANDSHAKE)) as made:
        yield made


@pytest.fixture
async def private() -> AsyncIterator[Crewed]:
    async with crewed(fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)) as made:
        yield made


async def both(made: Crewed, name: str, arguments: Any = None, **fields: Any) -> list[Any]:
    """Make the same call at the worker that runs the server, and at the other one."""
    return [await rig.call(name, arguments, **fields) for rig in (made.own, made.far)]


async def failure(rig: Rig, call: Call) -> tuple[type, str, Any]:
    with pytest.raises(UpstreamError) as caught:
        await within(rig.upstreams.send(call))
    return type(caught.value), caught.value.message, caught.value.data


async def running(made: Crewed, number: int) -> None:
    """Return when so many calls are in flight where the server runs."""
    served = made.own.upstreams.served("peer")
    assert served is not None
    await until(lambda: served.in_flight == number)


async def pid(rig: Rig) -> int:
    return int((await rig.call("pid"))["pid"])


async def test_one_child_serves_both_workers(pair: Crewed) -> None:
    own, far = await both(pair, "pid")
    assert own == far
    assert len(children()) == 1


@pytest.mark.parametrize("era", list(Era))
async def test_a_child_is_sent_the_same_by_both(era: Era) -> None:
    fields: dict[str, Any] = {
        "meta": {"my/key": [1, None, 2**70], "a": {"b": 1.0}},
        "trace": SpanContext(trace_id=2**127 + 1, span_id=7, sampled=False, state="a=1"),
        "idempotency_key": "key-1",
        "extra": {"task": {"ttl": 1}},
        "wants_progress": True,
        "log_level": "debug",
    }
    async with crewed(fake_stdio(era=era)) as pair:
        await both(pair, "echo", {"n": 2**70, "f": 1.5, "z": None, "é": "\u2028"}, **fields)
        said = (await pair.far.call("seen"))["seen"]
        one, two = [dict(m["params"]) for m in said if m["method"] == "tools/call"][:2]
        assert one["_meta"].pop("progressToken") != two["_meta"].pop("progressToken")
        assert one == two
        assert one["_meta"]["traceparent"].endswith("-00")
        assert one["_meta"]["my/key"] == [1, None, 2**70]


async def test_a_result_comes_as_the_bytes_that_the_child_wrote(pair: Crewed) -> None:
    arguments = {"n": 2**70, "f": 1e300, "z": None, "é": "\U0001f600", "order": {"b": 1, "a": 2}}
    own, far = [await within(rig.send("echo", arguments)) for rig in (pair.own, pair.far)]
    assert own == far
    failed = await within(pair.far.send("tool_error", {"a": 1}))
    assert failed.is_error
    assert json.loads(failed.raw)["structuredContent"] == {"a": 1}


async def test_results_of_many_megabytes_come_through_beside_small_ones(pair: Crewed) -> None:
    sizes = [5 * 1024 * 1024, 10, 3 * 1024 * 1024, 0]
    calls = [pair.far.send("big", {"size": size}) for size in sizes]
    results = await within(asyncio.gather(*calls))
    assert [len(json.loads(one.raw)["content"][0]["text"]) for one in results] == sizes


async def test_progress_and_logs_come_in_order_and_before_the_result(pair: Crewed) -> None:
    class Slow(Heard):
        async def notify(self, notice: Notice) -> None:
            await asyncio.sleep(0)
            await super().notify(notice)

    heard = Slow()
    await pair.far.call("progress", {"count": 40}, listener=heard, wants_progress=True)
    assert [params["progress"] for params in heard.params] == list(range(40))
    heard = Slow()
    await pair.far.call("log", {"levels": ["info", "error"]}, listener=heard, log_level="info")
    assert [notice.kind for notice in heard.notices] == [NoticeKind.LOG] * 2


async def test_a_cancelled_call_is_cancelled_at_the_child(pair: Crewed) -> None:
    await pair.far.call("echo")
    call = asyncio.ensure_future(pair.far.send("hang"))
    await running(pair, 1)
    call.cancel()
    await within(asyncio.wait([call]))
    await running(pair, 0)
    said = (await pair.far.call("seen"))["seen"]
    assert [m["method"] for m in said][-2:] == ["notifications/cancelled", "tools/call"]


async def test_a_call_that_takes_too_long_ends_with_the_same_words(pair: Crewed) -> None:
    await both(pair, "echo")
    own, far = [await failure(rig, make_call("hang", timeout=0.2)) for rig in (pair.own, pair.far)]
    assert own == far
    assert far[0] is UpstreamTimeout


async def test_an_error_of_the_server_comes_as_it_is(pair: Crewed) -> None:
    with pytest.raises(UpstreamReplied) as caught:
        await within(pair.far.send("fail", {"code": -32123}))
    assert (caught.value.rpc_code, caught.value.rpc_message) == (-32123, "it failed")
    assert caught.value.rpc_data == {"why": "asked"}


async def test_a_crash_fails_the_calls_of_both_workers_with_the_same_words(pair: Crewed) -> None:
    calls = [failure(rig, make_call("hang")) for rig in (pair.own, pair.far)]
    hanging = asyncio.gather(*calls)
    await running(pair, 2)
    crashed = await failure(pair.far, make_call("crash", {"code": 7, "words": "out of cheese\n"}))
    own, far = await within(hanging)
    assert own == far == crashed
    assert far[0] is UpstreamLost
    for words in ("server peer", "exited with code 7", "out of cheese"):
        assert words in far[1]
    assert await pair.far.call("echo", {"again": 1}) == {"again": 1}


async def test_a_child_that_cannot_start_says_why_with_the_same_words() -> None:
    async with crewed(stdio_server("no.such.module", start_timeout=2.0)) as pair:
        own, far = [await failure(rig, make_call("echo")) for rig in (pair.own, pair.far)]
        assert own == far
        assert far[0] is UpstreamUnreachable
        assert "No module named" in far[1]


async def test_both_list_the_same(pair: Crewed) -> None:
    own, far = [await within(rig.upstreams.discover("peer")) for rig in (pair.own, pair.far)]
    assert own == far
    assert pair.settled == 1
    listed = [[digest(tool) for tool in rig.listings[-1].tools] for rig in (pair.own, pair.far)]
    assert listed[0] == listed[1]


async def test_a_change_of_the_tools_is_heard_at_both(pair: Crewed) -> None:
    await pair.far.call("change")
    await until(lambda: pair.far.listings and "extra0" in pair.far.names())
    assert "extra0" in pair.own.names()


async def test_a_worker_that_comes_later_hears_what_is_listed_and_how_servers_fare() -> None:
    async with crewed(fake_stdio()) as pair:
        await within(pair.own.upstreams.discover("peer"))
        await until(lambda: pair.far.listings)
        (status,) = pair.far.upstreams.statuses()
        assert status == pair.own.upstreams.statuses()[0]
        assert status.state is UpstreamState.READY
        assert await within(pair.far.upstreams.ask("peer")) is True


async def test_a_question_goes_to_the_client_and_its_answer_to_the_child(private: Crewed) -> None:
    client = Client(answers={"elicitation/create": YES})
    assert (await client.call(private.far, "ask", ELICIT))["result"] == YES
    refusing = Client(
        "s2", answers={"elicitation/create": CallerReplied(rpc_code=-1, rpc_message="no")}
    )
    assert (await refusing.call(private.far, "ask", ELICIT))["code"] == -1


async def test_a_question_is_taken_back_with_its_call(private: Crewed) -> None:
    client = Client()
    client.gate = asyncio.Event()
    call = asyncio.ensure_future(
        private.far.send("ask", ELICIT, session=client.session, listener=client)
    )
    await until(lambda: client.questions)
    call.cancel()
    await until(lambda: client.taken_back == 1)


async def test_the_time_of_a_call_stands_still_while_its_client_is_asked(private: Crewed) -> None:
    client, other = Client(answers={"elicitation/create": YES}), Client("s2")
    for one in (client, other):
        await one.call(private.far, "echo")  # its child has started
    client.gate = asyncio.Event()
    call = client.make("ask", ELICIT, timeout=0.5)
    sent = asyncio.ensure_future(private.far.upstreams.send(call))
    await until(lambda: client.questions)
    longer = await failure(private.far, other.make("hang", timeout=0.7))
    assert longer[0] is UpstreamTimeout
    client.gate.set()
    await within(sent)


async def test_each_client_has_a_child_of_its_own_which_ends_with_its_session(
    private: Crewed,
) -> None:
    clients = [
        (Client("s1"), private.far),
        (Client("s2"), private.far),
        (Client("s3"), private.own),
    ]
    pids = [(await client.call(rig, "pid"))["pid"] for client, rig in clients]
    assert len(set(pids)) == 3
    said = await clients[0][0].call(private.far, "greeting")
    assert said["capabilities"] == clients[0][0].session.capabilities
    private.far.upstreams.leave_session("s1")
    await until(lambda: not alive(pids[0]))
    assert alive(pids[1])
    assert alive(pids[2])


async def test_what_a_client_tells_reaches_its_own_child_once(private: Crewed) -> None:
    client = Client()
    await client.call(private.far, "echo")
    private.far.upstreams.tell("s1", "notifications/roots/list_changed", {"a": 1})
    said = [m["method"] for m in (await client.call(private.far, "seen"))["seen"]]
    assert said.count("notifications/roots/list_changed") == 1


async def test_too_many_children_of_clients_are_refused_for_all_workers_together() -> None:
    server = fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)
    async with crewed(server, room=1) as pair:
        one = asyncio.ensure_future(Client("s1").call(pair.own, "hang"))
        await running(pair, 1)
        with pytest.raises(Overloaded, match="1 clients have connections of their own"):
            await Client("s2").call(pair.far, "echo")
        one.cancel()


async def test_a_server_that_asks_by_its_result_is_answered_by_a_retry() -> None:
    async with crewed(fake_stdio(era=Era.STATELESS)) as pair:
        client = Client("", era=Era.STATELESS, version="2026-07-28")
        wanted = {"requests": {"q": ELICIT}, "state": "s"}
        result = await within(pair.far.upstreams.send(client.make("want_input", wanted)))
        assert not result.final
        state = read_input_required(result.raw, "peer").state
        retry = Retry(answers={"q": YES}, state=state)
        came = await client.call(pair.far, "want_input", wanted, retry=retry)
        assert came["inputResponses"] == {"q": YES}
        assert came["requestState"] == "s"


@pytest.mark.parametrize("kind", [Kind.PROMPT, Kind.RESOURCE, Kind.PROMPT_COMPLETION])
async def test_other_things_than_tools_are_asked_for_too(pair: Crewed, kind: Kind) -> None:
    client, arguments = Client(), dict[str, Any]()
    name = ONE if kind is Kind.RESOURCE else "greet"
    if kind is Kind.PROMPT:
        arguments = {"name": "a"}
    if kind is Kind.PROMPT_COMPLETION:
        arguments = {"argument": {"name": "name", "value": "a"}}
    own, far = [await client.ask_for(rig, kind, name, arguments) for rig in (pair.own, pair.far)]
    assert own == far


async def test_who_follows_a_resource_is_told_until_they_leave(pair: Crewed) -> None:
    one, two = Client("s1"), Client("s2")
    await one.ask_for(pair.far, Kind.SUBSCRIBE, ONE)
    await two.ask_for(pair.own, Kind.SUBSCRIBE, ONE)
    await two.call(pair.own, "update", {"uri": ONE})
    await until(lambda: one.told and two.told)
    assert one.told == two.told == [(UPDATED, {"uri": ONE})]
    pair.far.upstreams.leave(one)
    await two.call(pair.far, "update", {"uri": ONE})
    await until(lambda: len(two.told) == 2)
    assert len(one.told) == 1


async def test_a_child_rests_although_other_workers_are_connected() -> None:
    async with crewed(fake_stdio(idle_timeout=0.2)) as pair:
        first = await pid(pair.far)
        await until(lambda: not alive(first))
        await until(lambda: pair.far.upstreams.statuses()[0].state is UpstreamState.IDLE)
        assert await within(pair.far.upstreams.ask("peer")) is False
        assert await pid(pair.far) != first


async def test_a_restart_that_another_worker_wants_restarts_the_one_child(pair: Crewed) -> None:
    first = await pid(pair.own)
    await within(pair.far.upstreams.restart("peer"))
    assert not alive(first)
    own, far = await both(pair, "pid")
    assert own == far != {"pid": first}


async def test_a_server_that_its_worker_does_not_know_yet_is_looked_for(pair: Crewed) -> None:
    await within(pair.own.upstreams.apply(()))
    assert await pair.far.call("echo", {"a": 1}) == {"a": 1}


async def test_a_server_that_a_worker_learns_of_later_fares_there_as_it_does(pair: Crewed) -> None:
    await within(pair.far.upstreams.discover("peer"))
    await within(pair.far.upstreams.apply(()))
    await within(pair.far.upstreams.apply(pair.known))
    listing = await within(pair.far.upstreams.discover("peer"))
    assert listing == pair.far.listings[-1]
    assert pair.far.upstreams.statuses() == pair.own.upstreams.statuses()


async def test_a_server_that_is_gone_is_named(pair: Crewed) -> None:
    pair.known = ()
    await within(pair.own.upstreams.apply(()))
    kind, message, _ = await failure(pair.far, make_call("echo"))
    assert kind is UpstreamUnreachable
    assert message == "server peer is unknown"


async def test_a_worker_that_ends_fails_what_runs_and_is_met_again_when_it_is_back(
    pair: Crewed,
) -> None:
    client = Client()
    await client.ask_for(pair.far, Kind.SUBSCRIBE, ONE)
    hanging = asyncio.ensure_future(failure(pair.far, make_call("hang")))
    await running(pair, 1)
    await within(pair.door.aclose())
    kind, message, _ = await within(hanging)
    assert kind is UpstreamLost
    assert message == "server peer: the worker that ran it has ended, and the server with it"
    await running(pair, 0)
    kind, message, _ = await failure(pair.far, make_call("echo", timeout=0.1))
    assert kind is UpstreamUnreachable
    assert message.startswith("server peer: the worker that runs it is being restarted")
    assert pair.far.statuses[-1].state is UpstreamState.DEGRADED
    waiting = asyncio.ensure_future(pair.far.call("echo", {"a": 1}))
    await pair.open()
    assert await waiting == {"a": 1}
    await until(lambda: pair.far.upstreams.statuses()[0].state is UpstreamState.READY)
    client.notices.clear()
    await pair.own.call("update", {"uri": ONE})
    await until(lambda: client.told == [(UPDATED, {"uri": ONE})])


async def test_a_worker_that_hangs_costs_a_call_little_more_than_its_time(pair: Crewed) -> None:
    met: list[asyncio.Protocol] = []

    def nobody() -> asyncio.Protocol:
        met.append(asyncio.Protocol())
        return met[0]

    await within(pair.door.aclose())
    place = str(pair.crew.door(pair.crew.index))
    loop = asyncio.get_running_loop()
    async with await loop.create_unix_server(nobody, place):
        await until(lambda: met)
        kind, message, _ = await failure(pair.far, make_call("echo", timeout=0.2))
        assert kind is UpstreamTimeout
        assert message.endswith("nor from the worker that runs it")
        await within(pair.neighbours.aclose())


async def test_what_clients_tell_is_not_kept_without_end_for_a_worker_that_hangs(
    private: Crewed,
) -> None:
    neighbour = private.neighbours.runs(private.known[0])
    assert neighbour is not None
    await Client("s1").call(private.far, "echo")
    await within(private.door.aclose())
    await until(lambda: private.far.upstreams.statuses()[0].state is UpstreamState.DEGRADED)
    met: list[asyncio.BaseTransport] = []

    class Hanging(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            cast("asyncio.Transport", transport).pause_reading()
            met.append(transport)

    place = str(private.crew.door(private.crew.index))
    async with await asyncio.get_running_loop().create_unix_server(Hanging, place):
        await neighbour.ready("peer", 5.0)
        await until(lambda: met)
        for _ in range(20):
            private.far.upstreams.tell("s1", "notifications/x", {"a": "x" * 1_000_000})
        assert 5 < private.far.upstreams.counts("peer").unsent < 15
        await within(private.neighbours.aclose())
        met[0].close()


async def test_a_worker_that_leaves_takes_its_calls_and_its_clients_children_along(
    private: Crewed,
) -> None:
    child = (await Client("s1").call(private.far, "pid"))["pid"]
    hanging = asyncio.ensure_future(failure(private.far, Client("s2").make("hang")))
    await running(private, 1)
    await within(private.neighbours.aclose())
    assert (await within(hanging))[0] is UpstreamLost
    await running(private, 0)
    await until(lambda: not alive(child))


async def test_a_server_at_a_url_is_each_workers_own_affair() -> None:
    async with fake_http() as endpoint, crewed(http_server(endpoint.url)) as pair:
        assert pair.far.upstreams.served("peer") is not None
        assert await pair.far.call("echo", {"a": 1}) == {"a": 1}
