"""Every model client, made so that it gives wanted replies; the remote ones talk real HTTP."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.support.posting import posting
from thoughtgate.core.calls import Notice, Question
from thoughtgate.core.errors import CallerReplied, ModelError
from thoughtgate.core.json import JsonObject
from thoughtgate.core.models import FinishReason, Message, ModelRequest, ModelResponse, Role
from thoughtgate.core.ports import ModelClient
from thoughtgate.models.anthropic import Anthropic
from thoughtgate.models.function import Function
from thoughtgate.models.openai_chat import ChatSettings, OpenAIChat
from thoughtgate.models.patience import Door, Patience
from thoughtgate.models.records import Recorded
from thoughtgate.models.replay import Replay
from thoughtgate.models.sampling import Lender, Sampling
from thoughtgate.models.scripted import Scripted
from thoughtgate.testing.anthropic_server import AnthropicServer
from thoughtgate.testing.openai_server import OpenAIServer, Trouble
from thoughtgate.wire.strict import dumps

Make = Callable[[ModelResponse | None, ModelRequest], AbstractAsyncContextManager[ModelClient]]
"""Gives a client that replies so to this question; None: it cannot."""

QUICK = Patience(timeout=5.0, stall=5.0, tries=2)


def ask(text: str, *, n: int = 1) -> ModelRequest:
    """Return a question."""
    return ModelRequest(messages=(Message(role=Role.USER, text=text),), n=n)


async def no_sleep(_: float) -> None:
    """Wait for nothing."""


def openai_message(reply: ModelResponse) -> JsonObject:
    """Return the assistant message that holds a reply."""
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
        "finish_reason": reply.finish.value,
        **({"tool_calls": calls} if calls else {}),
        **({"reasoning_content": reply.reasoning} if reply.reasoning else {}),
    }


def blocks(reply: ModelResponse) -> list[JsonObject]:
    """Return the blocks of content that hold a reply; arguments stay text."""
    thought = {"type": "thinking", "thinking": reply.reasoning, "signature": "s"}
    calls = [
        {"type": "tool_use", "id": use.id, "name": use.name, "input": use.arguments}
        for use in reply.uses
    ]
    return [
        *([thought] if reply.reasoning else []),
        *([{"type": "text", "text": reply.text}] if reply.text else []),
        *calls,
    ]


_STOPS: Mapping[FinishReason, str] = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.FILTER: "refusal",
}


def _one(reply: ModelResponse | None, request: ModelRequest) -> list[str | ModelResponse]:
    return [] if reply is None else [reply] * request.n


@asynccontextmanager
async def scripted(
    reply: ModelResponse | None, request: ModelRequest
) -> AsyncIterator[ModelClient]:
    """Give a scripted client."""
    yield Scripted(_one(reply, request))


@asynccontextmanager
async def replay(reply: ModelResponse | None, request: ModelRequest) -> AsyncIterator[ModelClient]:
    """Give a client that replays."""
    whole = [] if reply is None else [reply] * (request.n - 1)
    records = [Recorded(request=request, response=_with(reply, whole))] if reply else []
    yield Replay(records)


def _with(reply: ModelResponse, others: list[ModelResponse]) -> ModelResponse:
    return ModelResponse(
        text=reply.text,
        uses=reply.uses,
        reasoning=reply.reasoning,
        usage=reply.usage,
        finish=reply.finish,
        others=tuple(others),
    )


@asynccontextmanager
async def function(
    reply: ModelResponse | None, request: ModelRequest
) -> AsyncIterator[ModelClient]:
    """Give a client that computes."""

    def compute(_: ModelRequest, __: int) -> ModelResponse:
        if reply is None:
            raise ModelError(message="no such reply")
        return reply

    yield Function(compute)


@asynccontextmanager
async def _openai(
    reply: ModelResponse | None, *, stream: bool, many: bool = True
) -> AsyncIterator[ModelClient]:
    message = {} if reply is None else openai_message(reply)
    server = OpenAIServer(lambda _: message, many=many)
    if reply is None:
        server.troubles = [Trouble(status=400)]
    async with server, posting() as post:
        settings = ChatSettings(base_url=server.url, model="m", stream=stream, patience=QUICK)
        yield OpenAIChat(settings, Door(post=post, sleep=no_sleep))


@asynccontextmanager
async def openai(reply: ModelResponse | None, request: ModelRequest) -> AsyncIterator[ModelClient]:
    """Give a client of chat completions."""
    async with _openai(reply, stream=False) as client:
        yield client


@asynccontextmanager
async def openai_single(
    reply: ModelResponse | None, request: ModelRequest
) -> AsyncIterator[ModelClient]:
    """Give one whose server knows no `n`."""
    async with _openai(reply, stream=False, many=False) as client:
        yield client


@asynccontextmanager
async def openai_stream(
    reply: ModelResponse | None, request: ModelRequest
) -> AsyncIterator[ModelClient]:
    """Give a client of chat completions that has replies streamed."""
    async with _openai(reply, stream=True) as client:
        yield client


@asynccontextmanager
async def _anthropic(reply: ModelResponse | None, *, stream: bool) -> AsyncIterator[ModelClient]:
    content = [] if reply is None else blocks(reply)
    stop = "" if reply is None else _STOPS.get(reply.finish, "pause_turn")
    server = AnthropicServer(lambda _: content, stop=stop)
    if reply is None:
        server.troubles = [Trouble(status=400)]
    async with server, posting() as post:
        settings = ChatSettings(base_url=server.url, model="m", stream=stream, patience=QUICK)
        yield Anthropic(settings, Door(post=post, sleep=no_sleep))


@asynccontextmanager
async def anthropic(
    reply: ModelResponse | None, request: ModelRequest
) -> AsyncIterator[ModelClient]:
    """Give a client of Anthropic's messages."""
    async with _anthropic(reply, stream=False) as client:
        yield client


@asynccontextmanager
async def anthropic_stream(
    reply: ModelResponse | None, request: ModelRequest
) -> AsyncIterator[ModelClient]:
    """Give one that has replies streamed."""
    async with _anthropic(reply, stream=True) as client:
        yield client


class Client:
    """The caller's side, which lends a model: answers by a function, and keeps the questions."""

    def __init__(self, answer: Callable[[Question], JsonObject | Exception]) -> None:
        self._answer = answer
        self.asked: list[Question] = []

    async def notify(self, notice: Notice) -> None:
        """Hear nothing."""

    async def ask(self, question: Question) -> bytes:
        """Answer."""
        self.asked.append(question)
        answer = self._answer(question)
        if isinstance(answer, Exception):
            raise answer
        return dumps(answer)


SAMPLES: JsonObject = {"sampling": {"tools": {}}}

_SAMPLED = {"end_turn": "endTurn", "max_tokens": "maxTokens", "tool_use": "toolUse"}


@asynccontextmanager
async def sampling(
    reply: ModelResponse | None, request: ModelRequest
) -> AsyncIterator[ModelClient]:
    """Give a client that asks the caller."""

    def answer(_: Question) -> JsonObject | Exception:
        if reply is None:
            return CallerReplied(rpc_code=-1, rpc_message="User rejected sampling request")
        content = blocks(reply)
        stop = _SAMPLED.get(_STOPS.get(reply.finish, ""), "other")
        return {"role": "assistant", "content": content, "model": "m", "stopReason": stop}

    yield Sampling(Lender(listener=Client(answer), capabilities=SAMPLES))


EVERY: tuple[Make, ...] = (
    scripted,
    function,
    replay,
    openai,
    openai_single,
    openai_stream,
    anthropic,
    anthropic_stream,
    sampling,
)
