"""Member names within the alphabet of a provider, by aliases that lead back.

Never gives two names one alias: an alias carries a digest of its name.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.schema.structure import mapped

_ALLOWED: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_.-]")
_DATA: Final = ("default", "const", "enum", "examples")


def aliased(
    schema: JsonObject,
) -> tuple[JsonObject, Callable[[JsonObject], JsonObject] | None]:
    """Return the schema with aliases, and the way back for arguments; None when none is needed."""
    names: set[str] = set()

    def note(part: JsonObject) -> JsonObject:
        names.update(part.get("properties", {}))
        return part

    mapped(schema, note)
    aliases = {name: _alias(name) for name in names if not _ALLOWED.fullmatch(name)}
    if not aliases:
        return schema, None
    shown = mapped(schema, lambda part: _renamed_schema(part, aliases))
    back = {alias: name for name, alias in aliases.items()}
    return shown, lambda arguments: _renamed(arguments, back)


def _alias(name: str) -> str:
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{_FOREIGN.sub('_', name)[:55]}_{mark}"


def _renamed_schema(part: JsonObject, aliases: Mapping[str, str]) -> JsonObject:
    changed: dict[str, Any] = dict(part)
    for keyword in ("properties", "dependentSchemas", "dependentRequired", "dependencies"):
        if isinstance(own := changed.get(keyword), dict):
            changed[keyword] = {
                aliases.get(name, name): _names(v, aliases) for name, v in own.items()
            }
    if isinstance(required := changed.get("required"), list):
        changed["required"] = _names(required, aliases)
    for keyword in _DATA:
        if keyword in changed:
            changed[keyword] = _renamed(changed[keyword], aliases)
    return changed


def _names(value: JsonValue, aliases: Mapping[str, str]) -> JsonValue:
    if not isinstance(value, list):
        return value
    return [aliases.get(item, item) if isinstance(item, str) else item for item in value]


def _renamed(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    if isinstance(value, dict):
        return {names.get(name, name): _renamed(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return value
