"""The keywords that look at one value alone, as predicates.

Never builds a message: jsonschema's own functions print the whole value into theirs.
"""

from collections.abc import Callable, Mapping, Sized
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import jsonschema_rs

from thoughtgate.core.json import JsonValue
from thoughtgate.schema.equality import json_type, key
from thoughtgate.schema.patterns import matcher

Leaf = Callable[[Any, Any, Mapping[str, Any]], bool]
"""(value, the keyword's argument, the schema around it) → whether the keyword is content."""


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def has_type(value: JsonValue, names: str | list[str]) -> bool:
    """Tell whether `value` has one of the named JSON types."""
    own = json_type(value)
    wanted = [names] if isinstance(names, str) else names
    return own in wanted or (own == "integer" and "number" in wanted)


@lru_cache(maxsize=1024)
def _rust(keyword: str, argument: object) -> Callable[[JsonValue], bool]:
    return jsonschema_rs.Draft202012Validator(
        {keyword: argument}, validate_formats=True, offline=True
    ).is_valid


def _minimum(value: JsonValue, limit: Any, schema: Mapping[str, Any]) -> bool:
    if not _is_number(value):
        return True
    return bool(value > limit if schema.get("exclusiveMinimum") is True else value >= limit)


def _maximum(value: JsonValue, limit: Any, schema: Mapping[str, Any]) -> bool:
    if not _is_number(value):
        return True
    return bool(value < limit if schema.get("exclusiveMaximum") is True else value <= limit)


def _above(value: JsonValue, limit: Any, schema: Mapping[str, Any]) -> bool:
    # draft 4 writes `exclusiveMinimum: true` beside `minimum`, which is judged there
    return isinstance(limit, bool) or not _is_number(value) or bool(value > limit)


def _below(value: JsonValue, limit: Any, schema: Mapping[str, Any]) -> bool:
    return isinstance(limit, bool) or not _is_number(value) or bool(value < limit)


def _unique(value: JsonValue, wanted: Any, schema: Mapping[str, Any]) -> bool:
    return not (wanted and isinstance(value, list) and len(set(map(key, value))) < len(value))


def _sized(kind: type[Sized], content: Callable[[int, Any], bool]) -> Leaf:
    def leaf(value: Any, limit: Any, schema: Mapping[str, Any]) -> bool:
        return not isinstance(value, kind) or content(len(value), limit)

    return leaf


def _at_least(size: int, limit: Any) -> bool:
    return bool(size >= limit)


def _at_most(size: int, limit: Any) -> bool:
    return bool(size <= limit)


LEAVES: Final[Mapping[str, Leaf]] = MappingProxyType({
    "type": lambda value, names, schema: has_type(value, names),
    "enum": lambda value, options, schema: key(value) in set(map(key, options)),
    "const": lambda value, constant, schema: key(value) == key(constant),
    "minimum": _minimum,
    "maximum": _maximum,
    "exclusiveMinimum": _above,
    "exclusiveMaximum": _below,
    "multipleOf": lambda value, step, schema: (
        not _is_number(value) or _rust("multipleOf", step)(value)
    ),
    "minLength": _sized(str, _at_least),
    "maxLength": _sized(str, _at_most),
    "minItems": _sized(list, _at_least),
    "maxItems": _sized(list, _at_most),
    "minProperties": _sized(dict, _at_least),
    "maxProperties": _sized(dict, _at_most),
    "uniqueItems": _unique,
    "pattern": lambda value, pattern, schema: not isinstance(value, str) or matcher(pattern)(value),
})
"""All leaf keywords but `format`, which is asserted only when asked."""


def follows_format(value: JsonValue, name: str) -> bool:
    """Tell whether a string has the named format; other values and unknown formats pass."""
    return not isinstance(value, str) or _rust("format", name)(value)
