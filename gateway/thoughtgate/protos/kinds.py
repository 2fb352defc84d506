"""How single values look in JSON Schema: scalars, keys of maps, well-known types.

Never says null: whether a value may be left out is its field's affair.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from thoughtgate.protos.fields import FLOAT_MAX, QUOTED, RANGES
from thoughtgate.protos.scalars import BASE64, DIGITS
from thoughtgate.protos.special import DURATION, FIELD_MASK, TIMESTAMP

Schema = dict[str, Any]

_NON_FINITE: Final = "^(NaN|-?Infinity)$"

_NOTES: Final = {
    "google.protobuf.Timestamp": "A time of RFC 3339, such as 2026-07-28T09:30:00Z.",
    "google.protobuf.Duration": "Seconds with an s, such as 1.5s.",
    "google.protobuf.FieldMask": "Paths of fields in camelCase, with commas between them.",
}

WELL_KNOWN: Final[Mapping[str, Schema]] = MappingProxyType({
    "google.protobuf.Timestamp": {
        "type": "string",
        "format": "date-time",
        "pattern": TIMESTAMP,
    },
    "google.protobuf.Duration": {"type": "string", "pattern": DURATION},
    "google.protobuf.FieldMask": {"type": "string", "pattern": FIELD_MASK},
    "google.protobuf.ListValue": {"type": "array"},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.Value": {},
})
"""Types whose JSON is said once and for all."""


_REAL: Final[Schema] = {"type": ["number", "string"], "pattern": _NON_FINITE}

_SCALARS: Final[Mapping[int, Schema]] = MappingProxyType({
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_DOUBLE: _REAL,
    FieldDescriptor.CPPTYPE_FLOAT: {**_REAL, "minimum": -FLOAT_MAX, "maximum": FLOAT_MAX},
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
})


def note_of(name: str) -> str:
    """Return what a well-known type's value looks like, for people; empty when that is plain."""
    return _NOTES.get(name, "")


def scalar(field: FieldDescriptor, *, inputs: bool) -> Schema:
    """Return the schema of one value of a scalar field that is no enum."""
    kind = field.cpp_type
    if kind in QUOTED:
        return _quoted(RANGES[kind]) if inputs else {"type": "string", "pattern": DIGITS}
    if kind in RANGES:
        low, high = RANGES[kind]
        return {"type": "integer", "minimum": low, "maximum": high}
    if field.type == FieldDescriptor.TYPE_BYTES:
        return {"type": "string", "contentEncoding": "base64", "pattern": BASE64}
    return dict(_SCALARS[kind])


def key(field: FieldDescriptor) -> Schema | None:
    """Return the schema of a map's keys, None where any name will do."""
    if field.cpp_type in RANGES:
        return {"pattern": DIGITS}
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return {"enum": ["true", "false"]}
    return None


def nullable(schema: Schema) -> Schema:
    """Return a schema that accepts null as well."""
    changed = dict(schema)
    kind = schema.get("type")
    if isinstance(kind, str):
        changed["type"] = [kind, "null"]
    elif kind is not None:
        changed["type"] = [*kind, "null"]
    if "enum" in schema:
        changed["enum"] = [*schema["enum"], None]
    for keyword in ("allOf", "anyOf"):
        if keyword in schema:
            changed[keyword] = [_or_null(one) for one in schema[keyword]]
    return changed


def _or_null(schema: Schema) -> Schema:
    """Return a schema without `type`, such as rules make, that lets null pass."""
    return {**schema, "enum": [*schema["enum"], None]} if "enum" in schema else schema


def _quoted(limits: tuple[int, int]) -> Schema:
    low, high = limits
    return {"type": ["string", "integer"], "pattern": DIGITS, "minimum": low, "maximum": high}
