"""Object schemas for providers that want every member required and none beside them.

Never loses an optional member: it becomes nullable, and its null is taken out on the way back.
"""

from collections.abc import Callable
from typing import Any, Final

from thoughtgate.core.json import JsonObject
from thoughtgate.schema.repair import without_refused_nulls
from thoughtgate.schema.structure import mapped

_UNSUPPORTED: Final = frozenset({
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "prefixItems",
    "additionalItems",
    "default",
})


def with_items(schema: JsonObject) -> JsonObject:
    """Return the schema in which every array says what its items are, be it anything."""
    shown: JsonObject = mapped(schema, _with_items)
    return shown


def _with_items(part: JsonObject) -> JsonObject:
    kind = part.get("type")
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return {**part, "items": {}} if is_array and "items" not in part else part


def all_required(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the strict form, and what it cannot say."""
    dropped: set[str] = set()
    opened: list[str] = []

    def strict(part: JsonObject) -> JsonObject:
        dropped.update(_UNSUPPORTED & part.keys())
        kept: dict[str, Any] = {k: v for k, v in part.items() if k not in _UNSUPPORTED}
        if "oneOf" in kept:
            kept["anyOf"] = kept.pop("oneOf") + kept.get("anyOf", [])
        if kept.get("type") == "object" or "properties" in kept:
            if kept.get("additionalProperties", False) is not False:
                opened.append("")
            _close(kept)
        return kept

    shown = mapped(schema, strict)
    notes = [f"{keyword} is not shown" for keyword in sorted(dropped)]
    if opened:
        notes.append("members beside the named ones cannot be given")
    return shown, tuple(notes)


def _close(part: dict[str, Any]) -> None:
    members = part.get("properties", {})
    required = set(part.get("required", ()))
    part["properties"] = {
        name: own if name in required else _nullable(own) for name, own in members.items()
    }
    part["required"] = list(members)
    part["additionalProperties"] = False


def _nullable(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if "const" in schema or "$ref" in schema or "allOf" in schema or kind is None:
        parts = schema.get("anyOf")
        if parts is not None and len(schema) == 1:
            return {"anyOf": [*parts, {"type": "null"}]}
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = [kind] if isinstance(kind, str) else kind
    changed = {**schema, "type": [*kinds, *([] if "null" in kinds else ["null"])]}
    if "enum" in schema and None not in schema["enum"]:
        changed["enum"] = [*schema["enum"], None]
    return changed


def without_added_nulls(schema: JsonObject) -> Callable[[JsonObject], JsonObject]:
    """Return the way back: nulls of optional members that the true schema refuses go."""

    def back(arguments: JsonObject) -> JsonObject:
        found: JsonObject = without_refused_nulls(arguments, schema)[0]
        return found

    return back
