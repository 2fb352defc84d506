"""What to do about a violation, when a good guess exists.

Never repairs anything and never guesses about a value that must not be shown.
"""

import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final

from thoughtgate.core.json import JsonValue
from thoughtgate.schema.equality import json_type
from thoughtgate.schema.leaves import has_type
from thoughtgate.schema.phrases import Finding, declared, preview

_MAX_CANDIDATES: Final = 200
_MAX_NAME: Final = 64
_MAX_STRINGIFIED: Final = 65_536
_MAX_DESCRIBED: Final = 120
_CLOSE: Final = 0.6


def hint(finding: Finding, siblings: JsonValue, *, optional: bool) -> str:
    """Return what to do, or `""`.

    `siblings` is the object that the finding's member stands in; `optional` says that the member
    may be left out.
    """
    if finding.missing:
        return _renamed(finding, siblings)
    if finding.unknown:
        return _meant(str(finding.path[-1]), declared(finding.schema), siblings)
    if finding.value is None and optional:
        return "omit it instead of null"
    if finding.keyword == "type":
        schema = finding.schema
        options = schema.get("enum") if isinstance(schema, dict) else None
        return _converted(finding.value, finding.argument, options)
    if finding.keyword in {"enum", "const"}:
        return _option(finding)
    return _described(finding) if finding.keyword == "pattern" else ""


def closest(name: str, candidates: Iterable[str]) -> str:
    """Return the candidate most like `name`, or `""`; the work is bounded."""
    if len(name) > _MAX_NAME:
        return ""
    pool = [item for item in list(candidates)[:_MAX_CANDIDATES] if len(item) <= _MAX_NAME]
    folded = {item.casefold(): item for item in reversed(pool)}
    plain = name.strip().casefold()
    if plain in folded:
        return folded[plain]
    close = get_close_matches(plain, folded, n=1, cutoff=_CLOSE)
    if close:
        return folded[close[0]]
    if len(plain) < 3:
        return ""
    for held in (_begins, _ends):
        found = [key for key in folded if len(key) >= 3 and held(key, plain)]
        if len(found) == 1:
            return folded[found[0]]
    return ""


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _ends(one: str, other: str) -> bool:
    """Tell whether one word is the other's end, behind `_`: names of enums in a .proto file."""
    return one.endswith(f"_{other}") or other.endswith(f"_{one}")


def _meant(name: str, known: Iterable[str], siblings: JsonValue) -> str:
    present = siblings if isinstance(siblings, dict) else {}
    found = closest(name, (item for item in known if item not in present))
    return f"did you mean {preview(found)}?" if found else ""


def _renamed(finding: Finding, siblings: JsonValue) -> str:
    if not isinstance(siblings, dict):
        return ""
    known = declared(finding.schema)
    strangers = [name for name in list(siblings)[:_MAX_CANDIDATES] if name not in known]
    found = closest(finding.argument, strangers)
    return f"rename {preview(found)} to {preview(finding.argument)}" if found else ""


def _option(finding: Finding) -> str:
    options: Sequence[Any] = finding.argument if finding.keyword == "enum" else [finding.argument]
    if not isinstance(finding.value, str):
        kinds = sorted({json_type(option) for option in options})
        return _converted(finding.value, kinds, list(options))
    found = closest(finding.value, (item for item in options if isinstance(item, str)))
    if found:
        return f"did you mean {preview(found)}?"
    plain = _parsed(finding.value) if len(finding.value) <= _MAX_NAME else None
    if plain not in options or (plain is None and finding.value.strip() != "null"):
        return ""
    return f"send {preview(plain)}, not {preview(finding.value)}"


def _described(finding: Finding) -> str:
    """Say what a text is by the schema's own words, which are easier to read than a pattern."""
    schema = finding.schema
    said = schema.get("description") if isinstance(schema, dict) else None
    if not isinstance(said, str) or not 0 < len(said) <= _MAX_DESCRIBED or not said.isprintable():
        return ""
    return f"it should be: {said.rstrip('.')}"


def _converted(value: JsonValue, names: Any, options: JsonValue) -> str:
    """Say how the value would be written in the type that is wanted, if it is an option then."""
    if isinstance(value, str):
        return _unquoted(value, names)
    if has_type("", names) and isinstance(value, int | float):
        if isinstance(options, list) and preview(value) not in options:
            return ""
        return f"send {preview(preview(value))}, not {preview(value)}"
    if has_type([], names) and value is not None:
        return "send an array, even of one item"
    return ""


def _unquoted(value: str, names: Any) -> str:
    if has_type([], names) or has_type({}, names):
        parsed = _parsed(value) if len(value) <= _MAX_STRINGIFIED else None
        if isinstance(parsed, dict | list) and has_type(parsed, names):
            kind = json_type(parsed)
            return f"send the JSON {kind} itself, not a string that holds it"
        return "send an array, even of one item" if has_type([], names) else ""
    parsed = _parsed(value) if len(value) <= _MAX_NAME else None
    if isinstance(parsed, bool | int | float) and has_type(parsed, names):
        return f"send {preview(parsed)}, not {preview(value)}"
    return ""


def _parsed(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
