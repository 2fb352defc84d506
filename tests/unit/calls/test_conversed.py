"""A server that wants to know something: its client is asked, or hears of it, or nothing is."""

import json
from dataclasses import dataclass, field, replace

import pytest

from tests.unit.calls.conftest import Bench
from thoughtgate.core.calls import Call, Notice, Question, Result, Session
from thoughtgate.core.errors import CallerReplied, UpstreamGarbled
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.servers import Era
from thoughtgate.testing.values import make_call

FORMS: JsonObject = {"elicitation": {"form": {}}, "roots": {}}
NAME = {"method": "elicitation/create", "params": {"message": "name?", "mode": "form"}}
ROOTS = {"method": "roots/list"}
DONE = Result(raw=b'{"content":[]}')


def asking(state: str | None = "s1", **requests: JsonValue) -> Result:
    asked: dict[str, JsonValue] = {"resultType": "input_required", "inputRequests": requests}
    if state is not None:
        asked["requestState"] = state
    return Result(raw=json.dumps(asked).encode(), final=False)


@dataclass
class Person:
    """A listener that answers by method."""

    answers: dict[str, JsonValue]
    asked: list[Question] = field(default_factory=list)

    async def notify(self, notice: Notice) -> None:
        raise NotImplementedError

    async def ask(self, question: Question) -> bytes:
        self.asked.append(question)
        answer = self.answers[question.method]
        if isinstance(answer, BaseException):
            raise answer
        return json.dumps(answer).encode()


def old_client(capabilities: JsonObject = FORMS) -> Session:
    return Session(
        id="s", era=Era.HANDSHAKE, version="2025-11-25", client={}, capabilities=capabilities
    )


def script(bench: Bench, *results: Result) -> None:
    left = list(results)

    async def answer(call: Call) -> Result:
        return left.pop(0) if len(left) > 1 else left[0]

    bench.offer("sky", "ask")
    bench.sender.otherwise = answer


async def call(bench: Bench, person: Person, session: Session) -> Result:
    return await bench.gateway.call(
        replace(make_call("sky__ask", {"a": 1}), listener=person, session=session)
    )


async def test_an_old_client_is_asked_and_the_call_is_sent_again_with_its_answers(
    bench: Bench,
) -> None:
    script(bench, asking(name=NAME, where=ROOTS), DONE)
    person = Person({"elicitation/create": {"action": "accept"}, "roots/list": {"roots": []}})
    assert await call(bench, person, old_client()) is DONE
    assert sorted(one.method for one in person.asked) == ["elicitation/create", "roots/list"]
    assert {one.server for one in person.asked} == {"sky"}
    first, second = bench.sender.sent
    assert first.retry is None
    assert second.retry is not None
    assert second.retry.state == "s1"
    assert second.retry.answers == {"name": {"action": "accept"}, "where": {"roots": []}}
    assert second.arguments == first.arguments
    assert [row.outcome for row in bench.audit.rows] == ["ok"]


async def test_a_state_without_questions_is_sent_back_and_no_state_is_not(bench: Bench) -> None:
    script(bench, asking(), asking(None, where=ROOTS), DONE)
    person = Person({"roots/list": {"roots": []}})
    assert await call(bench, person, old_client()) is DONE
    retries = [one.retry for one in bench.sender.sent[1:]]
    assert [(one.state, one.answers) for one in retries if one] == [
        ("s1", {}),
        (None, {"where": {"roots": []}}),
    ]


async def test_a_new_client_gets_the_question_itself(bench: Bench) -> None:
    question = asking(name=NAME)
    script(bench, question)
    session = replace(old_client(), id="", era=Era.STATELESS)
    person = Person({})
    assert await call(bench, person, session) is question
    assert person.asked == []
    assert len(bench.sender.sent) == 1
    assert bench.audit.rows[0].outcome == "input_required"


@pytest.mark.parametrize("era", list(Era))
@pytest.mark.parametrize(
    ("declared", "asked"),
    [
        ({}, NAME),
        ({"elicitation": {"url": {}}}, NAME),
        ({"elicitation": {}}, {"method": "elicitation/create", "params": {"mode": "url"}}),
        ({"sampling": {}}, {"method": "sampling/createMessage", "params": {"tools": []}}),
        (FORMS, {"method": "sampling/createMessage", "params": {}}),
        (FORMS, {"method": "tools/call", "params": {}}),
    ],
)
async def test_nobody_is_asked_for_what_it_did_not_offer(
    bench: Bench, era: Era, declared: JsonObject, asked: JsonObject
) -> None:
    script(bench, asking(it=asked))
    person = Person({})
    with pytest.raises(UpstreamGarbled, match="not offered"):
        await call(bench, person, replace(old_client(declared), era=era))
    assert person.asked == []


async def test_a_server_that_asks_without_end_is_given_up(bench: Bench) -> None:
    script(bench, asking(where=ROOTS))
    person = Person({"roots/list": {"roots": []}})
    with pytest.raises(UpstreamGarbled, match="more input"):
        await call(bench, person, old_client())
    assert len(person.asked) == 16


@pytest.mark.parametrize(
    "raw",
    [
        b'{"resultType":"input_required","inputRequests":[]}',
        b'{"resultType":"input_required","inputRequests":{"a":1}}',
        b'{"resultType":"input_required","inputRequests":{"a":{"method":1}}}',
        b'{"resultType":"input_required","requestState":{}}',
    ],
)
async def test_questions_that_are_none_are_the_server_s_fault(bench: Bench, raw: bytes) -> None:
    script(bench, Result(raw=raw, final=False))
    with pytest.raises(UpstreamGarbled):
        await call(bench, Person({}), old_client())


async def test_a_client_s_error_ends_the_call_as_the_client_s(bench: Bench) -> None:
    script(bench, asking(name=NAME, where=ROOTS))
    refusal = CallerReplied(rpc_code=-1, rpc_message="user left")
    with pytest.raises(CallerReplied) as raised:
        await call(
            bench,
            Person({"elicitation/create": refusal, "roots/list": {"roots": []}}),
            old_client(),
        )
    assert raised.value is refusal
    assert len(bench.sender.sent) == 1
