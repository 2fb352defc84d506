"""What is wrong with a configuration, in words: unknown keys and names that cannot be.

Never decides whether something is wrong; that is done by converting it.
"""

import re
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin

import msgspec

from thoughtgate.config.settings import NAME_PATTERN, Name

_NAME_RULE = "use 1 to 40 lower-case letters, digits and hyphens, beginning with a letter or digit"


def first_fault(value: object, kind: Any, path: str = "") -> str | None:
    """Return what is wrong in `value`, which should be a `kind`; None when it is something else."""
    if not isinstance(value, dict):
        return None
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _in_table(value, kind, path)
    if get_origin(kind) is Annotated:
        return first_fault(value, get_args(kind)[0], path)
    if get_origin(kind) is dict:
        return _in_entries(value, get_args(kind), path)
    return None


def _in_table(value: dict[str, object], kind: type[msgspec.Struct], path: str) -> str | None:
    known = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for key, item in value.items():
        here = f"{path}.{key}" if path else key
        if key not in known:
            return f"{here}: unknown key; {_hint(key, known)}"
        if fault := first_fault(item, known[key], here):
            return fault
    return None


def _hint(key: str, known: dict[str, Any]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"did you mean {near[0]}?" if near else f"the keys here are {', '.join(sorted(known))}"


def _in_entries(value: dict[str, object], kinds: tuple[Any, ...], path: str) -> str | None:
    named, entry = kinds
    for key, item in value.items():
        if named is Name and re.fullmatch(NAME_PATTERN, key) is None:
            noun = path.rpartition(".")[2].removesuffix("s")
            return f'{path}: "{key[:60]}" is no {noun} name; {_NAME_RULE}'
        if fault := first_fault(item, entry, f"{path}.{key}"):
            return fault
    return None
