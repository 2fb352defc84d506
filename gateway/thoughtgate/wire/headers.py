"""Header values of the stateless era and the `Mcp-Param-*` headers that mirror arguments.

Never decides what to do about a mismatch: it says what is wrong.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject, JsonValue

ANNOTATION: Final = "x-mcp-header"
PREFIX: Final = "mcp-param-"

_SENTINEL = re.compile(r"=\?base64\?(.*)\?=")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.0+)?")
_TYPES = frozenset({"string", "integer", "boolean"})
_ONE = frozenset({
    "items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames",
    "unevaluatedProperties", "not", "if", "then", "else", "contentSchema",
})  # fmt: skip
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamHeader:
    """One argument that is mirrored: where it stands, the lower-case header, its JSON type."""

    path: tuple[str, ...]
    header: str
    type: str


def encode_value(value: str) -> str:
    """Return `value` as a header can carry it: plain ASCII as it is, else in a base64 wrapper."""
    plain = _PLAIN.fullmatch(value) and value == value.strip() and not _SENTINEL.fullmatch(value)
    if plain:
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def decode_value(value: str) -> str | None:
    """Return what `encode_value` was given; None for a wrapper that is not canonical."""
    match = _SENTINEL.fullmatch(value)
    if match is None:
        return value
    try:
        decoded = base64.b64decode(match[1], validate=True)
        if base64.b64encode(decoded).decode() != match[1]:
            return None
        return decoded.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def mirrored(input_schema: JsonValue) -> tuple[ParamHeader, ...]:
    """Return the arguments that a schema wants mirrored, in schema order.

    Raises:
        SchemaRejected: An annotation is off the `properties` chain, not a token, on a type that
            may not be mirrored, or used twice; clients must then leave the tool alone.
    """
    found: dict[str, ParamHeader] = {}
    for path, schema in _positions(input_schema):
        if ANNOTATION not in schema:
            continue
        header = _annotated(path, schema)
        if header.header in found:
            raise _forbidden(message=f"{header.header} is used twice")
        found[header.header] = header
    return tuple(found.values())


def param_headers(wanted: Sequence[ParamHeader], arguments: JsonObject) -> dict[str, str]:
    """Return the headers that mirror `arguments`; absent and null arguments send none."""
    headers: dict[str, str] = {}
    for param in wanted:
        rendered = _render(_at(arguments, param.path))
        if rendered is not None:
            headers[param.header] = encode_value(rendered)
    return headers


def mismatch(
    wanted: Sequence[ParamHeader], arguments: JsonObject, headers: Mapping[str, str]
) -> str | None:
    """Return which header disagrees with the arguments, None when all agree.

    `headers` has lower-case names. Header and argument are there together or not at all.
    """
    for param in wanted:
        value = _at(arguments, param.path)
        rendered, sent = _render(value), headers.get(param.header)
        if sent is None and rendered is None:
            continue
        if sent is None or rendered is None or not _agrees(param, value, rendered, sent):
            return f"the {param.header} header does not match argument {'.'.join(param.path)}"
    return None


def _agrees(param: ParamHeader, value: JsonValue, rendered: str, sent: str) -> bool:
    """Compare integers as numbers (42 is 42.0), exactly; everything else as text."""
    decoded = decode_value(sent)
    if decoded is None:
        return False
    number = _DECIMAL.fullmatch(decoded) if param.type == "integer" else None
    if number is None or type(value) not in {int, float} or len(number[1]) > 4096:
        return decoded == rendered
    return value == int(number[1])  # type: ignore[no-any-return]  # a number compares to a bool


def _render(value: JsonValue) -> str | None:
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def _at(arguments: JsonObject, path: tuple[str, ...]) -> JsonValue:
    node: Any = arguments
    for key in path:
        if not isinstance(node, Mapping):
            return None
        node = node.get(key)
    return node


def _annotated(path: tuple[str, ...] | None, schema: JsonObject) -> ParamHeader:
    if not path:
        raise _forbidden(message=f"{ANNOTATION} stands off the chain of properties")
    name, kind, where = schema[ANNOTATION], schema.get("type"), ".".join(path)
    if type(name) is not str or not _TOKEN.fullmatch(name):
        raise _forbidden(message=f"{ANNOTATION} of {where} is not an HTTP token")
    if type(kind) is not str or kind not in _TYPES:
        raise _forbidden(message=f"{ANNOTATION} of {where} needs type string, integer or boolean")
    return ParamHeader(path=path, header=PREFIX + name.lower(), type=kind)


def _forbidden(*, message: str) -> SchemaRejected:
    return SchemaRejected(rule=ANNOTATION, message=message)


def _positions(root: JsonValue) -> Iterator[tuple[tuple[str, ...] | None, JsonObject]]:
    """Yield every subschema with its chain of `properties`, None off that chain."""
    pending: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while pending:
        path, node = pending.pop()
        if not isinstance(node, Mapping):
            continue
        yield path, node
        children = [child for key, value in node.items() for child in _children(path, key, value)]
        pending.extend(reversed(children))


def _children(
    path: tuple[str, ...] | None, key: str, value: Any
) -> Iterator[tuple[tuple[str, ...] | None, Any]]:
    if key == "properties" and isinstance(value, Mapping):
        for name, schema in value.items():
            yield (None if path is None else (*path, name)), schema
    elif key in _ONE:
        yield None, value
    elif key in _MANY and isinstance(value, list):
        for schema in value:
            yield None, schema
    elif key in _NAMED and isinstance(value, Mapping):
        for schema in value.values():
            yield None, schema
