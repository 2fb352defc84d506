"""Where schemas stand inside a schema: the tables of keywords that hold subschemas.

Never looks into `const`, `enum`, `default` or `examples`: what looks like a schema there is data.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.schema.pointers import Step


class Reach(Enum):
    """What a subschema is applied to."""

    SAME = "same"
    MEMBER = "member"
    NOTHING = "nothing"


class Part(NamedTuple):
    """A subschema inside its parent: `keyword`, then perhaps a name or an index."""

    steps: tuple[Step, ...]
    reach: Reach
    schema: JsonValue


_ONE: Final = {
    "not": Reach.SAME,
    "if": Reach.SAME,
    "then": Reach.SAME,
    "else": Reach.SAME,
    "additionalProperties": Reach.MEMBER,
    "unevaluatedProperties": Reach.MEMBER,
    "propertyNames": Reach.MEMBER,
    "items": Reach.MEMBER,
    "additionalItems": Reach.MEMBER,
    "unevaluatedItems": Reach.MEMBER,
    "contains": Reach.MEMBER,
    "contentSchema": Reach.NOTHING,
}
_LIST: Final = {
    "allOf": Reach.SAME,
    "anyOf": Reach.SAME,
    "oneOf": Reach.SAME,
    "prefixItems": Reach.MEMBER,
    "items": Reach.MEMBER,
}
_MAP: Final = {
    "properties": Reach.MEMBER,
    "patternProperties": Reach.MEMBER,
    "dependentSchemas": Reach.SAME,
    "dependencies": Reach.SAME,
    "$defs": Reach.NOTHING,
    "definitions": Reach.NOTHING,
}

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
"""Keywords whose value points to a schema that is applied in place."""


def parts(schema: JsonValue) -> Iterator[Part]:
    """Yield the subschemas directly inside `schema`, booleans too, in its own order."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if isinstance(value, list):
            if (reach := _LIST.get(keyword)) is not None:
                for index, item in enumerate(value):
                    yield from _part((keyword, index), reach, item)
        elif (reach := _MAP.get(keyword)) is not None:
            if isinstance(value, dict):
                for name, item in value.items():
                    yield from _part((keyword, name), reach, item)
        elif (reach := _ONE.get(keyword)) is not None:
            yield from _part((keyword,), reach, value)


def _part(steps: tuple[Step, ...], reach: Reach, schema: JsonValue) -> Iterator[Part]:
    """Leave out what is no schema: property lists in `dependencies`, and nonsense."""
    if isinstance(schema, dict | bool):
        yield Part(steps, reach, schema)


def mapped(schema: JsonValue, change: Callable[[JsonObject], JsonObject]) -> JsonValue:
    """Return a copy in which `change` was applied to every subschema object, innermost first."""
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = dict(schema)
    for part in parts(schema):
        keyword = str(part.steps[0])
        inner = mapped(part.schema, change)
        if len(part.steps) == 1:
            copy[keyword] = inner
            continue
        if copy[keyword] is schema[keyword]:
            copy[keyword] = copy[keyword].copy()
        copy[keyword][part.steps[1]] = inner
    return change(copy)
