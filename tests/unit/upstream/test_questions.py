"""What a server asks in the handshake era: who is asked, and what goes back to it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.callers import Client
from tests.support.upstreams import Rig, fake_stdio, http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.errors import CallerReplied, NotAsked, Overloaded
from thoughtgate.core.servers import Era, Sharing
from thoughtgate.testing.fake_http import fake_http

FORM = {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}
ELICIT = {"method": "elicitation/create", "params": FORM}
ANSWER = {"action": "accept", "content": {"n": 1}}


@pytest.fixture(params=["stdio", "http"])
async def peer(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    if request.param == "stdio":
        server = fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)
        async with rig(server) as made:
            yield made
    else:
        async with (
            fake_http() as endpoint,
            rig(http_server(endpoint.url, era=Era.HANDSHAKE)) as made,
        ):
            yield made


@pytest.mark.parametrize("tool", ["ask", "ask_outside"])
@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        ("elicitation/create", FORM, ANSWER),
        ("sampling/createMessage", {"messages": [], "maxTokens": 1}, {"role": "assistant"}),
        ("roots/list", {}, {"roots": [{"uri": "file:///x"}]}),
    ],
)
async def test_the_caller_answers_what_its_call_asks(
    peer: Rig, tool: str, method: str, params: dict[str, Any], answer: dict[str, Any]
) -> None:
    client = Client(answers={method: answer})
    seen = await client.call(peer, tool, {"method": method, "params": params})
    assert "code" not in seen
    (question,) = client.questions
    assert (question.method, question.params, question.server) == (method, params, "peer")
    assert await answered(client, peer) == answer


async def answered(client: Client, peer: Rig) -> Any:
    """Return the result that the server got for its newest question."""
    for _ in range(500):
        seen = (await client.call(peer, "seen"))["seen"]
        got = [message["result"] for message in seen if "result" in message]
        if got:
            return got[-1]
    pytest.fail("no answer came")


async def test_outside_of_a_call_the_session_is_asked(peer: Rig) -> None:
    client = Client(answers={"roots/list": {"roots": []}})
    other = Client("s2")
    await other.call(peer, "echo")
    await client.call(peer, "ask_later", {"method": "roots/list"})
    await until(lambda: client.questions)
    assert await answered(client, peer) == {"roots": []}
    assert other.questions == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallerReplied(rpc_code=-32042, rpc_message="not now"), -32042),
        (NotAsked(message="gone"), -32601),
        (Overloaded(message="too much"), -32603),
    ],
)
async def test_a_caller_that_does_not_answer_is_an_error_for_the_server(
    peer: Rig, error: Exception, code: int
) -> None:
    client = Client(answers={"elicitation/create": error})
    assert (await client.call(peer, "ask", ELICIT))["code"] == code


async def test_what_a_client_did_not_declare_is_refused_without_asking_it(peer: Rig) -> None:
    client = Client(able={"roots": {}}, answers={"elicitation/create": ANSWER})
    assert (await client.call(peer, "ask", ELICIT))["code"] == -32601
    url = {"method": "elicitation/create", "params": {"mode": "url", "url": "https://a.example"}}
    former = Client(
        "s2", able={"elicitation": {"form": {}}}, answers={"elicitation/create": ANSWER}
    )
    assert (await former.call(peer, "ask", url))["code"] == -32601
    assert "code" not in await former.call(peer, "ask", ELICIT)
    assert (client.questions, len(former.questions)) == ([], 1)


async def test_the_time_of_a_call_stands_still_while_its_caller_is_asked(peer: Rig) -> None:
    client = Client(answers={"elicitation/create": ANSWER})
    await client.call(peer, "echo")
    client.gate = asyncio.Event()
    asyncio.get_running_loop().call_later(1.0, client.gate.set)
    seen = await client.call(peer, "ask", ELICIT, timeout=0.6)
    assert "code" not in seen


async def test_a_cancelled_call_takes_its_question_back(peer: Rig) -> None:
    client = Client()
    client.gate = asyncio.Event()
    calling = asyncio.ensure_future(client.call(peer, "ask", ELICIT))
    await until(lambda: client.questions)
    calling.cancel()
    await until(lambda: client.taken_back == 1)


async def test_a_question_that_the_server_takes_back_is_taken_back_from_the_caller(
    peer: Rig,
) -> None:
    client = Client()
    client.gate = asyncio.Event()
    await client.call(peer, "take_back", {"method": "roots/list"})
    await until(lambda: client.taken_back == len(client.questions))


async def test_a_question_goes_on_when_another_call_than_its_own_ends(peer: Rig) -> None:
    """A pipe does not say whose question it is: the guess may be wrong and is made again."""
    asking = Client(answers={"elicitation/create": ANSWER})
    asking.gate = asyncio.Event()
    first = asyncio.ensure_future(asking.call(peer, "ask", ELICIT))
    await until(lambda: asking.questions)
    for n in range(3):
        assert await asking.call(peer, "echo", {"n": n}) == {"n": n}
    asking.gate.set()
    assert "code" not in await within(first)


async def test_a_flood_of_questions_is_bounded_and_other_calls_go_on(peer: Rig) -> None:
    client = Client(answers={"elicitation/create": ANSWER})
    client.gate = asyncio.Event()
    calls = [asyncio.ensure_future(client.call(peer, "ask", ELICIT)) for _ in range(40)]
    refused = await within(asyncio.gather(*(calls[n] for n in await first_done(calls, 8))))
    assert {seen["code"] for seen in refused} == {-32603}
    assert len(client.questions) - client.taken_back == 32
    assert await client.call(peer, "echo", {"n": 1}) == {"n": 1}
    client.gate.set()
    assert len(await within(asyncio.gather(*calls))) == 40


async def first_done(calls: list[Any], wanted: int) -> list[int]:
    await until(lambda: sum(call.done() for call in calls) == wanted)
    return [place for place, call in enumerate(calls) if call.done()]


@pytest.mark.parametrize("where", [{}, {"outside": True}])
async def test_a_notification_that_we_do_not_know_reaches_its_session_and_no_other(
    peer: Rig, where: dict[str, Any]
) -> None:
    client, other = Client(), Client("s2")
    await other.call(peer, "echo")
    said = {"method": "notifications/elicitation/complete", "params": {"elicitationId": "e"}}
    await client.call(peer, "announce", {**said, **where})
    await until(lambda: client.told == [(said["method"], said["params"])])
    assert client.notices[0].server == "peer"
    assert other.notices == []


async def test_nobody_is_asked_on_a_shared_connection() -> None:
    async with rig(fake_stdio(era=Era.HANDSHAKE)) as made:
        client = Client(answers={"elicitation/create": ANSWER})
        assert (await client.call(made, "ask", ELICIT))["code"] == -32601
        said = {"method": "notifications/x", "params": {}, "outside": True}
        other = Client("s2")
        waiting = asyncio.ensure_future(other.call(made, "hang"))
        await client.call(made, "echo")
        await client.call(made, "announce", said)
        assert client.notices == other.notices == []
        assert made.upstreams.counts("peer").unplaced == 1
        waiting.cancel()


async def test_a_servers_progress_token_does_not_reach_the_client(peer: Rig) -> None:
    params = {"_meta": {"progressToken": 1, "x/y": 2}}
    client = Client(answers={"roots/list": {"roots": []}})
    await client.call(peer, "ask", {"method": "roots/list", "params": params})
    assert client.questions[0].params == {"_meta": {"x/y": 2}}


ODD = [
    ("notifications/resources/updated", {"uri": 7}),
    ("notifications/resources/updated", {}),
    ("notifications/cancelled", {"requestId": ["x"]}),
    ("notifications/cancelled", {"requestId": None}),
    ("notifications/subscriptions/acknowledged", {"_meta": [1], "notifications": 5}),
    ("notifications/subscriptions/acknowledged", {"_meta": {}}),
    ("notifications/message", {"level": {"a": 1}}),
    ("notifications/progress", {"progressToken": {"x": 1}}),
    ("notifications/tools/list_changed", {"_meta": "x"}),
]


@pytest.mark.parametrize("where", [{}, {"outside": True}])
async def test_odd_notifications_harm_no_connection(peer: Rig, where: dict[str, Any]) -> None:
    client = Client()
    for method, params in ODD:
        await client.call(peer, "announce", {"method": method, "params": params, **where})
    assert await client.call(peer, "echo", {"n": 1}) == {"n": 1}
    seen = (await client.call(peer, "seen"))["seen"]
    assert sum(message.get("method") == "initialize" for message in seen) == 1


@pytest.mark.parametrize(
    "params", [{"mode": ["url"]}, {"mode": 1}, {"tools": None}, {"_meta": 5}, {"_meta": []}]
)
async def test_odd_questions_are_answered_one_way_or_the_other(
    peer: Rig, params: dict[str, Any]
) -> None:
    client = Client(answers={"elicitation/create": ANSWER, "sampling/createMessage": {}})
    for method in ("elicitation/create", "sampling/createMessage", "roots/list", "odd/method"):
        await client.call(peer, "ask", {"method": method, "params": params})
    assert await client.call(peer, "echo", {"n": 1}) == {"n": 1}
