"""Calls of stateless clients over several requests: parked, resumed, sealed, bound, bounded."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from tests.support.fake_gateway import FakeGateway, done
from tests.support.waiting import until, within
from thoughtgate.core.calls import (
    LOCAL,
    Call,
    Notice,
    NoticeKind,
    Principal,
    Question,
    Result,
    Session,
)
from thoughtgate.core.errors import NotAsked, Overloaded
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.servers import Era
from thoughtgate.surface.desk import Asker, Desk
from thoughtgate.surface.parked import ParkingLimits
from thoughtgate.surface.relay import Line
from thoughtgate.surface.rounds import Rounds
from thoughtgate.wire.messages import BadMessage

KEY = b"k" * 32
DECLARED: JsonObject = {"elicitation": {}, "roots": {}}
NAME = Question(method="elicitation/create", params={"message": "name?", "requestedSchema": {}})
ROOTS = Question(method="roots/list", params={})


def asker(capabilities: JsonObject = DECLARED, principal: Principal = LOCAL) -> Asker:
    session = Session(
        id="", era=Era.STATELESS, version="2026-07-28", client={}, capabilities=capabilities
    )
    return Asker(domain="default", principal=principal, session=session, log_level="info")


@dataclass
class Bench:
    """Rounds over a gateway whose tools are functions, with a clock that is set by hand."""

    gateway: FakeGateway = field(default_factory=FakeGateway)
    limits: ParkingLimits | None = None
    now: float = 1000.0
    frames: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rounds = Rounds(Desk(self.gateway), KEY, limits=self.limits, clock=lambda: self.now)

    async def emit(self, frame: bytes) -> None:
        self.frames.append(frame)

    async def send(
        self, name: str = "ask", *, who: Asker | None = None, **more: JsonValue
    ) -> Result:
        params = {"name": name, "arguments": {"n": 1}, **more}
        line = Line(emit=self.emit)
        return await within(self.rounds.call("tools/call", params, who or asker(), line))

    async def again(self, asked: Result, answers: JsonObject, **more: JsonValue) -> Result:
        state = json.loads(asked.raw)["requestState"]
        return await self.send(inputResponses=answers, requestState=state, **more)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.rounds.close()


async def asks_name(call: Call) -> Result:
    answer = json.loads(await call.listener.ask(NAME))
    return done(structured={"got": answer, "id": call.id})


def questions(asked: Result) -> dict[str, JsonValue]:
    assert not asked.final
    value = json.loads(asked.raw)
    assert value["resultType"] == "input_required"
    found: dict[str, JsonValue] = value["inputRequests"]
    return found


async def test_a_call_that_asks_is_parked_and_goes_on_with_the_retry_s_answer(bench: Bench) -> None:
    bench.gateway.add("ask", asks_name)
    asked = await bench.send()
    ((key, question),) = questions(asked).items()
    assert question == {"method": NAME.method, "params": NAME.params}
    assert bench.rounds.parked == 1
    finished = await bench.again(asked, {key: {"action": "accept", "content": {"n": 2**70}}})
    assert finished.final
    content = json.loads(finished.raw)["structuredContent"]
    assert content["got"] == {"action": "accept", "content": {"n": 2**70}}
    assert len(bench.gateway.calls) == 1
    assert bench.rounds.parked == 0


async def test_questions_asked_side_by_side_come_in_one_result(bench: Bench) -> None:
    async def both(call: Call) -> Result:
        answers = await asyncio.gather(call.listener.ask(NAME), call.listener.ask(ROOTS))
        return done(structured={"got": [json.loads(one) for one in answers]})

    bench.gateway.add("ask", both)
    asked = await bench.send()
    keys = list(questions(asked))
    assert len(keys) == 2
    rest = await bench.again(asked, {keys[0]: {"first": 1}, "unknown": {"x": 1}})
    assert list(questions(rest)) == keys[1:]
    finished = await bench.again(rest, {keys[1]: {"second": 2}})
    assert json.loads(finished.raw)["structuredContent"]["got"] == [{"first": 1}, {"second": 2}]


@pytest.mark.parametrize("wrong", [{}, {"other": {}}, {"KEY": 12345}, {"KEY": None}])
async def test_a_retry_without_a_usable_answer_is_asked_again(
    bench: Bench, wrong: JsonObject
) -> None:
    bench.gateway.add("ask", asks_name)
    asked = await bench.send()
    (key,) = questions(asked)
    given = {key if name == "KEY" else name: value for name, value in wrong.items()}
    once_more = await bench.again(asked, given)
    assert list(questions(once_more)) == [key]
    assert (await bench.again(once_more, {key: {}})).final


async def test_each_round_has_a_state_of_its_own_that_works_once(bench: Bench) -> None:
    async def twice(call: Call) -> Result:
        await call.listener.ask(NAME)
        await call.listener.ask(NAME)
        return done()

    bench.gateway.add("ask", twice)
    first = await bench.send()
    second = await bench.again(first, {key: {} for key in questions(first)})
    assert json.loads(first.raw)["requestState"] != json.loads(second.raw)["requestState"]
    assert not set(questions(first)) & set(questions(second))
    with pytest.raises(BadMessage, match="answered already"):
        await bench.again(first, {key: {} for key in questions(first)})
    assert (await bench.again(second, {key: {} for key in questions(second)})).final


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"n": 2}},
        {"name": "other"},
        {"who": asker(principal=Principal(id="somebody"))},
        {"who": replace(asker(), domain="other")},
        {"requestState": "nonsense"},
        {"requestState": ""},
        {"requestState": "Ä" * 10},
    ],
)
async def test_a_state_that_is_not_this_request_s_is_refused_and_the_call_stays_parked(
    bench: Bench, change: dict[str, JsonValue]
) -> None:
    bench.gateway.add("ask", asks_name).add("other", asks_name)
    asked = await bench.send()
    state = json.loads(asked.raw)["requestState"]
    answers = {key: {"stolen": True} for key in questions(asked)}
    with pytest.raises(BadMessage, match="requestState"):
        await bench.send(**{"inputResponses": answers, "requestState": state, **change})
    assert bench.rounds.parked == 1
    assert len(bench.gateway.calls) == 1


@pytest.mark.parametrize("position", [0, 10, 40, -1])
async def test_a_state_with_one_letter_changed_does_not_open(bench: Bench, position: int) -> None:
    bench.gateway.add("ask", asks_name)
    asked = await bench.send()
    state = list(json.loads(asked.raw)["requestState"])
    state[position] = "A" if state[position] != "A" else "B"
    with pytest.raises(BadMessage):
        await bench.send(inputResponses={}, requestState="".join(state))


async def test_a_state_expires(bench: Bench) -> None:
    bench.gateway.add("ask", asks_name)
    asked = await bench.send()
    bench.now += 601
    with pytest.raises(BadMessage, match="expired"):
        await bench.again(asked, {})


def server_asks(state: str | None) -> Result:
    value: dict[str, JsonValue] = {
        "resultType": "input_required",
        "inputRequests": {"theirs": {"method": "roots/list"}},
        "x-own": 1.5,
    }
    if state is not None:
        value["requestState"] = state
    return Result(raw=json.dumps(value).encode(), final=False)


@pytest.mark.parametrize("capabilities", [DECLARED, {"tasks": {}}])
async def test_a_server_s_own_state_travels_sealed_and_comes_back_as_it_was(
    bench: Bench, capabilities: JsonObject
) -> None:
    async def handler(call: Call) -> Result:
        return server_asks("their secret state") if call.retry is None else done()

    bench.gateway.add("ask", handler)
    who = asker(capabilities)
    asked = await bench.send(who=who)
    value = json.loads(asked.raw)
    assert "their secret" not in value["requestState"]
    assert (value["inputRequests"], value["x-own"]) == ({"theirs": {"method": "roots/list"}}, 1.5)
    assert bench.rounds.parked == 0
    assert (await bench.again(asked, {"theirs": {"roots": []}}, who=who)).final
    retry = bench.gateway.calls[1].retry
    assert retry is not None
    assert (retry.state, retry.answers) == ("their secret state", {"theirs": {"roots": []}})


async def test_without_a_state_of_the_server_s_none_is_made_up(bench: Bench) -> None:
    async def handler(call: Call) -> Result:
        return server_asks(None) if call.retry is None else done()

    bench.gateway.add("ask", handler)
    assert "requestState" not in json.loads((await bench.send()).raw)
    assert (await bench.send(inputResponses={"theirs": {}})).final
    retry = bench.gateway.calls[1].retry
    assert retry is not None
    assert retry.state is None


async def test_who_declares_nothing_is_asked_nothing_and_costs_no_task(bench: Bench) -> None:
    async def handler(call: Call) -> Result:
        with pytest.raises(NotAsked):
            await call.listener.ask(NAME)
        return done(structured={"here": asyncio.current_task() is task})

    task = asyncio.current_task()
    bench.gateway.add("ask", handler)
    line = Line(emit=bench.emit)
    result = await bench.rounds.call("tools/call", {"name": "ask"}, asker({}), line)
    assert json.loads(result.raw)["structuredContent"] == {"here": True}


async def test_only_what_was_declared_is_asked(bench: Bench) -> None:
    async def handler(call: Call) -> Result:
        with pytest.raises(NotAsked):
            await call.listener.ask(Question(method="sampling/createMessage", params={}))
        return done()

    bench.gateway.add("ask", handler)
    assert (await bench.send()).final


async def test_notifications_go_to_the_request_that_waits(bench: Bench) -> None:
    async def handler(call: Call) -> Result:
        for text in ("before", "after"):
            await call.listener.notify(
                Notice(kind=NoticeKind.LOG, params={"level": "error", "data": text})
            )
            if text == "before":
                await call.listener.ask(NAME)
        return done()

    bench.gateway.add("ask", handler)
    asked = await bench.send()
    assert [json.loads(frame)["params"]["data"] for frame in bench.frames] == ["before"]
    await bench.again(asked, {key: {} for key in questions(asked)})
    assert [json.loads(frame)["params"]["data"] for frame in bench.frames] == ["before", "after"]


async def hanging(bench: Bench, name: str = "ask") -> asyncio.Event:
    """Add a tool that asks once and then hangs; return what is set when it is cancelled."""
    cancelled = asyncio.Event()

    async def handler(call: Call) -> Result:
        try:
            await call.listener.ask(NAME)
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()
        raise AssertionError

    bench.gateway.add(name, handler)
    return cancelled


async def test_a_client_that_leaves_while_its_call_runs_has_given_it_up(bench: Bench) -> None:
    cancelled = await hanging(bench)
    asked = await bench.send()
    retry = asyncio.ensure_future(bench.again(asked, {key: {} for key in questions(asked)}))
    await until(lambda: bench.rounds.parked == 0)
    retry.cancel()
    await within(cancelled.wait())
    await asyncio.wait([retry])
    assert retry.cancelled()


async def test_who_does_not_come_back_in_time_has_given_it_up() -> None:
    bench = Bench(limits=ParkingLimits(seconds=0.01))
    cancelled = await hanging(bench)
    await bench.send()
    await within(cancelled.wait())
    assert bench.rounds.parked == 0


async def test_closing_gives_up_what_is_parked(bench: Bench) -> None:
    cancelled = await hanging(bench)
    await bench.send()
    bench.rounds.close()
    await within(cancelled.wait())


@pytest.mark.parametrize("limits", [ParkingLimits(most=2), ParkingLimits(most_each=2, most=100)])
async def test_the_oldest_of_a_client_s_waiting_calls_makes_room(limits: ParkingLimits) -> None:
    bench = Bench(limits=limits)
    cancelled = await hanging(bench)
    first = await bench.send()
    await bench.send()
    assert not cancelled.is_set()
    await bench.send()
    await within(cancelled.wait())
    assert bench.rounds.parked == 2
    with pytest.raises(BadMessage, match="given up"):
        await bench.again(first, {})
    bench.rounds.close()


async def test_nobody_s_waiting_call_makes_room_for_another_s() -> None:
    bench = Bench(limits=ParkingLimits(most=2))
    await hanging(bench)
    asked = [await bench.send() for _ in range(2)]
    with pytest.raises(Overloaded):
        await bench.send(who=asker(principal=Principal(id="other")))
    assert bench.rounds.parked == 2
    assert len({json.loads(one.raw)["requestState"] for one in asked}) == 2
    bench.rounds.close()


async def test_one_call_may_have_only_so_many_questions_open(bench: Bench) -> None:
    async def handler(call: Call) -> Result:
        asking = [asyncio.ensure_future(call.listener.ask(ROOTS)) for _ in range(16)]
        await asyncio.sleep(0)
        with pytest.raises(NotAsked, match="16 questions"):
            await call.listener.ask(ROOTS)
        for one in asking:
            one.cancel()
        return done(structured={"reached": True})

    bench.gateway.add("ask", handler)
    result = await bench.send()
    while not result.final:
        result = await bench.again(result, {})
    assert json.loads(result.raw)["structuredContent"] == {"reached": True}
