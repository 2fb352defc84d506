"""Where our reading of JSON differs from protobuf's own parser on purpose: one table, with reasons.

Each example is accepted by protobuf's parser and refused by us; there is nothing the other way
round.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor

from thoughtgate.core.json import JsonValue
from thoughtgate.protos.fields import (
    FLOAT_MAX,
    QUOTED,
    RANGES,
    SPECIAL,
    WRAPPERS,
    entry_of,
    enum_of,
    is_entry,
    is_message,
    is_null_value,
    message_of,
)
from thoughtgate.protos.scalars import BASE64, DIGITS, NON_FINITE
from thoughtgate.protos.special import DURATION, TIMESTAMP

_FLOATS = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
_TYPES = "type.googleapis.com/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One way of writing that only protobuf takes; `applies` finds it in one value of a field."""

    reason: str
    applies: Callable[[FieldDescriptor, JsonValue], bool]
    examples: tuple[tuple[str, JsonValue], ...]


def _other_text(pattern: str, value: JsonValue) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is None


def _is(field: FieldDescriptor, name: str) -> bool:
    return is_message(field) and message_of(field).full_name == f"google.protobuf.{name}"


def _other_any(field: FieldDescriptor, value: JsonValue) -> bool:
    return _is(field, "Any") and isinstance(value, dict) and (not value or value.get("value") == 1)


def _plain(field: FieldDescriptor) -> bool:
    return is_message(field) and message_of(field).full_name not in SPECIAL


def _null_in_oneof(field: FieldDescriptor, value: JsonValue) -> bool:
    nulls = is_null_value(field) or _is(field, "Value")
    return nulls and value is None and field.containing_oneof is not None


def _never(_field: FieldDescriptor, _value: JsonValue) -> bool:
    """Tell that values near a schema never have this: a generator avoids it by itself."""
    return False


def _deep(levels: int) -> JsonValue:
    made: JsonValue = {}
    for _ in range(levels):
        made = {"a": made}
    return made


DIFFERENCES = (
    Difference(
        reason="whole numbers of 32 bits are JSON numbers: the schema says integer",
        applies=lambda field, value: (
            field.cpp_type in RANGES and field.cpp_type not in QUOTED and isinstance(value, str)
        ),
        examples=(("Scalars", {"whole_number": "5"}), ("Scalars", {"count": "1e3"})),
    ),
    Difference(
        reason="whole numbers of 64 bits in quotes are digits: the schema has a pattern",
        applies=lambda field, value: field.cpp_type in QUOTED and _other_text(DIGITS, value),
        examples=(("Scalars", {"big": "1e3"}), ("Scalars", {"big": "1.0"})),
    ),
    Difference(
        reason="in quotes there are three numbers only: NaN, Infinity, -Infinity",
        applies=lambda field, value: (
            field.cpp_type in _FLOATS and isinstance(value, str) and value not in NON_FINITE
        ),
        examples=(("Scalars", {"twofold": "1.5"}), ("Scalars", {"single": "inf"})),
    ),
    Difference(
        reason="true is no number",
        applies=lambda field, value: field.cpp_type in _FLOATS and isinstance(value, bool),
        examples=(("Scalars", {"twofold": True}),),
    ),
    Difference(
        reason="a whole number too large for single precision would silently become infinite",
        applies=lambda field, value: (
            field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT
            and isinstance(value, int)
            and abs(value) > FLOAT_MAX
        ),
        examples=(("Scalars", {"single": 10**39}),),
    ),
    Difference(
        reason="enums are said by name: a number, even one that means nothing, says no name",
        applies=lambda field, value: (
            field.enum_type is not None
            and value is not None
            and not (isinstance(value, str) and value in enum_of(field).values_by_name)
        ),
        examples=(
            ("Scalars", {"colour": 1}),
            ("Scalars", {"colour": 99}),
            ("Scalars", {"colour": "1"}),
            ("WellKnown", {"nothing": 0}),
        ),
    ),
    Difference(
        reason="bytes are base64 of either alphabet; protobuf skips characters that are not",
        applies=lambda field, value: (
            field.type == FieldDescriptor.TYPE_BYTES and _other_text(BASE64, value)
        ),
        examples=(("Scalars", {"raw": "QU JD"}), ("Scalars", {"raw": "QUJD==="})),
    ),
    Difference(
        reason="times have two digits in each place, as RFC 3339 says",
        applies=lambda field, value: _is(field, "Timestamp") and _other_text(TIMESTAMP, value),
        examples=(("WellKnown", {"time": "2026-7-28T9:30:00Z"}),),
    ),
    Difference(
        reason="durations are digits, perhaps a fraction of at most nine, and an s",
        applies=lambda field, value: _is(field, "Duration") and _other_text(DURATION, value),
        examples=(("WellKnown", {"duration": "+1s"}), ("WellKnown", {"duration": "1_0s"})),
    ),
    Difference(
        reason="an Any names its type, with the usual prefix, and says nothing beside its value",
        applies=_other_any,
        examples=(
            ("Holder", {"any": {}}),
            ("Holder", {"any": {"@type": "kinds.v1.Small"}}),
            (
                "Holder",
                {"any": {"@type": f"{_TYPES}google.protobuf.Duration", "value": "1s", "x": 1}},
            ),
        ),
    ),
    Difference(
        reason="a message is an object; protobuf takes an empty array or text for an empty one",
        applies=lambda field, value: _plain(field) and value in ([], ""),
        examples=(("Outer", {"inner": []}), ("Outer", {"inner": ""})),
    ),
    Difference(
        reason="keys of maps that are numbers are digits",
        applies=_never,
        examples=(("Maps", {"by_number": {"1.0": "a"}}), ("Maps", {"by_number": {"+1": "a"}})),
    ),
    Difference(
        reason="of two spellings of one field protobuf loses one without a word",
        applies=_never,
        examples=(("Scalars", {"whole_number": 1, "wholeNumber": 2}),),
    ),
    Difference(
        reason="null is a value of a Value: in a oneof it is a second member, one would be lost",
        applies=_null_in_oneof,
        examples=(("Choice", {"yes_please": True, "anything": None}),),
    ),
    Difference(
        reason="a struct of more than 33 levels cannot be read back from the wire",
        applies=_never,
        examples=(("WellKnown", {"struct": _deep(34)}), ("WellKnown", {"value": _deep(34)})),
    ),
    Difference(
        reason="what is required is asked for by the name in the .proto file",
        applies=_never,
        examples=(("older.Old", {"name": "a", "camelNumber": "1", "kind": "FIRST"}),),
    ),
)


def excepted(field: FieldDescriptor, value: JsonValue) -> bool:
    """Tell whether protobuf and we are meant to differ about a value of a field."""
    if field.message_type is not None and is_entry(field.message_type):
        held = entry_of(field)[1]
        inner = value.values() if isinstance(value, dict) else ()
        return any(excepted(held, item) for item in inner)
    if field.is_repeated and isinstance(value, list) and any(_one(field, item) for item in value):
        return True
    return _one(field, value)


def _one(field: FieldDescriptor, value: JsonValue) -> bool:
    if is_message(field) and message_of(field).full_name in WRAPPERS:
        field = message_of(field).fields_by_name["value"]
    return any(difference.applies(field, value) for difference in DIFFERENCES)
