"""Short words for JSON Schema 2020-12, and what is wrong with a set of arguments.

Never validates by hand: `jsonschema` decides, this file only phrases.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

Schema = dict[str, Any]

MAX_PROBLEMS = 5


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of a closed object."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str = "", **rules: Any) -> Schema:
    """Return the schema of a string."""
    return _described({"type": "string", **rules}, description)


def integer(description: str = "", **rules: Any) -> Schema:
    """Return the schema of an integer."""
    return _described({"type": "integer", **rules}, description)


def number(description: str = "", **rules: Any) -> Schema:
    """Return the schema of a number."""
    return _described({"type": "number", **rules}, description)


def flag(description: str = "", **rules: Any) -> Schema:
    """Return the schema of a boolean."""
    return _described({"type": "boolean", **rules}, description)


def array(items: Schema, description: str = "", **rules: Any) -> Schema:
    """Return the schema of an array."""
    return _described({"type": "array", "items": items, **rules}, description)


def nullable(schema: Schema) -> Schema:
    """Return the same schema, null allowed."""
    return {**schema, "type": [schema["type"], "null"]}


def whole(schema: Schema, value: Any) -> Any:
    """Return a valid value with its integers as such: JSON Schema takes 3.0 for one, too."""
    if isinstance(value, float):
        return int(value) if "integer" in schema.get("type", ()) else value
    if isinstance(value, list):
        return [whole(schema.get("items", {}), item) for item in value]
    if isinstance(value, dict):
        members = schema.get("properties", {})
        return {name: whole(members.get(name, {}), item) for name, item in value.items()}
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing that is wrong: where, as a JSON pointer, and in a sentence without the value."""

    pointer: str
    sentence: str


def violations(validator: Draft202012Validator, value: object) -> list[Violation]:
    """Return what is wrong with `value`, at most `MAX_PROBLEMS`."""
    found: list[Violation] = []
    for error in validator.iter_errors(value):
        found.append(Violation(pointer=_pointer(error), sentence=_sentence(error)))
        if len(found) == MAX_PROBLEMS:
            break
    return found


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description} if description else schema


def _pointer(error: Any) -> str:  # a ValidationError, whose fields are all optional to mypy
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in error.absolute_path)
    return "".join(f"/{part}" for part in parts)


def _sentence(error: Any) -> str:
    where = _pointer(error) or "the arguments"
    phrase = _PHRASES.get(str(error.validator))
    if phrase is None:
        return f"{where}: breaks the rule {error.validator}"
    return f"{where}: {phrase(error)}"


def _missing(error: Any) -> str:
    return "lacks " + ", ".join(
        name for name in error.validator_value if name not in error.instance
    )


def _unknown(error: Any) -> str:
    known = error.schema.get("properties", {})
    extra = [str(name)[:40] for name in error.instance if name not in known]
    return f"has no argument {', '.join(extra[:5])}; known are {', '.join(known)}"


def _types(error: Any) -> str:
    wanted = error.validator_value
    names: Iterable[str] = [wanted] if isinstance(wanted, str) else wanted
    return f"must be {' or '.join(names)}, not {type(error.instance).__name__}"


_PHRASES: Mapping[str, Callable[[Any], str]] = {
    "required": _missing,
    "additionalProperties": _unknown,
    "type": _types,
    "enum": lambda error: f"must be one of {', '.join(map(str, error.validator_value))}",
    "minimum": lambda error: f"must be at least {error.validator_value}",
    "maximum": lambda error: f"must be at most {error.validator_value}",
    "minLength": lambda error: f"must have at least {error.validator_value} characters",
    "maxLength": lambda error: f"must have at most {error.validator_value} characters",
    "minItems": lambda error: f"must have at least {error.validator_value} items",
    "maxItems": lambda error: f"must have at most {error.validator_value} items",
    "pattern": lambda error: f"must match {error.validator_value}",
}
