"""References of a plan held against what the tools say that they return.

Never guesses: only what a closed output schema rules out is a fault.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.engines.contract import ByName
from thoughtgate.engines.names import nearest
from thoughtgate.engines.plan import Plan
from thoughtgate.engines.references import Reference, references

_STRUCTURED: Final = "structuredContent"
_SCALARS: Final = ("string", "number", "integer", "boolean", "null")
_NAMED: Final = 8
_PLAIN: Final = frozenset({
    "$schema", "title", "description", "type", "properties", "required", "additionalProperties",
    "items", "minItems", "maxItems", "enum", "const", "minimum", "maximum", "format", "default",
    "examples", "minLength", "maxLength", "pattern", "$defs", "uniqueItems",
})  # fmt: skip
"""Keywords that leave what is read here as it stands; others, such as `$ref`, may add to it."""


def lost_pointers(value: JsonValue, plan: Plan, tools: ByName) -> Iterator[str]:
    """Yield each reference in `value` that no result of the step's tool can hold."""
    outputs = {
        step.id: tools[step.tool].output
        for step in plan.steps
        if step.arguments is not None and step.tool in tools
    }
    for reference in references(value):
        output = outputs.get(reference.step)
        if output is not None and (reason := _lost(reference, output)):
            yield f"{reference.step}#{reference.pointer}: {reason}"


def _lost(reference: Reference, output: JsonObject) -> str:
    tokens = reference.tokens
    if tokens[:1] != (_STRUCTURED,):
        return ""
    here: JsonValue = output
    for token in tokens[1:]:
        if not isinstance(here, Mapping) or not _PLAIN.issuperset(here):
            return ""
        below = _below(here, token)
        if below is None:
            return _said(here, token)
        here = below
    return ""


def _below(schema: JsonObject, token: str) -> JsonValue:
    """Return what the schema says of a member or an item; None when there can be none."""
    kind, members = schema.get("type"), _members(schema)
    if kind == "array":
        return schema.get("items", True) if token.isdigit() else None
    if kind == "object" and token in members:
        return members[token]
    closed = kind == "object" and schema.get("additionalProperties") is False
    return None if closed or kind in _SCALARS else True


def _members(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _said(schema: JsonObject, token: str) -> str:
    if schema["type"] != "object":
        return f"the tool returns {schema['type']} where {token[:40]} is looked for"
    members = _members(schema)
    if near := nearest(token, members):
        return f"the tool returns no {token[:40]} there; nearest: {', '.join(near)}"
    names = ", ".join(list(members)[:_NAMED]) or "nothing"
    return f"the tool returns no {token[:40]} there; there is {names}"
