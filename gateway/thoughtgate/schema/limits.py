"""Input and output schemas as a client or a model provider can take them, and the way back.

Never used to validate: calls are held against the true schema, whatever was shown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.servers import Era
from thoughtgate.schema.limit_gemini import for_gemini
from thoughtgate.schema.limit_keys import aliased
from thoughtgate.schema.limit_roots import folded
from thoughtgate.schema.limit_strict import all_required, with_items, without_added_nulls


class Profile(StrEnum):
    """Whose limits a view keeps."""

    MCP = "mcp"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    OPENAI_STRICT = "openai-strict"
    GEMINI = "gemini"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """An input schema as it is shown.

    `to_true` turns arguments written for the shown schema into those of the true one. `notes` say
    what the view no longer tells.
    """

    schema: JsonObject
    to_true: Callable[[JsonObject], JsonObject]
    notes: tuple[str, ...] = ()


def limit(schema: JsonObject, profile: Profile) -> Limited:
    """Return a true, admitted input schema within the limits of `profile`."""
    if profile is Profile.MCP:
        return Limited(schema=schema, to_true=unchanged)
    if profile is Profile.ANTHROPIC:
        return _anthropic(schema)
    if profile is Profile.OPENAI:
        root, notes = folded(schema)
        return Limited(schema=with_items(root), to_true=unchanged, notes=notes)
    if profile is Profile.OPENAI_STRICT:
        root, notes = folded(schema)
        strict, more = all_required(with_items(root))
        return Limited(schema=strict, to_true=without_added_nulls(schema), notes=notes + more)
    root, notes = folded(schema)
    plain, more = for_gemini(with_items(root))
    return Limited(schema=plain, to_true=unchanged, notes=notes + more)


def limit_output(schema: JsonValue, era: Era) -> JsonObject | None:
    """Return an output schema as clients of `era` can take it, None when it must not be shown.

    Clients of the handshake era refuse the whole list for one output schema without type object.
    """
    if not isinstance(schema, dict):
        return None
    return schema if era is Era.STATELESS or schema.get("type") == "object" else None


def unchanged(arguments: JsonObject) -> JsonObject:
    """Return the arguments as they are."""
    return arguments


def _anthropic(schema: JsonObject) -> Limited:
    root, notes = folded(schema)
    shown, back = aliased(root)
    return Limited(schema=shown, to_true=back or unchanged, notes=notes)
