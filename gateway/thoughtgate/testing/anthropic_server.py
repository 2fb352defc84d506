"""A model server of Anthropic's shape that computes its replies, over real HTTP, by a function.

Never holds a model; the function gets the request as the server saw it and says the blocks.
"""

from collections.abc import Callable, Iterator

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.testing.model_host import ModelHost, Said, Seen, in_pieces
from thoughtgate.wire.strict import dumps

Compute = Callable[[JsonObject], "str | list[JsonObject]"]
"""From the request's JSON to the reply: a text, or the blocks of content.

The `input` of a call may be text: a stream sends it as it is, broken or not.
"""

_PIECES = {"text": "text_delta", "thinking": "thinking_delta"}


class AnthropicServer(ModelHost):
    """Answers `/v1/messages`, whole or, where the request says so, streamed.

    `usage` None leaves usage out. `stop` is the reason to stop, the usual one when empty. A stream
    comes in pieces of `size` characters.
    """

    def __init__(
        self, compute: Compute, *, usage: JsonObject | None = None, stop: str = "", size: int = 3
    ) -> None:
        super().__init__(self._reply)
        self._compute = compute
        self._usage = usage
        self._stop = stop
        self._size = size

    def _reply(self, seen: Seen) -> Said:
        said = self._compute(seen.body)
        content: list[JsonObject] = said if isinstance(said, list) else [_text(said)]
        called = any(block["type"] == "tool_use" for block in content)
        stop = self._stop or ("tool_use" if called else "end_turn")
        if seen.body.get("stream"):
            events = self._events(seen.body, content, stop)
            return Said(kind="text/event-stream", pieces=tuple(events))
        whole = self._message(seen.body, content, stop)
        if self._usage is not None:
            whole["usage"] = self._usage
        return Said(kind="application/json", pieces=(dumps(whole),))

    def _message(
        self, asked: JsonObject, content: JsonValue, stop: JsonValue
    ) -> dict[str, JsonValue]:
        return {
            "id": f"msg_{len(self.seen)}",
            "type": "message",
            "role": "assistant",
            "model": asked.get("model", ""),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
        }

    def _events(self, asked: JsonObject, content: list[JsonObject], stop: str) -> Iterator[bytes]:
        begun = self._message(asked, [], None)
        ended: dict[str, JsonValue] = {"delta": {"stop_reason": stop, "stop_sequence": None}}
        if self._usage is not None:
            begun["usage"] = {**self._usage, "output_tokens": 1}
            ended["usage"] = {"output_tokens": self._usage.get("output_tokens")}
        yield _event("message_start", {"message": begun})
        yield _event("ping", {})
        for index, block in enumerate(content):
            empty, deltas = self._block(block)
            yield _event("content_block_start", {"index": index, "content_block": empty})
            for delta in deltas:
                yield _event("content_block_delta", {"index": index, "delta": delta})
            yield _event("content_block_stop", {"index": index})
        yield _event("message_delta", ended)
        yield _event("message_stop", {})

    def _block(self, block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """Return a block as it begins, and the deltas that fill it."""
        kind = block["type"]
        if kind == "tool_use":
            value = block["input"]
            text = value if isinstance(value, str) else dumps(value).decode()
            pieces = in_pieces(text, self._size)
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in pieces
            ]
        if kind not in _PIECES:
            return block, []
        pieces = in_pieces(block[kind], self._size)
        return {**block, kind: ""}, [{"type": _PIECES[kind], kind: piece} for piece in pieces]


def _text(said: str) -> JsonObject:
    return {"type": "text", "text": said}


def _event(kind: str, value: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), dumps({"type": kind, **value}))
