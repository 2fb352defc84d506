"""A root without `oneOf`, `anyOf` and `allOf`, for providers that refuse whole requests over one.

Never narrows: what the true schema accepts can still be written.
"""

from typing import Any

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.schema.phrases import declared, resolved

_UNIONS = ("oneOf", "anyOf")
_ROUNDS = 16


def folded(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return an object schema whose root names all members of all its alternatives.

    A member stays required when every alternative requires it; of a member that alternatives
    declare in different ways, any is shown as accepted.
    """
    root: dict[str, Any] = dict(schema)
    notes: list[str] = []
    for _ in range(_ROUNDS):
        if "$ref" in root:
            target = resolved(root, schema)
            root.pop("$ref")
            root = _joined(root, [target], everyone=True)
        elif "allOf" in root:
            root = _joined(root, root.pop("allOf"), everyone=True)
        elif union := next((keyword for keyword in _UNIONS if keyword in root), None):
            notes.append(f"the root's {union} is not shown; its members are listed together")
            root = _joined(root, root.pop(union), everyone=False)
        else:
            break
    for keyword in ("$ref", "allOf", *_UNIONS, "not", "enum", "const"):
        root.pop(keyword, None)
    return {**root, "type": "object", "properties": root.get("properties", {})}, tuple(notes)


def _joined(root: dict[str, Any], parts: list[JsonValue], *, everyone: bool) -> dict[str, Any]:
    """Return `root` with the members of `parts`, which all apply, or one of which does."""
    objects = [part for part in (resolved(p, root) for p in parts) if isinstance(part, dict)]
    result = {**root, "properties": _members(root, objects, everyone=everyone)}
    wanted = [set(part.get("required", ())) for part in objects]
    combine = set[str].union if everyone else set[str].intersection
    required = list(root.get("required", ()))
    required += sorted(combine(*wanted).difference(required)) if wanted else []
    if required:
        result["required"] = required
    if everyone:
        for part in objects:
            result = {**_deeper(part), **result}
    elif objects and all(part.get("additionalProperties") is False for part in objects):
        # one closed alternative does not close the others, but all are named now
        result["additionalProperties"] = False
    return result


def _members(
    root: dict[str, Any], objects: list[dict[str, Any]], *, everyone: bool
) -> dict[str, JsonValue]:
    found: dict[str, list[JsonValue]] = {}
    for part in objects:
        for name, own in declared(part).items():
            owns = found.setdefault(name, [])
            if own not in owns:
                owns.append(own)
    properties = dict(declared(root))
    for name, owns in found.items():
        if properties.get(name, True) in (True, {}):
            properties[name] = owns[0] if len(owns) == 1 else _both(owns, everyone)
    return properties


def _both(owns: list[JsonValue], everyone: bool) -> JsonObject:
    return {"allOf" if everyone else "anyOf": owns}


def _deeper(part: dict[str, Any]) -> dict[str, Any]:
    """Keep the compositions that a joined part has itself, for the next round."""
    kept = {
        "$ref",
        "allOf",
        "description",
        "additionalProperties",
        "$defs",
        "definitions",
        *_UNIONS,
    }
    return {key: value for key, value in part.items() if key in kept}
