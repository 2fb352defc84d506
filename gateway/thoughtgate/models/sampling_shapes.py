"""The shape of MCP's `sampling/createMessage`, both ways.

Never sends anything.
"""

from collections.abc import Mapping
from typing import Any

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import Message, ModelRequest, ModelResponse, Role, Usage
from thoughtgate.models.anthropic_shapes import reply_of, system_text
from thoughtgate.models.history import arguments, sendable
from thoughtgate.models.openai_shapes import garbled
from thoughtgate.wire.strict import dumps

_FINISH = {
    "endTurn": "end_turn",
    "stopSequence": "stop_sequence",
    "toolUse": "tool_use",
    "maxTokens": "max_tokens",
}
_AS_JSON = "Answer with JSON only, without any other word, valid against this JSON Schema:\n"


def request_params(request: ModelRequest) -> JsonObject:
    """Return the params of the request.

    There is no seed in this protocol, and no schema of the reply: that is asked for in words.
    """
    system = system_text(request.messages)
    if request.response_schema is not None:
        wanted = _AS_JSON + dumps(request.response_schema).decode()
        system = f"{system}\n\n{wanted}" if system else wanted
    params: dict[str, JsonValue] = {
        "messages": _turns(request),
        "maxTokens": request.max_tokens,
        "temperature": request.temperature,
    }
    if system:
        params["systemPrompt"] = system
    if request.stop:
        params["stopSequences"] = list(request.stop)
    if request.tools:
        params["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.parameters,
            }
            for tool in request.tools
        ]
    return params


def response(value: JsonObject) -> ModelResponse:
    """Return the reply in a result; its content is one block, or (2025-11-25) a list of them.

    Raises:
        ModelError: It is no such result.
    """
    content = value.get("content")
    blocks: JsonValue = [content] if isinstance(content, Mapping) else content
    if not isinstance(blocks, list):
        raise garbled(what="has no content")
    model = value.get("model")
    return reply_of(
        blocks,
        finish=_FINISH.get(str(value.get("stopReason"))),
        model=model if isinstance(model, str) else "",
        usage=Usage(),
    )


def _turns(request: ModelRequest) -> list[JsonValue]:
    """Return the conversation; results of tools stand alone in a turn, as the protocol wants."""
    shown: list[dict[str, Any]] = []
    # without tools in the request, their calls and results could not be understood: they are text
    messages = sendable(request.messages, objects=True)
    for message in messages if request.tools else [_plain(one) for one in messages]:
        if message.role is Role.SYSTEM:
            continue
        if message.role is Role.TOOL and shown and _holds_results(shown[-1]):
            shown[-1]["content"].append(_result(message))
        else:
            shown.append(_turn(message))
    return list(shown)


def _turn(message: Message) -> dict[str, Any]:
    if message.role is Role.TOOL:
        return {"role": "user", "content": [_result(message)]}
    text = {"type": "text", "text": message.text}
    if message.role is Role.USER or not message.uses:
        return {"role": message.role.value, "content": text}
    calls = [
        {"type": "tool_use", "id": use.id, "name": use.name, "input": arguments(use)}
        for use in message.uses
    ]
    return {"role": "assistant", "content": [*([text] if message.text else []), *calls]}


def _result(message: Message) -> JsonObject:
    text = {"type": "text", "text": message.text}
    return {"type": "tool_result", "toolUseId": message.use_id, "content": [text]}


def _holds_results(turn: Mapping[str, Any]) -> bool:
    content = turn["content"]
    return isinstance(content, list) and content[0]["type"] == "tool_result"


def _plain(message: Message) -> Message:
    if message.role is Role.TOOL:
        return Message(role=Role.USER, text=f"Result of a call: {message.text}")
    calls = [f"{use.name}({use.arguments})" for use in message.uses]
    text = "\n".join([message.text, *calls] if message.text else calls)
    return Message(role=message.role, text=text)
