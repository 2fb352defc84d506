"""A model server that computes its replies: chat completions over real HTTP, by a function.

Never holds a model; the function gets the request as the server saw it and says the reply.
"""

from collections.abc import Callable, Iterator
from typing import Any

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.testing.model_host import ModelHost, Said, Seen, Trouble, in_pieces
from thoughtgate.wire.strict import dumps

__all__ = ["Compute", "OpenAIServer", "Seen", "Trouble"]

Compute = Callable[[JsonObject], "str | JsonObject"]
"""From the request's JSON to the reply: a text, or the whole assistant message."""


class OpenAIServer(ModelHost):
    """Answers `/v1/chat/completions`, whole or, where the request says so, streamed.

    `usage` None leaves usage out. `many` False is a server that gives one reply whatever `n` says.
    A message may hold `finish_reason`. A stream comes in pieces of `size` characters.
    """

    def __init__(
        self,
        compute: Compute,
        *,
        usage: JsonObject | None = None,
        many: bool = True,
        size: int = 3,
    ) -> None:
        super().__init__(self._reply)
        self._compute = compute
        self._usage = usage
        self._many = many
        self._size = size

    def _reply(self, seen: Seen) -> Said:
        asked = seen.body
        n = asked.get("n", 1) if self._many else 1
        messages = [self._message(asked) for _ in range(n)]
        if asked.get("stream"):
            return Said(kind="text/event-stream", pieces=tuple(self._events(asked, messages)))
        choices = [
            {
                "index": at,
                "message": {"role": "assistant", **message},
                "finish_reason": finish,
            }
            for at, (message, finish) in enumerate(messages)
        ]
        whole = self._frame(asked, "chat.completion", choices)
        if self._usage is not None:
            whole["usage"] = self._usage
        return Said(kind="application/json", pieces=(dumps(whole),))

    def _message(self, asked: JsonObject) -> tuple[dict[str, Any], str]:
        said = self._compute(asked)
        message = {"content": said} if isinstance(said, str) else dict(said)
        usual = "tool_calls" if message.get("tool_calls") else "stop"
        return message, message.pop("finish_reason", usual)

    def _events(
        self, asked: JsonObject, messages: list[tuple[dict[str, Any], str]]
    ) -> Iterator[bytes]:
        yield b": begun\n\n"
        for at, (message, finish) in enumerate(messages):
            for delta in [{"role": "assistant", "content": ""}, *self._deltas(message)]:
                yield self._event(asked, [{"index": at, "delta": delta, "finish_reason": None}])
            yield self._event(asked, [{"index": at, "delta": {}, "finish_reason": finish}])
        if self._usage is not None:
            yield _event({**self._frame(asked, "chat.completion.chunk", []), "usage": self._usage})
        yield b"data: [DONE]\n\n"

    def _deltas(self, message: JsonObject) -> Iterator[JsonObject]:
        for key in ("reasoning_content", "content"):
            for piece in in_pieces(message.get(key) or "", self._size):
                yield {key: piece}
        for index, call in enumerate(message.get("tool_calls") or ()):
            function = call["function"]
            named = {"name": function["name"], "arguments": ""}
            first = {"index": index, "id": call["id"], "type": "function", "function": named}
            yield {"tool_calls": [first]}
            for piece in in_pieces(function["arguments"], self._size):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _event(self, asked: JsonObject, choices: JsonValue) -> bytes:
        return _event(self._frame(asked, "chat.completion.chunk", choices))

    def _frame(self, asked: JsonObject, kind: str, choices: JsonValue) -> dict[str, JsonValue]:
        return {
            "id": f"chatcmpl-{len(self.seen)}",
            "object": kind,
            "model": asked.get("model", ""),
            "choices": choices,
        }


def _event(value: JsonObject) -> bytes:
    return b"data: %b\n\n" % dumps(value)
