"""TOML: a text as a value, each fault with its line and column; and values as text.

Never changes a text.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from thoughtgate.config.texts import BOM, Unreadable, fault

BARE = re.compile(r"[A-Za-z0-9_-]+")
"""What a key is that needs no quotes."""

_DEEPEST = 100
"""Tables and lists that may stand inside one another: dotted keys nest without any recursion."""

_DEEP = "not valid TOML: nested too deeply"
_PLACE = re.compile(r"line (\d+), column (\d+)")


def read(text: str) -> dict[str, Any]:
    """Return what the text says.

    Raises:
        Unreadable: Not TOML.
    """
    try:
        value = tomllib.loads(text.removeprefix(BOM))
    except RecursionError:
        raise fault(text, 0, _DEEP) from None
    except ValueError as error:  # an integer of too many digits is a ValueError
        why = f"not valid TOML: {str(error).partition(' (at ')[0]}"
        place = _PLACE.search(str(error))
        if place is None:
            raise fault(text, len(text), why) from None
        raise Unreadable(why, int(place[1]), int(place[2])) from None
    if _is_deep(value):
        raise fault(text, 0, _DEEP)
    return value


def key_text(key: str) -> str:
    """Return a key as it is written."""
    return key if BARE.fullmatch(key) else _string(key)


def value_text(value: Any) -> str:
    """Return text, a list or an object as TOML on one line; anything else is as in JSON."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key_text(key)} = {value_text(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)


def _is_deep(value: dict[str, Any]) -> bool:
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for some in inner for one in some if isinstance(one, dict | list)]
    return bool(level)


def _string(text: str) -> str:
    """Return a basic string; JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
