"""The policy: who may make which call."""

import pytest

from tests.unit.calls.conftest import FLIGHT, Bench
from thoughtgate.calls.authorized import LOCAL_USER, Rule, Verdict, by_scope
from thoughtgate.core.calls import Call, Principal
from thoughtgate.core.errors import InvalidArguments, Refused
from thoughtgate.core.tools import Effect

READER = Principal(id="ann", scopes=frozenset({"tools:read"}))


async def test_the_local_user_may_call_and_nobody_else_unless_a_rule_says_so(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo"})
    with pytest.raises(Refused):
        await bench.call("air__book", {"to": "Oslo"}, principal=READER)
    assert len(bench.sender.sent) == 1
    assert bench.audit.rows[1].policy == "default"


async def test_without_rules_nobody_may_call(bench: Bench) -> None:
    bench.extra["rules"] = ()
    bench.offer("air", FLIGHT)
    with pytest.raises(Refused):
        await bench.call("air__book", {"to": "Oslo"})


async def test_a_scope_opens_the_tools_of_its_effect(bench: Bench) -> None:
    scopes = {Effect.READ: "tools:read", Effect.WRITE: "tools:write"}
    bench.extra["rules"] = (LOCAL_USER, by_scope(scopes))
    bench.offer(
        "air", "look", "book", "set", effects={"look": Effect.READ, "set": Effect.IDEMPOTENT}
    )
    await bench.call("air__look", principal=READER)
    for name, policy in (("air__book", "scopes"), ("air__set", "default")):
        with pytest.raises(Refused):
            await bench.call(name, principal=READER)
        assert bench.audit.rows[-1].policy == policy
    assert [call.tool.name for call in bench.sender.sent] == ["look"]


async def test_the_first_rule_with_an_opinion_decides_on_arguments_that_are_valid(
    bench: Bench,
) -> None:
    judged: list[Call] = []

    def no_oslo(call: Call) -> Verdict | None:
        judged.append(call)
        to_oslo = call.arguments["to"] == "Oslo"
        return Verdict(allowed=False, reason="not to this place") if to_oslo else None

    bench.extra["rules"] = (Rule(name="no_oslo", judge=no_oslo), LOCAL_USER)
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Rome"})
    with pytest.raises(Refused):
        await bench.call("air__book", {"to": "Oslo"})
    with pytest.raises(InvalidArguments):
        await bench.call("air__book", {})
    assert len(judged) == 2
    assert bench.audit.rows[1].policy == "no_oslo"
