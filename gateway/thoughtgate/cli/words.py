"""Words of a command line that are more than text: JSON, and seconds.

Never guesses: what is JSON is read as strictly as a client's request.
"""

from collections.abc import Mapping
from typing import Any

import click

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.schema.equality import json_type
from thoughtgate.wire.strict import parse


class Seconds(click.FloatRange):
    """A time in seconds; click's own range takes `nan`, which is within nothing."""

    def __init__(self) -> None:
        super().__init__(0.1, 86_400)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; a usage error when it is none within the range."""
        number: float = super().convert(value, param, ctx)
        if number != number:
            self.fail("nan is not a number of seconds.", param, ctx)
        return number


def values_of(words: Mapping[str, str], schema: JsonObject) -> JsonObject:
    """Return words as arguments: JSON as in `json_or_text`, unless only text fits the schema."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    return {name: _value(word, _types(known.get(name))) for name, word in words.items()}


def _value(word: str, types: frozenset[object]) -> JsonValue:
    value = json_or_text(word)
    kind = json_type(value)
    fits = kind in types or (kind == "integer" and "number" in types)
    return word if "string" in types and not fits else value


def _types(schema: JsonValue) -> frozenset[object]:
    """Return the types that a schema names, also in its alternatives; empty when it names none."""
    if not isinstance(schema, Mapping):
        return frozenset()
    named = schema.get("type")
    types = frozenset(named if isinstance(named, list) else [named] if named else [])
    for key in ("anyOf", "oneOf"):
        choices = schema.get(key)
        for choice in choices if isinstance(choices, list) else ():
            types |= _types(choice)
    return types


def json_or_text(word: str) -> JsonValue:
    """Return a word as JSON where it parses as JSON, else as the text that it is."""
    try:
        return parse(word.encode())
    except Malformed:
        return word
