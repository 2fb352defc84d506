"""A real gateway and clients that answer what nobody asked, wrongly, or with others' states.

Through HTTP, in both eras; the servers behind are honest.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.children import memory, open_files, peak_memory
from tests.support.gate import START, Gate, gated, home, python_server
from tests.support.http_peer import HttpPeer, request
from tests.support.old_client import OldClient, Told
from tests.support.waiting import until, within
from thoughtgate.app.serving import SUBSCRIPTIONS

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAKE = "thoughtgate.testing.fake_server"
ABLE: dict[str, Any] = {"elicitation": {}}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = {"method": "elicitation/create", "params": FORM}
YES = {"action": "accept", "content": {}}
WANT = {"requests": {"k": ASK}, "state": "the server's own"}
CAPABLE = {"io.modelcontextprotocol/clientCapabilities": ABLE}
PING = request("ping", {}, "p")
SESSIONS = 200


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    settings = (
        python_server("old", FAKE, era="handshake", sharing="session")
        + python_server("new", FAKE, era="stateless")
        + '[domains.work]\ninclude = ["old/*", "new/*"]\n'
        + f"[limits]\nsessions = {SESSIONS}\n"
    )
    async with gated(home(tmp_path_factory.mktemp("home"), settings)) as gateway:
        yield gateway


@pytest_asyncio.fixture(loop_scope="module")
async def client(running: Gate) -> AsyncIterator[OldClient]:
    made = await OldClient.open(running.url(), **ABLE)
    yield made
    made.drop()
    await made.leave()


async def asked(client: OldClient) -> tuple[Told, Any]:
    """Begin a call whose server asks; returns its stream and the question."""
    _, told = await client.begin("old__ask", ASK)
    await told.head()
    return told, await told.message()


async def fine(client: OldClient) -> None:
    """Hold that a client is served as if nothing had happened."""
    assert await client.structured("old__echo", {"n": 1}) == {"n": 1}
    told, question = await asked(client)
    assert await client.answer(question, YES) == 202
    [answer] = await told.rest()
    assert answer["result"]["structuredContent"]["result"] == YES


async def test_answers_to_what_nobody_asked_are_taken_and_change_nothing(
    client: OldClient,
) -> None:
    await client.structured("old__echo")
    for id_ in (0, 1, 2, -1, 1001, "1001", "question-1", "", "x" * 256):
        for answer in ({"result": YES}, {"error": {"code": -1, "message": "no"}}):
            got = await client.post({"jsonrpc": "2.0", "id": id_, **answer})
            assert got.status == 202, id_
    await fine(client)


async def test_nobody_answers_for_another_client(running: Gate, client: OldClient) -> None:
    other = await OldClient.open(running.url(), **ABLE)
    told, question = await asked(client)
    for _ in range(3):
        assert await other.answer(question, {"action": "decline"}) == 202
    assert await client.answer(question, YES) == 202
    # the first answer counts, whatever comes later
    await client.answer(question, {"action": "cancel"})
    [answer] = await told.rest()
    assert answer["result"]["structuredContent"]["result"] == YES
    await fine(other)
    await other.leave()


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize(
    ("junk", "status"),
    [
        (b"null", 400),
        (b"[]", 400),
        (b'"yes"', 400),
        (b"5", 400),
        (b"{", 400),
        (b'{"a":1,"a":2}', 400),
        (b'{"a":NaN}', 400),
        (b'{"a":"\xff"}', 400),
        (nested(100), 400),
        (nested(100_000), 400),
        (b'{"a":"%b"}' % (b"x" * 5_000_000), 413),
    ],
    ids=lambda value: str(value)[:12],
)
async def test_an_answer_that_is_none_is_refused_and_the_right_one_still_counts(
    client: OldClient, junk: bytes, status: int
) -> None:
    told, question = await asked(client)
    body = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (json.dumps(question["id"]).encode(), junk)
    assert (await client.post(body)).status == status
    assert await client.answer(question, YES) == 202
    [answer] = await told.rest()
    assert answer["result"]["structuredContent"]["result"] == YES
    await fine(client)


async def test_an_answer_of_odd_content_is_the_server_s_to_judge(client: OldClient) -> None:
    """It is passed on as it came: only the server knows what it asked."""
    for odd in ({}, {"action": 7}, {"x": 10**40, "é": [None]}, json.loads(nested(60))):
        told, question = await asked(client)
        assert await client.answer(question, odd) == 202
        [answer] = await told.rest()
        assert answer["result"]["structuredContent"]["result"] == odd


async def ask_new(peer: HttpPeer, name: str, path: str = "/mcp", **more: Any) -> Any:
    """Call a tool as a client of the stateless era that can be asked; returns the whole reply."""
    arguments = ASK if name == "old__ask" else WANT
    params = {"name": name, "arguments": arguments, "_meta": CAPABLE, **more}
    return await peer.ask("tools/call", params, path=path)


def question_of(got: Any) -> tuple[str, str]:
    """Return the key of the one question of a reply, and its state."""
    result = got.json["result"]
    assert result["resultType"] == "input_required"
    [key] = result["inputRequests"]
    return key, result["requestState"]


async def answered(peer: HttpPeer, name: str, key: str, state: str) -> None:
    """Answer a question, and hold that the call has its result then."""
    got = await ask_new(peer, name, inputResponses={key: YES}, requestState=state)
    assert got.json["result"]["resultType"] == "complete"


@pytest.mark.parametrize("name", ["old__ask", "new__want_input"])
async def test_a_state_serves_its_own_request_in_its_own_domain_only(
    running: Gate, name: str
) -> None:
    peer = HttpPeer(running.url())
    key, state = question_of(await ask_new(peer, name))
    answers = {key: YES}
    other = "new__want_input" if name == "old__ask" else "old__ask"
    foreign_key, foreign = question_of(await ask_new(peer, other))
    swapped = state[:-2] + ("AA" if state[-2:] != "AA" else "BB")
    for wrong in (foreign, swapped, state[1:], state + "A", "", "x", "e30", state * 2, "x" * 10**6):
        got = await ask_new(peer, name, inputResponses=answers, requestState=wrong)
        assert (got.status, got.error["code"]) == (400, -32602), wrong[:40]
    odd: Any
    for odd in (5, {}, [state]):
        got = await ask_new(peer, name, inputResponses=answers, requestState=odd)
        assert (got.status, got.error["code"]) == (400, -32602), odd
    elsewhere = await ask_new(peer, name, "/mcp/work", inputResponses=answers, requestState=state)
    assert elsewhere.error["code"] == -32602
    changed: dict[str, Any] = {"arguments": {**ASK, **WANT, "more": 1}}
    got = await ask_new(peer, name, inputResponses=answers, requestState=state, **changed)
    assert got.error["code"] == -32602
    await answered(peer, name, key, state)
    await answered(peer, other, foreign_key, foreign)


async def test_a_call_that_was_parked_goes_on_once(running: Gate) -> None:
    peer = HttpPeer(running.url())
    key, state = question_of(await ask_new(peer, "old__ask"))
    retry: dict[str, Any] = {"inputResponses": {key: YES}, "requestState": state}
    replies = await asyncio.gather(*(ask_new(peer, "old__ask", **retry) for _ in range(10)))
    assert sorted(reply.status for reply in replies) == [200] + [400] * 9
    assert {reply.error["code"] for reply in replies if reply.status == 400} == {-32602}


@pytest.mark.parametrize("answers", [None, [], "yes", {"k": 5}, {"k": []}, {"nobody": YES}, {}])
async def test_answers_that_are_none_are_refused_or_asked_for_again(
    running: Gate, answers: Any
) -> None:
    peer = HttpPeer(running.url())
    key, state = question_of(await ask_new(peer, "old__ask"))
    renamed = (
        {key if name == "k" else name: v for name, v in answers.items()}
        if isinstance(answers, dict)
        else answers
    )
    got = await ask_new(peer, "old__ask", inputResponses=renamed, requestState=state)
    if got.status == 400:
        assert got.error["code"] == -32602
    else:
        key, state = question_of(got)
    good = await ask_new(peer, "old__ask", inputResponses={key: YES}, requestState=state)
    assert good.json["result"]["structuredContent"]["result"] == YES


async def test_where_there_is_no_room_the_oldest_parked_calls_are_given_up(running: Gate) -> None:
    peer = HttpPeer(running.url())
    parked = [question_of(await ask_new(peer, "old__ask")) for _ in range(40)]
    for key, state in parked[:8]:
        late = await ask_new(peer, "old__ask", inputResponses={key: YES}, requestState=state)
        assert (late.status, late.error["code"]) == (400, -32602)
    for key, state in (*parked[8:], question_of(await ask_new(peer, "new__want_input"))):
        await answered(peer, "old__ask" if key != "k" else "new__want_input", key, state)
    await answered(peer, "old__ask", *question_of(await ask_new(peer, "old__ask")))


async def test_thousands_of_open_subscriptions_are_bounded_and_all_are_given_back(
    running: Gate, client: OldClient
) -> None:
    pid = running.process.pid
    files, before = open_files(pid), memory(pid)
    peer = HttpPeer(running.url())
    kept: list[asyncio.StreamWriter] = []
    statuses: list[int] = []

    async def open_one() -> None:
        reader, writer = await peer.open()
        kept.append(writer)
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", **CAPABLE}
        params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        body = json.dumps(request("subscriptions/listen", params)).encode()
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
        writer.write(peer.head("POST", "/mcp", len(body), headers) + body)
        statuses.append(int((await within(reader.readline(), START)).split()[1]))

    while len(statuses) < SESSIONS + SUBSCRIPTIONS + 100:
        await asyncio.gather(*(open_one() for _ in range(50)))
    assert statuses.count(200) <= SESSIONS + SUBSCRIPTIONS
    assert set(statuses) == {200, 503}
    await fine(client)
    for writer in kept:
        writer.transport.abort()
    await until(lambda: open_files(pid) <= files + 100, START)
    assert peak_memory(pid) < before + 128 * 2**20
    kept.clear()
    statuses.clear()
    await open_one()
    assert statuses == [200]
    kept[0].transport.abort()


async def test_batches_within_batches_are_no_messages(running: Gate) -> None:
    client = await OldClient.open(running.url(), version="2025-03-26")
    deep: Any = PING
    for _ in range(50):
        deep = [deep]
    body: Any
    for body in ([[PING]], [[[PING], [PING]]], [[]], [deep], [[PING] * 100] * 100):
        got = await client.post(body)
        assert {one["error"]["code"] for one in got.json} <= {-32600, -32700}, body
    mixed = await client.post([[PING], PING, [], 5, None, "x"])
    assert [one.get("result") for one in mixed.json].count({}) == 1
    assert len(mixed.json) == 6
    assert (await client.post(b"[" * 100_000)).status == 400
    assert (await client.post(b"[" * 100_000 + b"]" * 100_000)).status in {200, 400}
    assert (await client.ask("ping"))["result"] == {}
    await client.leave()


async def test_a_crowd_of_batches_is_answered_each_on_its_own(running: Gate) -> None:
    client = await OldClient.open(running.url(), version="2025-03-26")
    calls = [
        request("tools/call", {"name": "old__echo", "arguments": {"n": n}}, n) for n in range(100)
    ]
    got = await client.post(calls)
    assert [one["result"]["structuredContent"]["n"] for one in got.json] == list(range(100))
    await client.leave()
