"""What every model client promises, over all of them; the remote ones talk real HTTP."""

import pytest

from tests.support.models import EVERY, Make, ask
from tests.support.waiting import within
from thoughtgate.core.errors import ModelError
from thoughtgate.core.models import (
    FinishReason,
    Message,
    ModelRequest,
    ModelResponse,
    Role,
    ToolSpec,
    ToolUse,
)
from thoughtgate.models.function import Function
from thoughtgate.models.scripted import Scripted

USE = ToolUse(
    id="call_7", name="logs__find", arguments='{"dir": "日志", "n": 12345678901234567890}'
)
SECOND = ToolUse(id="call_8", name="logs__find", arguments="{}")
REPLIES = {
    "say": ModelResponse(text="你好 👩‍💻\r\n\n data: x", finish=FinishReason.STOP),
    "call": ModelResponse(text="", uses=(USE, SECOND), finish=FinishReason.TOOL_CALLS),
    "both": ModelResponse(text="I look.", uses=(USE,), finish=FinishReason.TOOL_CALLS),
    "think": ModelResponse(text="42", reasoning="six times seven", finish=FinishReason.STOP),
    "cut": ModelResponse(text="once upon", finish=FinishReason.LENGTH),
    "odd": ModelResponse(text="hm", finish=FinishReason.UNKNOWN),
    "broken": ModelResponse(
        text="",
        uses=(ToolUse(id="c", name="f", arguments='{"a": '),),
        finish=FinishReason.TOOL_CALLS,
    ),
}
every = pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)


@every
@pytest.mark.parametrize("name", sorted(REPLIES))
async def test_a_reply_comes_whole_with_its_parts_apart(make: Make, name: str) -> None:
    wanted = REPLIES[name]
    async with make(wanted, ask(name)) as client:
        reply = await within(client.complete(ask(name)))
    assert (reply.text, reply.reasoning, reply.finish) == (
        wanted.text,
        wanted.reasoning,
        wanted.finish,
    )
    assert reply.uses == wanted.uses, "arguments are text: neither parsed nor mended"
    assert reply.others == ()


@every
async def test_usage_that_is_not_told_is_unknown_not_zero(make: Make) -> None:
    async with make(REPLIES["say"], ask("say")) as client:
        reply = await within(client.complete(ask("say")))
    assert reply.usage.input_tokens is None
    assert reply.usage.output_tokens is None
    assert reply.usage.cached_tokens is None


@every
@pytest.mark.parametrize("name", ["say", "call"])
async def test_as_many_replies_come_as_were_asked_for(make: Make, name: str) -> None:
    wanted, request = REPLIES[name], ask(name, n=3)
    async with make(wanted, request) as client:
        reply = await within(client.complete(request))
    assert [one.text for one in (reply, *reply.others)] == [wanted.text] * 3
    assert [one.uses for one in (reply, *reply.others)] == [wanted.uses] * 3


@every
async def test_what_cannot_be_answered_is_a_model_error(make: Make) -> None:
    async with make(None, ask("nothing")) as client:
        with pytest.raises(ModelError):
            await within(client.complete(ask("nothing")))


@every
async def test_a_conversation_with_broken_calls_in_it_can_still_be_sent(make: Make) -> None:
    """A name or arguments that a server refuses would poison every request that follows."""
    uses = (
        ToolUse(id="a", name="no such name!", arguments="{}"),
        ToolUse(id="b", name="f", arguments='{"a": '),
        ToolUse(id="c", name="f", arguments="[]"),
        ToolUse(id="d", name="f", arguments='{"a": 1}'),
    )
    results = tuple(Message(role=Role.TOOL, text=f"r{u.id}", use_id=u.id) for u in uses)
    request = ModelRequest(
        messages=(
            Message(role=Role.SYSTEM, text="s"),
            Message(role=Role.USER, text="q"),
            Message(role=Role.ASSISTANT, text="", uses=uses),
            *results,
        ),
        tools=(ToolSpec(name="f", description="d", parameters={"type": "object"}),),
    )
    async with make(REPLIES["say"], request) as client:
        assert (await within(client.complete(request))).text == REPLIES["say"].text


async def test_a_function_answers_alike_in_any_order_and_differently_by_seed() -> None:
    client = Function(lambda _, number: str(number))
    first = [(await client.complete(ask(text))).text for text in ("a", "b")]
    second = [(await client.complete(ask(text))).text for text in ("b", "a")]
    assert first == second[::-1]
    other = Function(lambda _, number: str(number), seed=1)
    assert (await other.complete(ask("a"))).text != first[0]


async def test_several_replies_of_a_function_differ_and_the_first_is_the_one_of_one() -> None:
    client = Function(lambda _, number: str(number))
    one = await client.complete(ask("a"))
    many = await client.complete(ask("a", n=3))
    assert many.text == one.text
    assert len({many.text, *(other.text for other in many.others)}) == 3


async def test_a_script_keeps_what_it_was_asked_and_can_fail() -> None:
    client = Scripted(["one", ModelError(message="down")])
    assert (await client.complete(ask("q"))).text == "one"
    with pytest.raises(ModelError, match="down"):
        await client.complete(ask("r"))
    assert [request.messages[0].text for request in client.requests] == ["q", "r"]
