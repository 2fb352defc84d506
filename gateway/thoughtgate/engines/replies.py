"""What a model's reply says: an action, an answer, nothing, or nothing that can be read.

Never makes a tool call that the model did not write, and never mends its arguments. The order is
native tool calls, then a JSON envelope, then text; the first action wins and beats any answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from thoughtgate.core.json import JsonObject, canonical
from thoughtgate.core.models import FinishReason, ModelResponse, ToolUse
from thoughtgate.engines.json_text import Unreadable, object_at, object_in, opening
from thoughtgate.engines.text_reply import NO_ACTION, action_of, split, without_thinking

_ECHO = 200
_WRAPPERS = ("tool_call", "function_call", "tool_calls", "function")
_NAMES = ("action", "tool", "tool_name", "name", "function")
_ARGUMENTS = ("action_input", "arguments", "parameters", "args", "input", "tool_input")
_CLEAR = frozenset({"action", "tool", "tool_name"})
_ANSWERS = ("final_answer", "answer")
_TAG = "<tool_call>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """The model chose a tool; the name may be unknown. `use_id` is the model's, often empty."""

    name: str
    arguments: JsonObject
    thought: str = ""
    use_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The model is done."""

    text: str
    thought: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """The reply says something that cannot be read; `reason` is for the model."""

    reason: str
    echo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """The reply says nothing."""

    reason: str = field(default="the reply was empty")


Reply: TypeAlias = Action | Answer | Unread | Empty


def read(response: ModelResponse, *, plain_answers: bool) -> Reply:
    """Return what a reply says; `plain_answers`: text without any label is an answer.

    Never raises: what cannot be read is an `Unread`.
    """
    text = without_thinking(response.text).strip()
    try:
        if response.uses:
            return _native(response.uses[0], text)
        if not text:
            return Empty()
        return _envelope(text) or _labelled(text, plain_answers)
    except Unreadable as error:
        cut = response.finish is FinishReason.LENGTH
        reason = f"{error}; the reply reached its length limit" if cut else str(error)
        return Unread(reason=reason, echo=text[:_ECHO])


def read_answer(response: ModelResponse) -> Answer | Unread | Empty:
    """Return the closing answer in a reply that was asked for without tools.

    Here an action is not an answer, and text without labels is one.
    """
    reply = read(response, plain_answers=True)
    if isinstance(reply, Action):
        return Unread(reason="no tool can be used now; write the final answer", echo=reply.name)
    return reply


def read_object(response: ModelResponse) -> JsonObject:
    """Return the JSON object in a reply that shall be one, such as a plan.

    Raises:
        Unreadable: There is none.
    """
    text = without_thinking(response.text)
    start = opening(text)
    if start < 0:
        start = text.find("{")
    if start < 0:
        raise Unreadable(why="the reply holds no JSON object")
    return object_at(text, start).value


def _native(use: ToolUse, text: str) -> Reply:
    arguments = use.arguments.strip()
    if not arguments.startswith("{"):
        raise Unreadable(why=f"the arguments of {use.name[:80]} must be a JSON object")
    found = object_at(arguments, 0)
    if arguments[found.end :].strip():
        raise Unreadable(why=f"text follows the arguments of {use.name[:80]}")
    thought = split(text).thought if text else ""
    return Action(name=use.name, arguments=found.value, thought=thought, use_id=use.id)


def _envelope(text: str) -> Reply | None:
    """Return what a reply says that is one JSON object, None when it is something else."""
    at = _tag(text)
    if at >= 0:
        return _unwrap(object_in(text[at + len(_TAG) :]), thought=text[:at].strip())
    start = opening(text)
    if start < 0:
        return None
    return _unwrap(object_at(text, start).value, thought="")


def _tag(text: str) -> int:
    """Return where the tag of a tool call begins, -1 for none; inside arguments it is no tag."""
    at = text.find(_TAG)
    if at < 0 or opening(text) >= 0 or split(text[:at]).action is not None:
        return -1
    return at


def _unwrap(value: JsonObject, thought: str) -> Reply | None:
    said = value.get("thought")
    thought = said if isinstance(said, str) else thought
    for wrapper in _WRAPPERS:
        inner = value.get(wrapper)
        if isinstance(inner, list) and inner:
            inner = inner[0]
        if isinstance(inner, Mapping):
            return _wrapped(_unwrap(inner, thought))
    name = _name(value)
    if name is not None and not _is_answer_name(name):
        return Action(name=name, arguments=_arguments(name, value), thought=thought)
    keys = _ANSWERS if name is None else _ARGUMENTS
    said_keys = [key for key in keys if key in value]
    if len(said_keys) != 1 or set(value) - {*said_keys, *_NAMES, *_ARGUMENTS, "thought"}:
        return None  # some other object; where plain answers are taken, all of it is the answer
    answer = value[said_keys[0]]
    text = answer if isinstance(answer, str) else canonical(answer).decode()
    return Answer(text=text, thought=thought)


def _wrapped(reply: Reply | None) -> Reply:
    if isinstance(reply, Action):
        return reply
    raise Unreadable(why="the tool call needs a name and arguments, a JSON object")


def _name(value: JsonObject) -> str | None:
    """Return the name of the tool; `name` alone, without arguments, may be anything's name."""
    for key in _NAMES:
        name = value.get(key)
        if isinstance(name, str) and (key in _CLEAR or any(one in value for one in _ARGUMENTS)):
            return None if name.strip().casefold() in NO_ACTION else name.strip()
    return None


def _is_answer_name(name: str) -> bool:
    return name.replace("_", " ").casefold() == "final answer"


def _arguments(name: str, value: JsonObject) -> JsonObject:
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(given, str):
        given = object_in(given)
    if not isinstance(given, Mapping):
        raise Unreadable(why=f"the arguments of {name[:80]} must be a JSON object")
    return given


def _labelled(text: str, plain_answers: bool) -> Reply:
    reply = split(text)
    if reply.action is not None and (start := opening(reply.action)) >= 0:
        inner = _unwrap(object_at(reply.action, start).value, reply.thought)
        if inner is not None:
            return inner
    if action := action_of(reply):
        name, arguments = action
        return Action(name=name, arguments=arguments, thought=reply.thought)
    if reply.answer:
        return Answer(text=reply.answer, thought=reply.thought)
    if plain_answers and not reply.labelled:
        return Answer(text=text)
    raise Unreadable(why="the reply has neither an Action nor a Final Answer")
