"""A call's time while its caller is asked: it stands still, and no more is given than was left."""

import asyncio

import pytest

from tests.support.upstreams import Heard
from tests.support.waiting import until, within
from tests.unit.upstream.test_limit import limited
from thoughtgate.core.calls import Notice, Question
from thoughtgate.core.errors import NotAsked
from thoughtgate.upstream.patience import Patient, behind

QUESTION = Question(method="roots/list", params={})


class Slow:
    """A caller that answers when its gate opens."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.asked = 0

    async def notify(self, notice: Notice) -> None:
        raise NotImplementedError

    async def ask(self, question: Question) -> bytes:
        self.asked += 1
        await self.gate.wait()
        return b"{}"


async def test_the_time_of_a_call_stands_still_while_its_caller_thinks() -> None:
    slow = Slow()
    with limited(5.0) as limit:
        patient = Patient(slow, limit)
        asking = [asyncio.ensure_future(patient.ask(QUESTION)) for _ in range(2)]
        await until(lambda: slow.asked == 2)
        stopped = limit.when
        slow.gate.set()
        assert await within(asyncio.gather(*asking)) == [b"{}", b"{}"]
        assert stopped is None
        assert limit.when is not None


async def test_what_was_left_is_all_that_is_given_after_an_answer() -> None:
    slow = Slow()
    asyncio.get_running_loop().call_later(0.2, slow.gate.set)
    answers: list[bytes] = []
    with pytest.raises(TimeoutError):
        await within(hanging(slow, answers))
    assert answers == [b"{}"]


async def test_a_refusal_lets_the_time_go_on() -> None:
    with limited(5.0) as limit:
        with pytest.raises(NotAsked):
            await Patient(Heard(), limit).ask(QUESTION)
        assert limit.when is not None


async def test_a_question_that_outlives_its_call_harms_nobody() -> None:
    slow = Slow()
    with limited(5.0) as limit:
        asking = asyncio.ensure_future(Patient(slow, limit).ask(QUESTION))
        await until(lambda: slow.asked)
    slow.gate.set()
    assert await within(asking) == b"{}"


async def test_the_caller_is_found_behind_every_patience() -> None:
    heard = Heard()
    limit = limited(5.0)
    assert behind(Patient(Patient(heard, limit), limit)) is heard


async def hanging(caller: Slow, answers: list[bytes]) -> None:
    """Ask, then never end; what bounds it is shorter than the caller takes."""
    with limited(0.05) as limit:
        answers.append(await Patient(caller, limit).ask(QUESTION))
        await asyncio.get_running_loop().create_future()
