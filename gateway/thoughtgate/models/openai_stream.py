"""A chat completion that comes as a stream of deltas, put together again.

Never takes a stream that ends early for a reply: it ends with `[DONE]` or a reason to finish.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import ModelResponse, Usage
from thoughtgate.models.counts import believed, openai_usage, streamed_usage
from thoughtgate.models.openai_shapes import REASONING, garbled, reply_of, text_of
from thoughtgate.models.refusals import failed
from thoughtgate.models.several import PART
from thoughtgate.wire.strict import parse

DONE = b"[DONE]"


@dataclass(slots=True, kw_only=True)
class _Call:
    """A tool call so far."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Choice:
    """One reply so far."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    finish: str | None = None


class OpenAIStream:
    """Takes the data of events in order; `reply` is what they came to."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._usage: list[Usage] = []
        self._model = ""
        self.done = False

    def take(self, data: bytes) -> None:
        """Take one event's data.

        Raises:
            Malformed: It is not JSON.
            ModelError: It is not of a completion, or says that the server failed.
        """
        if data.strip() == DONE:
            self.done = True
            return
        value = parse(data)
        if not isinstance(value, Mapping):
            raise garbled(what="has an event that is not an object")
        if value.get("error"):
            raise failed(value["error"])
        if isinstance(value.get("model"), str):
            self._model = value["model"]
        if isinstance(value.get("usage"), Mapping):
            self._usage.append(openai_usage(value["usage"]))
        choices = value.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            self._choice(choice)

    def reply(self) -> ModelResponse | None:
        """Return the whole reply, None while it is not."""
        choices = [self._choices[at] for at in sorted(self._choices)]
        ended = self.done or all(choice.finish is not None for choice in choices)
        if not choices or not ended:
            return None
        first, *others = [
            reply_of(_message(choice), choice.finish, self._model, PART) for choice in choices
        ]
        said = bool(first.text or first.uses or first.reasoning)
        usage = believed(streamed_usage(self._usage), said=said)
        return replace(first, usage=usage, others=tuple(others))

    def _choice(self, choice: JsonValue) -> None:
        if not isinstance(choice, Mapping):
            raise garbled(what="has a choice that is not an object")
        index = choice.get("index")
        kept = self._choices.setdefault(index if type(index) is int else 0, _Choice())
        if isinstance(choice.get("finish_reason"), str):
            kept.finish = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return
        kept.text.append(text_of(delta.get("content")))
        thought = next((delta[key] for key in REASONING if isinstance(delta.get(key), str)), "")
        kept.reasoning.append(thought)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            _add(kept.calls, call)


def _add(calls: dict[int, _Call], delta: JsonValue) -> None:
    """Add a piece to the call that it belongs to.

    Pieces say so by `index`. Where a server leaves that out, an id of its own begins a call.
    """
    if not isinstance(delta, Mapping):
        raise garbled(what="has a tool call that is not an object")
    index, given = delta.get("index"), delta.get("id")
    if type(index) is not int:
        last = max(calls, default=-1)
        known = last >= 0 and (not given or calls[last].id == given)
        index = last if known else last + 1
    call = calls.setdefault(index, _Call())
    if isinstance(given, str) and given:
        call.id = given
    function = delta.get("function")
    if not isinstance(function, Mapping):
        return
    name, arguments = function.get("name"), function.get("arguments")
    if isinstance(name, str) and name != call.name:  # some servers repeat it with every piece
        call.name += name
    if isinstance(arguments, str):
        call.arguments.append(arguments)


def _message(choice: _Choice) -> JsonObject:
    calls = [
        {
            "id": call.id,
            "function": {"name": call.name or None, "arguments": "".join(call.arguments)},
        }
        for _, call in sorted(choice.calls.items())
    ]
    message: dict[str, Any] = {"content": "".join(choice.text), "tool_calls": calls}
    if thought := "".join(choice.reasoning):
        message[REASONING[0]] = thought
    return message
