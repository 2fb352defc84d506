"""Questions to a client: bounded in number and time, answered once, taken back when unused."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.waiting import until, within
from thoughtgate.core.calls import Question
from thoughtgate.core.errors import CallerReplied, NotAsked
from thoughtgate.surface.asking import MOST, Asks
from thoughtgate.surface.mailbox import Mailbox
from thoughtgate.surface.relay import Peer
from thoughtgate.wire.messages import Failure, Reply

ROOTS = Question(method="roots/list", params={})
OWNER = object()


class Client:
    """What was sent to a client."""

    def __init__(self, patience: float = 600.0) -> None:
        self.asks = Asks({"roots": {}, "elicitation": {}}, patience=patience)
        self.heard: list[Any] = []

    async def emit(self, frame: bytes) -> None:
        self.heard.append(json.loads(frame))

    def ask(self, owner: object = OWNER) -> "asyncio.Task[bytes]":
        return asyncio.create_task(self.asks.ask(ROOTS, self.emit, owner))

    async def asked(self, number: int = 1) -> list[Any]:
        await until(lambda: len(self.heard) == number)
        return [message["id"] for message in self.heard]


async def test_answers_find_their_questions_in_any_order() -> None:
    client = Client()
    first, second = client.ask(), client.ask()
    one, two = await client.asked(2)
    assert one != two
    client.asks.answered(Reply(id=two, result=b'{"b": 1.0}', value={"b": 1.0}))
    client.asks.answered(Reply(id=one, result=b"{}", value={}))
    assert (await within(first), await within(second)) == (b"{}", b'{"b": 1.0}')
    assert len(client.asks) == 0
    assert client.asks.strays == 0


async def test_an_answer_that_comes_twice_or_to_nothing_is_counted() -> None:
    client = Client()
    task = client.ask()
    (id_,) = await client.asked()
    for _ in range(2):
        client.asks.answered(Reply(id=id_, result=b"{}", value={}))
    client.asks.answered(Reply(id=1, result=b"{}", value={}))
    client.asks.answered(Failure(id=None, code=-32600, message="what?"))
    await within(task)
    assert client.asks.strays == 3


async def test_an_error_is_relayed_with_its_data() -> None:
    client = Client()
    task = client.ask()
    (id_,) = await client.asked()
    client.asks.answered(Failure(id=id_, code=-1, message="no", data={"x": 1}))
    with pytest.raises(CallerReplied) as caught:
        await within(task)
    assert (caught.value.rpc_code, caught.value.rpc_data) == (-1, {"x": 1})


async def test_a_client_that_does_not_answer_in_time_is_told_not_to_any_more() -> None:
    client = Client(patience=0.01)
    task = client.ask()
    with pytest.raises(NotAsked):
        await within(task)
    asked, taken_back = client.heard
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == asked["id"]
    client.asks.answered(Reply(id=asked["id"], result=b"{}", value={}))
    assert client.asks.strays == 1


async def test_only_so_many_questions_are_open() -> None:
    client = Client()
    tasks = [client.ask() for _ in range(MOST)]
    await client.asked(MOST)
    with pytest.raises(NotAsked):
        await within(client.ask())
    for task in tasks:
        task.cancel()
    await within(asyncio.gather(*tasks, return_exceptions=True))
    assert len(client.asks) == 0
    assert len(client.heard) == 2 * MOST


async def test_a_call_that_is_over_takes_only_its_own_questions_back() -> None:
    client, other = Client(), object()
    mine, theirs = client.ask(), client.ask(other)
    _, kept = await client.asked(2)
    await client.asks.retract(OWNER)
    with pytest.raises(NotAsked):
        await within(mine)
    assert len(client.heard) == 3
    client.asks.answered(Reply(id=kept, result=b"{}", value={}))
    assert await within(theirs) == b"{}"


async def test_a_client_that_is_gone_answers_nothing() -> None:
    client = Client()
    task = client.ask()
    await client.asked()
    client.asks.close()
    for question in (task, client.ask()):
        with pytest.raises(NotAsked):
            await within(question)
    assert len(client.heard) == 1


@pytest.mark.parametrize("method", ["sampling/createMessage", "tools/call", "acme/x"])
async def test_what_was_not_declared_is_never_sent(method: str) -> None:
    client = Client()
    with pytest.raises(NotAsked):
        await client.asks.ask(Question(method=method, params={}), client.emit, OWNER)
    assert client.heard == []


async def test_a_client_without_a_stream_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("thoughtgate.surface.relay.WAIT", 0.01)
    peer = Peer(Mailbox("d"), Client().asks, _nowhere, None)
    with pytest.raises(NotAsked):
        await within(peer.ask(ROOTS))


def _nowhere() -> Any:
    raise AssertionError
