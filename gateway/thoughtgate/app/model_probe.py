"""Whether a model answers, in how long, and what it can do: a few tiny questions.

Never sends anything of the user's, and never asks more than was wished: questions cost money.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec

from thoughtgate.app.models import model_client
from thoughtgate.config.settings import ModelSettings
from thoughtgate.core.errors import Malformed, ModelError
from thoughtgate.core.json import JsonObject
from thoughtgate.core.models import Message, ModelRequest, ModelResponse, Role, ToolSpec
from thoughtgate.core.ports import ModelClient
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.ports import HttpClient
from thoughtgate.wire.strict import parse

_MAX_TEXT = 200
_TOKENS = 256
_QUESTION = ModelRequest(
    messages=(Message(role=Role.USER, text="Answer with the one word: ready"),),
    max_tokens=_TOKENS,
    purpose="test",
)
_TOOL = ToolSpec(
    name="add",
    description="Adds two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}

Holds = Callable[[ModelResponse], bool]


@asynccontextmanager
async def probing() -> AsyncIterator[HttpClient]:
    """Give an HTTP client for the length of the block."""
    client = PooledClient()
    try:
        yield client
    finally:
        await client.aclose()


async def probed(given: ModelSettings, client: HttpClient, *, features: bool) -> JsonObject:
    """Return what a tiny question brought; with `features` three more try what the model can do.

    Raises:
        ModelError: The model does not answer.
    """
    given = msgspec.structs.replace(given, tries=1)  # whoever asks so wants to know it now
    model = model_client(given, client)
    begun = time.monotonic()
    reply = await model.complete(_QUESTION)
    told: dict[str, object] = {
        "ms": round((time.monotonic() - begun) * 1000),
        "text": reply.text.strip()[:_MAX_TEXT],
        "model": reply.model,
        "finish": reply.finish.value,
        "input_tokens": reply.usage.input_tokens,
        "output_tokens": reply.usage.output_tokens,
        "cost_micros": reply.cost_micros,
        "reasoning": bool(reply.reasoning),
    }
    if features:
        streamed = model_client(msgspec.structs.replace(given, stream=True), client)
        add = Message(role=Role.USER, text="Use the tool to add 2 and 3.")
        json = Message(role=Role.USER, text='Answer with the JSON {"ready": true}')
        told["features"] = {
            "tools": await _works(model, _asked(add, tools=(_TOOL,)), _calls_the_tool),
            "response_schema": await _works(model, _asked(json, schema=_SCHEMA), _keeps_the_schema),
            "stream": await _works(streamed, _QUESTION, _says_something),
        }
    return told


def _asked(
    message: Message, *, tools: tuple[ToolSpec, ...] = (), schema: JsonObject | None = None
) -> ModelRequest:
    return replace(_QUESTION, messages=(message,), tools=tools, response_schema=schema)


async def _works(model: ModelClient, request: ModelRequest, holds: Holds) -> bool:
    try:
        return holds(await model.complete(request))
    except ModelError:
        return False


def _calls_the_tool(reply: ModelResponse) -> bool:
    if not reply.uses or reply.uses[0].name != _TOOL.name:
        return False
    return _object(reply.uses[0].arguments).keys() == {"a", "b"}


def _keeps_the_schema(reply: ModelResponse) -> bool:
    return type(_object(reply.text).get("ready")) is bool


def _says_something(reply: ModelResponse) -> bool:
    return bool(reply.text)


def _object(text: str) -> JsonObject:
    try:
        value = parse(text.encode("utf-8", "surrogatepass"))
    except Malformed:
        return {}
    return value if isinstance(value, dict) else {}
