"""A message of Anthropic's that comes as a stream of events, put together again.

Never takes a stream that ends before `message_stop` for a reply.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import ModelResponse
from thoughtgate.models.anthropic_shapes import reply_of
from thoughtgate.models.counts import anthropic_usage
from thoughtgate.models.openai_shapes import garbled
from thoughtgate.models.refusals import failed
from thoughtgate.wire.strict import dumps, parse

_PIECES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}
"""Where a delta of each kind holds its piece."""


@dataclass(slots=True, kw_only=True)
class _Block:
    """A block so far: as it began, and the pieces since."""

    start: JsonObject
    pieces: list[str] = field(default_factory=list)


class AnthropicStream:
    """Takes the data of events in order; `reply` is what they came to."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, JsonValue] = {}
        self._model = ""
        self._finish: JsonValue = None
        self.done = False

    def take(self, data: bytes) -> None:
        """Take one event's data; kinds that are unknown are passed over, as pings are.

        Raises:
            Malformed: It is not JSON.
            ModelError: It is not of a message, or says that the server failed.
        """
        value = parse(data)
        if not isinstance(value, Mapping):
            raise garbled(what="has an event that is not an object")
        match value.get("type"):
            case "message_start":
                self._start(_object(value.get("message")))
            case "content_block_start":
                self._blocks[_index(value)] = _Block(start=_object(value.get("content_block")))
            case "content_block_delta":
                self._piece(value)
            case "message_delta":
                self._finish = _object(value.get("delta")).get("stop_reason") or self._finish
                self._count(value.get("usage"))
            case "message_stop":
                self.done = True
            case "error":
                raise failed(value.get("error"))

    def reply(self) -> ModelResponse | None:
        """Return the whole reply, None while it is not."""
        if not self.done:
            return None
        return reply_of(
            [_whole(block) for _, block in sorted(self._blocks.items())],
            finish=self._finish,
            model=self._model,
            usage=anthropic_usage(self._usage),
        )

    def _start(self, message: JsonObject) -> None:
        model = message.get("model")
        self._model = model if isinstance(model, str) else ""
        self._count(message.get("usage"))
        # until the end is told, the number of tokens that came out is a placeholder
        self._usage.pop("output_tokens", None)

    def _count(self, usage: JsonValue) -> None:
        """Keep the counts told last: all of them are running totals."""
        if isinstance(usage, Mapping):
            self._usage |= {key: value for key, value in usage.items() if value is not None}

    def _piece(self, event: Mapping[str, JsonValue]) -> None:
        block = self._blocks.get(_index(event))
        if block is None:
            raise garbled(what="has a piece of a block that never began")
        delta = _object(event.get("delta"))
        piece = delta.get(_PIECES.get(str(delta.get("type")), ""))
        if isinstance(piece, str):
            block.pieces.append(piece)


def _whole(block: _Block) -> JsonObject:
    """Return a block with its pieces; those of arguments are one text, not read."""
    kind, pieces = block.start.get("type"), "".join(block.pieces)
    if kind == "tool_use":
        begun = block.start.get("input")
        return {
            **block.start,
            "input": pieces or dumps(begun if begun is not None else {}).decode(),
        }
    key = str(kind)
    begun_text: Any = block.start.get(key)
    return {**block.start, key: (begun_text if isinstance(begun_text, str) else "") + pieces}


def _index(event: Mapping[str, JsonValue]) -> int:
    index = event.get("index")
    if type(index) is not int:
        raise garbled(what="has a block without an index")
    return index


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, Mapping):
        raise garbled(what="has an event without its object")
    return value
