"""What the fixture server's tools and prompts hand out: the smallest picture, sound and texts.

Never computes anything: the official suite looks at shapes and at these exact words.
"""

from typing import Any, Final

import mcp_types as types

PICTURE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
"""One red pixel, as PNG."""

SOUND: Final = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA"
"""Four silent samples, as WAV."""

OPEN: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""The input schema of a tool without arguments."""

RICH: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""A schema with the words of JSON Schema 2020-12 that gateways like to lose."""

DEFAULTS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
"""A form with a default of each simple type."""

_OPTIONS: Final = ["option1", "option2", "option3"]
_TITLED: Final = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]

CHOICES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option 1", "Option 2", "Option 3"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
    "required": [],
}
"""A form with every way to write a choice."""


def text(words: str) -> types.TextContent:
    """Return a block of text."""
    return types.TextContent(text=words)


def image() -> types.ImageContent:
    """Return the picture."""
    return types.ImageContent(data=PICTURE, mime_type="image/png")


def audio() -> types.AudioContent:
    """Return the sound."""
    return types.AudioContent(data=SOUND, mime_type="audio/wav")


def embedded(uri: str, words: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    """Return a resource inside a block."""
    return types.EmbeddedResource(
        resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    )


def form(field: str, kind: str = "string") -> dict[str, Any]:
    """Return a form with one required field."""
    return {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
