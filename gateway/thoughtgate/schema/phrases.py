"""What a schema wants and what a value is, in a few words.

Never shows more than 80 characters of a value, and of objects and arrays only their shape.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from thoughtgate.core.json import JsonValue
from thoughtgate.schema.pointers import Step, find, from_fragment

MAX_PREVIEW: Final = 80
MAX_NAMES: Final = 20
_MAX_REFERENCES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violation: `keyword` with its `argument`, in `schema`, broken by `value` at `path`."""

    path: tuple[Step, ...]
    keyword: str
    argument: Any
    value: JsonValue
    schema: JsonValue

    @property
    def unknown(self) -> bool:
        """Return whether it is about a member that no schema declares."""
        return self.keyword in {"additionalProperties", "unevaluatedProperties"}

    @property
    def missing(self) -> bool:
        """Return whether it is about a member that is not there."""
        return self.keyword == "required"


def preview(value: JsonValue) -> str:
    """Return at most 80 characters: a scalar as JSON, the names of an object, a length."""
    if isinstance(value, dict):
        names = ", ".join(_cut(str(name), 24) for name in list(value)[:8])
        return _cut(f"{{{names}{', …' if len(value) > 8 else ''}}}")
    if isinstance(value, list):
        return f"[{len(value)} item{'' if len(value) == 1 else 's'}]"
    if isinstance(value, str):
        return _cut(json.dumps(value[:MAX_PREVIEW], ensure_ascii=False), whole=len(value))
    return _cut(json.dumps(value))


def _cut(text: str, limit: int = MAX_PREVIEW, *, whole: int = 0) -> str:
    if len(text) <= limit and whole <= limit:
        return text
    return text[: limit - 1] + "…"


def listed(options: Sequence[JsonValue]) -> str:
    """Return up to 20 options as JSON, separated by commas."""
    shown = ", ".join(preview(option) for option in options[:MAX_NAMES])
    rest = len(options) - MAX_NAMES
    return f"{shown} … ({rest} more)" if rest > 0 else shown


def expected(finding: Finding, root: JsonValue) -> str:
    """Return what was expected where the finding is."""
    phrase = _PHRASES.get(finding.keyword)
    if phrase is None:
        return "a value that the schema accepts"
    return phrase(finding, root)


def describe(schema: JsonValue, root: JsonValue) -> str:
    """Return what a schema wants, in a few words; references inside `root` are followed."""
    schema = resolved(schema, root)
    if not isinstance(schema, dict):
        return "nothing" if schema is False else "a value"
    if "const" in schema:
        return f"exactly {preview(schema['const'])}"
    if isinstance(schema.get("enum"), list):
        return f"one of {listed(schema['enum'])}"
    if isinstance(schema.get("type"), str | list):
        return _typed(schema)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(parts := schema.get(keyword), list) and len(parts) <= MAX_NAMES:
            return _alternatives(parts, root)
    return "a value"


def resolved(schema: JsonValue, root: JsonValue) -> JsonValue:
    """Follow references by pointer inside `root`, a bounded number of them."""
    for _ in range(_MAX_REFERENCES):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str):
            return schema
        steps = from_fragment(reference.removeprefix("#"))
        if steps is None:
            return {}
        try:
            schema = find(root, steps)
        except LookupError:
            return {}
    return {}


def _alternatives(parts: Sequence[JsonValue], root: JsonValue) -> str:
    # one level only: a part that is itself a union reads "a value"
    flat = [resolved(part, root) for part in parts]
    words = (
        "a value"
        if isinstance(part, dict) and {"anyOf", "oneOf"} & part.keys()
        else describe(part, root)
        for part in flat
    )
    return _cut(" or ".join(dict.fromkeys(words)), 400)


def _typed(schema: Mapping[str, Any]) -> str:
    names = schema["type"]
    text = names if isinstance(names, str) else " or ".join(map(str, names))
    low, high = schema.get("minimum"), schema.get("maximum")
    if ("integer" in text or "number" in text) and (low is not None or high is not None):
        return f"{text} {_range(low, high)}"
    if text == "string" and isinstance(schema.get("format"), str):
        return f"string in the format {_cut(schema['format'], 40)}"
    return text


def _range(low: Any, high: Any) -> str:
    if low is None:
        return f"≤ {preview(high)}"
    return f"≥ {preview(low)}" if high is None else f"{preview(low)}–{preview(high)}"


def _bounded(finding: Finding, root: JsonValue) -> str:
    schema = finding.schema if isinstance(finding.schema, dict) else {}
    kind = "integer" if schema.get("type") == "integer" else "number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if finding.keyword in {"minimum", "maximum"} and not (
        schema.get("exclusiveMinimum") is True or schema.get("exclusiveMaximum") is True
    ):
        return f"{kind} {_range(low, high)}"
    sign = ">" if "inimum" in finding.keyword else "<"
    return f"{kind} {sign} {preview(finding.argument)}"


def _unknown(finding: Finding, root: JsonValue) -> str:
    return unknown_member(finding.schema)


def unknown_member(schema: JsonValue) -> str:
    """Return what is expected where a member stands that `schema` does not declare."""
    names = list(declared(schema))
    if not names:
        return "no property of this name"
    return f"no property of this name (allowed: {listed(names)})"


def declared(schema: JsonValue) -> Mapping[str, JsonValue]:
    """Return the members that a schema declares by name."""
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _required(finding: Finding, root: JsonValue) -> str:
    wanted = describe(declared(finding.schema).get(finding.argument), root)
    return f"{wanted} (required)"


def _union(finding: Finding, root: JsonValue) -> str:
    argument = finding.argument
    if isinstance(argument, tuple):
        matched = _matched(argument[:MAX_NAMES], finding.schema)
        return f"exactly one of the alternatives; this matches {matched}"
    return _alternatives(argument[:MAX_NAMES], root) if isinstance(argument, list) else "a value"


def _matched(indexes: tuple[int, ...], schema: JsonValue) -> str:
    """Name alternatives by their titles, or by their numbers when one has none."""
    parts = schema.get("oneOf") if isinstance(schema, dict) else None
    found = [parts[index] for index in indexes] if isinstance(parts, list) else []
    titles = [part.get("title") for part in found if isinstance(part, dict)]
    if titles and len(titles) == len(indexes) and all(isinstance(one, str) for one in titles):
        return _cut(" and ".join(map(preview, titles)), 400)
    return "numbers " + ", ".join(str(index + 1) for index in indexes)


def _count(text: str) -> Callable[[Finding, JsonValue], str]:
    def phrase(finding: Finding, root: JsonValue) -> str:
        one = text[:-3] + "y" if text.endswith("ies") else text[:-1]
        words = one if finding.argument == 1 else text
        bound = "at least" if finding.keyword.startswith("min") else "at most"
        return f"{bound} {preview(finding.argument)} {words}"

    return phrase


def _says(text: str) -> Callable[[Finding, JsonValue], str]:
    return lambda finding, root: text.format(preview(finding.argument))


_PHRASES: Final[Mapping[str, Callable[[Finding, JsonValue], str]]] = MappingProxyType({
    "type": lambda finding, root: describe(
        {**(finding.schema if isinstance(finding.schema, dict) else {}), "type": finding.argument},
        root,
    ),
    "enum": lambda finding, root: f"one of {listed(finding.argument)}",
    "const": _says("exactly {}"),
    "minimum": _bounded,
    "maximum": _bounded,
    "exclusiveMinimum": _bounded,
    "exclusiveMaximum": _bounded,
    "multipleOf": _says("a multiple of {}"),
    "minLength": _count("characters"),
    "maxLength": _count("characters"),
    "minItems": _count("items"),
    "maxItems": _count("items"),
    "minProperties": _count("properties"),
    "maxProperties": _count("properties"),
    "minContains": _says("at least {} of the items to match what must be contained"),
    "maxContains": _says("at most {} of the items to match what may be contained"),
    "uniqueItems": _says("items that all differ"),
    "pattern": _says("text that matches the pattern {}"),
    "format": _says("text in the format {}"),
    "required": _required,
    "additionalProperties": _unknown,
    "unevaluatedProperties": _unknown,
    "unevaluatedItems": _says("no item here"),
    "propertyNames": _says("a property name that the schema accepts"),
    "anyOf": _union,
    "oneOf": _union,
    "not": _says("a value that the schema does not exclude"),
    "false": _says("nothing here"),
    "complexity": _says("a smaller value; checking one of this size takes too long"),
})
