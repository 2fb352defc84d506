"""What every model client promises, over all of them; the remote one talks real HTTP."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from tests.support.posting import posting
from tests.support.waiting import within
from thoughtgate.core.errors import ModelError
from thoughtgate.core.json import JsonObject
from thoughtgate.core.models import (
    FinishReason,
    Message,
    ModelRequest,
    ModelResponse,
    Role,
    ToolSpec,
    ToolUse,
)
from thoughtgate.core.ports import ModelClient
from thoughtgate.models.function import Function
from thoughtgate.models.openai_chat import ChatSettings, OpenAIChat
from thoughtgate.models.scripted import Scripted
from thoughtgate.testing.openai_server import OpenAIServer, Trouble

USE = ToolUse(
    id="call_7", name="logs__find", arguments='{"dir": "日志", "n": 12345678901234567890}'
)
REPLIES = {
    "say": ModelResponse(text="你好 👩‍💻", finish=FinishReason.STOP),
    "call": ModelResponse(text="", uses=(USE,), finish=FinishReason.TOOL_CALLS),
    "think": ModelResponse(text="42", reasoning="six times seven", finish=FinishReason.STOP),
    "broken": ModelResponse(
        text="",
        uses=(ToolUse(id="c", name="f", arguments='{"a": '),),
        finish=FinishReason.TOOL_CALLS,
    ),
}


def ask(text: str) -> ModelRequest:
    return ModelRequest(messages=(Message(role=Role.USER, text=text),))


def message(reply: ModelResponse) -> JsonObject:
    calls = [
        {
            "id": use.id,
            "type": "function",
            "function": {"name": use.name, "arguments": use.arguments},
        }
        for use in reply.uses
    ]
    return {
        "content": reply.text or None,
        **({"tool_calls": calls} if calls else {}),
        **({"reasoning_content": reply.reasoning} if reply.reasoning else {}),
    }


@asynccontextmanager
async def scripted(text: str) -> AsyncIterator[ModelClient]:
    yield Scripted([REPLIES[text]] if text in REPLIES else [])


@asynccontextmanager
async def function(text: str) -> AsyncIterator[ModelClient]:
    def reply(request: ModelRequest, _: int) -> ModelResponse:
        if text not in REPLIES:
            raise ModelError(message="no such reply")
        return REPLIES[request.messages[-1].text]

    yield Function(reply)


@asynccontextmanager
async def remote(text: str) -> AsyncIterator[ModelClient]:
    server = OpenAIServer(lambda body: message(REPLIES[body["messages"][-1]["content"]]))
    if text not in REPLIES:
        server.troubles = [Trouble(status=400)]
    async with server, posting() as post:
        yield OpenAIChat(ChatSettings(base_url=server.url, model="m"), post=post, sleep=_no_sleep)


async def _no_sleep(_: float) -> None:
    """Tests wait for nothing."""


Make = Callable[[str], AbstractAsyncContextManager[ModelClient]]
EVERY = pytest.mark.parametrize("make", [scripted, function, remote])


@EVERY
@pytest.mark.parametrize("text", sorted(REPLIES))
async def test_a_reply_comes_whole_with_its_parts_apart(make: Make, text: str) -> None:
    async with make(text) as client:
        reply = await within(client.complete(ask(text)))
    wanted = REPLIES[text]
    assert (reply.text, reply.reasoning, reply.finish) == (
        wanted.text,
        wanted.reasoning,
        wanted.finish,
    )
    assert reply.uses == wanted.uses, "arguments are text: neither parsed nor mended"


@EVERY
async def test_usage_that_is_not_told_is_unknown_not_zero(make: Make) -> None:
    async with make("say") as client:
        reply = await within(client.complete(ask("say")))
    assert reply.usage.input_tokens is None
    assert reply.usage.output_tokens is None


@EVERY
async def test_what_cannot_be_answered_is_a_model_error(make: Make) -> None:
    async with make("nothing") as client:
        with pytest.raises(ModelError):
            await within(client.complete(ask("nothing")))


async def test_a_function_answers_alike_in_any_order_and_differently_by_seed() -> None:
    client = Function(lambda _, number: str(number))
    first = [(await client.complete(ask(text))).text for text in ("a", "b")]
    second = [(await client.complete(ask(text))).text for text in ("b", "a")]
    assert first == second[::-1]
    other = Function(lambda _, number: str(number), seed=1)
    assert (await other.complete(ask("a"))).text != first[0]


async def test_a_script_keeps_what_it_was_asked_and_can_fail() -> None:
    client = Scripted(["one", ModelError(message="down")])
    assert (await client.complete(ask("q"))).text == "one"
    with pytest.raises(ModelError, match="down"):
        await client.complete(ask("r"))
    assert [request.messages[0].text for request in client.requests] == ["q", "r"]


async def test_everything_that_was_asked_stands_in_the_request() -> None:
    tool = ToolSpec(name="f", description="d", parameters={"type": "object"})
    use = ToolUse(id="c1", name="f", arguments="{}")
    request = ModelRequest(
        messages=(
            Message(role=Role.SYSTEM, text="s"),
            Message(role=Role.ASSISTANT, text="t", uses=(use,)),
            Message(role=Role.TOOL, text="r", use_id="c1"),
        ),
        tools=(tool,),
        stop=("\nObservation:",),
        seed=7,
        max_tokens=9,
        response_schema={"type": "object"},
    )
    async with (
        OpenAIServer(lambda _: "ok", usage={"prompt_tokens": 3}) as server,
        posting() as post,
    ):
        settings = ChatSettings(base_url=server.url + "/", model="m", key="sk-secret")
        client = OpenAIChat(settings, post=post, sleep=_no_sleep)
        reply = await within(client.complete(request))
    (seen,) = server.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == "Bearer sk-secret"
    body = seen.body
    assert (body["model"], body["stop"], body["seed"], body["max_tokens"], body["stream"]) == (
        "m", ["\nObservation:"], 7, 9, False,
    )  # fmt: skip
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert body["messages"][2]["tool_call_id"] == "c1"
    assert body["tools"][0]["function"]["parameters"] == {"type": "object"}
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, None)
