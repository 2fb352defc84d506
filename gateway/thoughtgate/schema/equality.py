"""JSON equality as a hashable key: 1 equals 1.0, true does not equal 1.

Never compares by text: numbers are exact.
"""

from collections.abc import Hashable
from typing import Final

from thoughtgate.core.json import JsonValue

_TRUE: Final = ("true",)
_FALSE: Final = ("false",)


def key(value: JsonValue) -> Hashable:
    """Return a key that two values share exactly when JSON Schema calls them equal."""
    if value is True:
        return _TRUE
    if value is False:
        return _FALSE
    if isinstance(value, dict):
        return frozenset((name, key(item)) for name, item in value.items())
    if isinstance(value, list):
        return ("list", *map(key, value))
    scalar: Hashable = value
    return scalar


def json_type(value: JsonValue) -> str:
    """Return the JSON type's name, with `integer` for whole numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
