"""Schemas in the subset of OpenAPI that Gemini's `parameters` takes.

Never follows a recursion to its end: where it would begin again, any object is shown.
"""

from typing import Any, Final

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.schema.phrases import listed, resolved
from thoughtgate.schema.structure import mapped

_KEPT: Final = frozenset({
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "properties",
    "required",
    "items",
    "anyOf",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "minProperties",
    "maxProperties",
})
_FORMATS: Final = frozenset({"date-time", "enum", "int32", "int64", "float", "double"})
MAX_NODES: Final = 2_000
_MAX_DEPTH = 24


def for_gemini(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the schema without references, type lists and unknown keywords, and what is lost."""
    inliner = _Inliner(schema)
    flat = inliner.inlined(schema, (), 0)
    notes = ("recursive or very large parts are shown as any value",) if inliner.cut else ()
    return mapped(flat, _plain), notes


class _Inliner:
    """Copies a schema with its references replaced, within a bound."""

    def __init__(self, root: JsonObject) -> None:
        self.cut = False
        self._root = root
        self._left = MAX_NODES

    def inlined(self, value: JsonValue, open_refs: tuple[str, ...], depth: int) -> Any:
        """Return a copy; `open_refs` are the references that it stands inside."""
        self._left -= 1
        if isinstance(value, list):
            return [self.inlined(item, open_refs, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str):
            if reference in open_refs or depth > _MAX_DEPTH or self._left < 0:
                self.cut = True
                return {"type": "object"}
            target = resolved({"$ref": reference}, self._root)
            beside = {key: item for key, item in value.items() if key != "$ref"}
            whole = {**(target if isinstance(target, dict) else {}), **beside}
            return self.inlined(whole, (*open_refs, reference), depth + 1)
        return {
            key: self.inlined(item, open_refs, depth + 1)
            for key, item in value.items()
            if key not in {"$defs", "definitions"}
        }


def _plain(part: JsonObject) -> JsonObject:
    whole: dict[str, Any] = dict(part)
    for inner in whole.pop("allOf", ()):
        whole = (
            {
                **inner,
                **whole,
                "properties": {**inner.get("properties", {}), **whole.get("properties", {})},
            }
            if "properties" in inner or "properties" in whole
            else {**inner, **whole}
        )
    if "oneOf" in whole:
        whole["anyOf"] = whole.pop("oneOf") + whole.get("anyOf", [])
    if "const" in whole:
        whole["enum"] = [whole.pop("const")]
    _enum_of_strings(whole)
    _one_type(whole)
    _nullable_union(whole)
    if whole.get("format") not in _FORMATS:
        whole.pop("format", None)
    if isinstance(whole.get("items"), bool | list):
        whole["items"] = {}
    return {key: value for key, value in whole.items() if key in _KEPT}


def _enum_of_strings(whole: dict[str, Any]) -> None:
    options = whole.get("enum")
    if not isinstance(options, list):
        return
    if None in options:
        whole["nullable"] = True
        options = [option for option in options if option is not None]
    if options and all(isinstance(option, str) for option in options):
        whole["enum"] = options
        whole.setdefault("type", "string")
        return
    del whole["enum"]
    text = f"One of: {listed(options)}."
    whole["description"] = f"{whole['description']} {text}" if whole.get("description") else text


def _one_type(whole: dict[str, Any]) -> None:
    kinds = whole.get("type")
    if not isinstance(kinds, list):
        return
    rest = [kind for kind in kinds if kind != "null"]
    if "null" in kinds:
        whole["nullable"] = True
    if len(rest) == 1:
        whole["type"] = rest[0]
        return
    del whole["type"]
    if rest and "anyOf" not in whole:
        whole["anyOf"] = [_of_kind(kind, whole) for kind in rest]
        whole.pop("items", None)


def _of_kind(kind: str, whole: dict[str, Any]) -> JsonObject:
    return {"type": kind, "items": whole.get("items", {})} if kind == "array" else {"type": kind}


def _nullable_union(whole: dict[str, Any]) -> None:
    parts = whole.get("anyOf")
    if not isinstance(parts, list):
        return
    rest = [part for part in parts if part != {"type": "null"}]
    if len(rest) == len(parts):
        return
    whole["nullable"] = True
    if len(rest) == 1:
        del whole["anyOf"]
        for key, value in rest[0].items():
            whole.setdefault(key, value)
    else:
        whole["anyOf"] = rest
