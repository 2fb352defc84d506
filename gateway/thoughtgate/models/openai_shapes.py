"""The chat-completions shape, both ways: our request as its JSON, its JSON as our response.

Never sends anything, and never reads a tool call's arguments: that is for the reply parser.
"""

from collections.abc import Mapping
from typing import Any

from thoughtgate.core.errors import ModelError
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import (
    FinishReason,
    Message,
    ModelRequest,
    ModelResponse,
    Role,
    ToolUse,
    Usage,
)
from thoughtgate.wire.strict import dumps

_FINISH = {
    "stop": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.FILTER,
}
_REASONING = ("reasoning_content", "reasoning")


def request_body(request: ModelRequest, model: str) -> bytes:
    """Return the body of the POST."""
    body: dict[str, JsonValue] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": False,
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.response_schema is not None:
        named = {"name": "reply", "schema": request.response_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return dumps(body)


def response(value: JsonValue) -> ModelResponse:
    """Return the reply in the JSON of a completion.

    Raises:
        ModelError: It is not a completion.
    """
    if not isinstance(value, Mapping):
        raise _garbled(what="is not an object")
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise _garbled(what="has no choices")
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise _garbled(what="has a choice without a message")
    return ModelResponse(
        text=_text(message.get("content")),
        uses=_uses(message.get("tool_calls")),
        reasoning=next((message[key] for key in _REASONING if _is_text(message.get(key))), ""),
        usage=_usage(value.get("usage")),
        finish=_FINISH.get(str(choice.get("finish_reason")), FinishReason.UNKNOWN),
        model=value["model"] if _is_text(value.get("model")) else "",
    )


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


def _text(content: JsonValue) -> str:
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
            raise _garbled(what="has a tool call without a name")
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else dumps(arguments).decode()
        given = call.get("id")
        use_id = given if isinstance(given, str) and given else f"call_{at}"
        found.append(ToolUse(id=use_id, name=function["name"], arguments=text))
    return tuple(found)


def _usage(usage: JsonValue) -> Usage:
    if not isinstance(usage, Mapping):
        return Usage()
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
    )


def _count(value: JsonValue) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str)


def _garbled(*, what: str) -> ModelError:
    return ModelError(message=f"the model server's reply {what}", retriable=True)
