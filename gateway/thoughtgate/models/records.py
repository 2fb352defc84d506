"""Questions and replies as JSON and back: what a journal keeps, and a replay answers from.

Never leaves anything out: two questions that differ have different JSON.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import ModelRequest, ModelResponse

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A question and what was replied."""

    request: ModelRequest
    response: ModelResponse


def as_json(value: ModelRequest | ModelResponse) -> JsonObject:
    """Return a question or a reply as JSON."""
    built: JsonObject = msgspec.to_builtins(value)
    return built


def request_of(value: JsonValue) -> ModelRequest:
    """Return the question that `as_json` was given.

    Raises:
        Malformed: It is none.
    """
    return _converted(value, ModelRequest)


def response_of(value: JsonValue) -> ModelResponse:
    """Return the reply that `as_json` was given.

    Raises:
        Malformed: It is none.
    """
    return _converted(value, ModelResponse)


def differences(one: JsonValue, other: JsonValue, at: str = "") -> Iterator[str]:
    """Yield JSON Pointers to where two values differ; lists of unlike length differ as a whole."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from differences(one.get(key), other.get(key), f"{at}/{key}")
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            yield at
        else:
            for index, (left, right) in enumerate(zip(one, other, strict=True)):
                yield from differences(left, right, f"{at}/{index}")
    elif one != other or type(one) is not type(other):
        yield at


def _converted(value: JsonValue, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Malformed(message=f"not a recorded {kind.__name__}: {error}") from None
