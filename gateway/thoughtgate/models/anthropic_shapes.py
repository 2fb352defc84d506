"""The shape of Anthropic's Messages, both ways: our request as its JSON, its JSON as our response.

Never sends anything; arguments become text again, exactly as they were sent.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from thoughtgate.core.json import JsonValue
from thoughtgate.core.models import (
    FinishReason,
    Message,
    ModelRequest,
    ModelResponse,
    Role,
    ToolUse,
    Usage,
)
from thoughtgate.models.counts import anthropic_usage, believed
from thoughtgate.models.history import arguments, sendable
from thoughtgate.models.openai_shapes import garbled
from thoughtgate.models.refusals import failed
from thoughtgate.models.thinking import apart
from thoughtgate.wire.strict import dumps

FINISH: Mapping[str, FinishReason] = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.FILTER,
}


def request_body(
    request: ModelRequest, model: str, *, stream: bool = False, omit: Collection[str] = ()
) -> bytes:
    """Return the body of the POST without the fields of `omit`; there is no seed in this API."""
    body: dict[str, JsonValue] = {
        "model": model,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": stream,
        "messages": turns(request.messages),
    }
    if system := system_text(request.messages):
        body["system"] = system
    if request.tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
            }
            for tool in request.tools
        ]
    if stops := [stop for stop in request.stop if stop.strip()]:  # others are refused there
        body["stop_sequences"] = stops
    if request.response_schema is not None:
        wanted = {"type": "json_schema", "schema": request.response_schema}
        body["output_config"] = {"format": wanted}
    return dumps({key: value for key, value in body.items() if key not in omit})


def system_text(messages: Iterable[Message]) -> str:
    """Return what stands above the conversation."""
    return "\n\n".join(one.text for one in messages if one.role is Role.SYSTEM and one.text)


def turns(messages: Iterable[Message]) -> list[JsonValue]:
    """Return the conversation; turns of one side that follow each other are one turn."""
    shown: list[dict[str, Any]] = []
    for message in sendable(messages, objects=True):
        blocks = _blocks(message)
        if message.role is Role.SYSTEM or not blocks:
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if shown and shown[-1]["role"] == role:
            shown[-1]["content"].extend(blocks)
        else:
            shown.append({"role": role, "content": blocks})
    return list(shown)


def response(value: JsonValue) -> ModelResponse:
    """Return the reply in the JSON of a message.

    Raises:
        ModelError: It is not a message.
    """
    if not isinstance(value, Mapping):
        raise garbled(what="is not an object")
    if value.get("type") == "error" or (value.get("error") and "content" not in value):
        raise failed(value.get("error"))
    content = value.get("content")
    if not isinstance(content, list):
        raise garbled(what="has no content")
    model = value.get("model")
    return reply_of(
        content,
        finish=value.get("stop_reason"),
        model=model if isinstance(model, str) else "",
        usage=anthropic_usage(value.get("usage")),
    )


def reply_of(
    content: Iterable[JsonValue], *, finish: JsonValue, model: str, usage: Usage
) -> ModelResponse:
    """Return the reply in blocks of content; `input` may be text, then it stays as it is.

    Raises:
        ModelError: A block cannot be read.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    uses: list[ToolUse] = []
    for block in content:
        if not isinstance(block, Mapping):
            raise garbled(what="has a block that is not an object")
        match block.get("type"):
            case "text":
                texts.append(_said(block.get("text")))
            case "thinking":
                thoughts.append(_said(block.get("thinking")))
            case "tool_use":
                uses.append(_use(block, len(uses)))
    inner, text = apart("".join(texts))
    said = bool(text or uses or thoughts or inner)
    return ModelResponse(
        text=text,
        uses=tuple(uses),
        reasoning="\n".join(thoughts) or inner,
        usage=believed(usage, said=said),
        finish=FINISH.get(str(finish), FinishReason.UNKNOWN),
        model=model,
    )


def _blocks(message: Message) -> list[JsonValue]:
    """Return the blocks of one turn; empty texts are refused by this API."""
    if message.role is Role.TOOL:
        result = {"type": "tool_result", "tool_use_id": message.use_id}
        return [{**result, "content": message.text} if message.text else result]
    blocks: list[JsonValue] = []
    if message.text:
        blocks.append({"type": "text", "text": message.text})
    for use in message.uses:
        call = {"type": "tool_use", "id": use.id, "name": use.name}
        blocks.append({**call, "input": arguments(use)})
    return blocks


def _use(block: Mapping[str, JsonValue], at: int) -> ToolUse:
    name, given, value = block.get("name"), block.get("id"), block.get("input")
    if not isinstance(name, str) or not name:
        raise garbled(what="has a tool call without a name")
    return ToolUse(
        id=given if isinstance(given, str) and given else f"call_{at}",
        name=name,
        arguments=value if isinstance(value, str) else dumps(value).decode(),
    )


def _said(text: JsonValue) -> str:
    return text if isinstance(text, str) else ""
