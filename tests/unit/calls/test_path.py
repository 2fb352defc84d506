"""The list of stages: in which order, and where the user's own stand."""

from dataclasses import replace

import pytest

from tests.unit.calls.conftest import FLIGHT, Bench
from thoughtgate.calls.path import Equipment, Middleware, compose, steps
from thoughtgate.calls.snapshot import Snapshot
from thoughtgate.catalog import merge
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.ports import Next
from thoughtgate.testing.sender import EMPTY
from thoughtgate.testing.values import make_call


async def test_the_first_stage_listed_runs_outermost() -> None:
    seen: list[str] = []

    async def outer(call: Call, call_next: Next) -> Result:
        seen.append("outer in")
        result = await call_next(call)
        seen.append("outer out")
        return result

    async def inner(call: Call, call_next: Next) -> Result:
        seen.append("inner")
        return await call_next(call)

    async def end(call: Call) -> Result:
        seen.append("end")
        return EMPTY

    assert await compose([outer, inner], end)(make_call()) is EMPTY
    assert seen == ["outer in", "inner", "end", "outer out"]


async def passing(call: Call, call_next: Next) -> Result:
    return await call_next(call)


@pytest.mark.parametrize(("traced", "first"), [(True, ["traced"]), (False, [])])
def test_the_stages_stand_in_this_order(bench: Bench, traced: bool, first: list[str]) -> None:
    equipment = Equipment(
        sender=bench.sender,
        audit=bench.audit,
        recorder=bench.recorder if traced else None,
        middleware=[Middleware(name="mine", stage=passing)],
    )
    listed = steps(Snapshot(catalog=merge(()), domains={}), equipment)
    assert [step.name for step in listed] == [
        *first,
        "audited",
        "resolved",
        "bounded",
        "mine",
        "checked_in",
        "authorized",
        "checked_out",
        "conversed",
    ]


def test_an_intent_is_written_last_of_all_before_a_call_is_sent(bench: Bench) -> None:
    equipment = Equipment(sender=bench.sender, audit=bench.audit, intents=True)
    listed = steps(Snapshot(catalog=merge(()), domains={}), equipment)
    assert [step.name for step in listed][-4:] == [
        "authorized",
        "intended",
        "checked_out",
        "conversed",
    ]


async def test_what_a_users_stage_changes_is_checked(bench: Bench) -> None:
    async def spoil(call: Call, call_next: Next) -> Result:
        return await call_next(replace(call, arguments={**call.arguments, "seat": "window"}))

    bench.extra["middleware"] = [Middleware(name="spoil", stage=spoil)]
    bench.offer("air", FLIGHT)
    with pytest.raises(InvalidArguments):
        await bench.call("air__book", {"to": "Oslo"})
    assert not bench.sender.sent
