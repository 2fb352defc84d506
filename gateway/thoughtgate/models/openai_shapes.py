"""The chat-completions shape, both ways: our request as its JSON, its JSON as our response.

Never sends anything, and never reads a tool call's arguments: that is for the reply parser.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from thoughtgate.core.errors import ModelError
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import (
    FinishReason,
    Message,
    ModelRequest,
    ModelResponse,
    Role,
    ToolSpec,
    ToolUse,
    Usage,
)
from thoughtgate.models.counts import believed, openai_usage
from thoughtgate.models.history import sendable
from thoughtgate.models.refusals import failed
from thoughtgate.models.several import PART
from thoughtgate.models.thinking import apart
from thoughtgate.wire.strict import dumps

FINISH: Mapping[str, FinishReason] = {
    "stop": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.FILTER,
}
REASONING = ("reasoning_content", "reasoning")
"""Where servers put what a model thought, beside what it says."""


def request_body(
    request: ModelRequest, model: str, *, stream: bool = False, omit: Collection[str] = ()
) -> bytes:
    """Return the body of the POST without the fields of `omit`.

    Models that refuse `max_tokens` take the same as `max_completion_tokens`.
    """
    messages = sendable(request.messages, objects=False)
    body: dict[str, JsonValue] = {
        "model": model,
        "messages": [_message(message) for message in messages],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": stream,
    }
    if stream:
        body["stream_options"] = {"include_usage": True}
    if request.n > 1:
        body["n"] = request.n
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.response_schema is not None:
        named = {"name": "reply", "schema": request.response_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    if "max_tokens" in omit:
        body["max_completion_tokens"] = request.max_tokens
    return dumps({key: value for key, value in body.items() if key not in omit})


def response(value: JsonValue) -> ModelResponse:
    """Return the reply in the JSON of a completion; further choices stand in `others`.

    Raises:
        ModelError: It is not a completion.
    """
    if not isinstance(value, Mapping):
        raise garbled(what="is not an object")
    choices = value.get("choices")
    if value.get("error") and not choices:
        raise failed(value["error"])
    if not isinstance(choices, list) or not choices:
        raise garbled(what="has no choices")
    model = value.get("model")
    named = model if isinstance(model, str) else ""
    first, *others = [_choice(choice, named) for choice in choices]
    said = bool(first.text or first.uses or first.reasoning)
    usage = believed(openai_usage(value.get("usage")), said=said)
    return replace(first, usage=usage, others=tuple(others))


def reply_of(message: JsonObject, finish: JsonValue, model: str, usage: Usage) -> ModelResponse:
    """Return the reply in one assistant message of this shape."""
    thought = next((message[key] for key in REASONING if _is_text(message.get(key))), "")
    inner, text = apart(text_of(message.get("content")))
    return ModelResponse(
        text=text or text_of(message.get("refusal")),
        uses=_uses(message.get("tool_calls")),
        reasoning=thought or inner,
        usage=usage,
        finish=FINISH.get(str(finish), FinishReason.UNKNOWN),
        model=model,
    )


def garbled(*, what: str) -> ModelError:
    """Return the error of a reply that has not the shape; asking again may help."""
    return ModelError(message=f"the model server's reply {what}", retriable=True)


def _choice(choice: JsonValue, model: str) -> ModelResponse:
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise garbled(what="has a choice without a message")
    return reply_of(message, choice.get("finish_reason"), model, PART)


def _tool(tool: ToolSpec) -> JsonObject:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _message(message: Message) -> JsonObject:
    shown: dict[str, Any] = {"role": message.role.value, "content": message.text}
    if message.uses:
        shown["tool_calls"] = [
            {
                "id": use.id,
                "type": "function",
                "function": {"name": use.name, "arguments": use.arguments},
            }
            for use in message.uses
        ]
    if message.role is Role.TOOL:
        shown["tool_call_id"] = message.use_id
    return shown


def text_of(content: JsonValue) -> str:
    """Return the text of a content that is a string, a list of parts, or null."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _uses(calls: JsonValue) -> tuple[ToolUse, ...]:
    """Return the tool calls; arguments sent as an object (some servers do) become text again."""
    found = []
    for at, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not _is_text(function.get("name")):
            raise garbled(what="has a tool call without a name")
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else dumps(arguments).decode()
        given = call.get("id")
        use_id = given if isinstance(given, str) and given else f"call_{at}"
        found.append(ToolUse(id=use_id, name=function["name"], arguments=text))
    return tuple(found)


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str)
