"""JSON pointers (RFC 6901): how a place in a value or a schema is written and found.

Never resolves anything outside the value at hand.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from thoughtgate.core.json import JsonValue

Step = str | int
"""One step into a value: a member's name or an item's index."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")


def pointer(steps: Iterable[Step]) -> str:
    """Return the pointer of `steps`; no steps are the whole value, `""`."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def from_fragment(fragment: str) -> tuple[str, ...] | None:
    """Return the steps of a URI fragment such as `/a~1b/0`, None when it is not a pointer."""
    if not fragment:
        return ()
    if not fragment.startswith("/"):
        return None
    parts = unquote(fragment).split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def find(value: JsonValue, steps: Iterable[str]) -> JsonValue:
    """Return what stands at `steps` inside `value`.

    Raises:
        LookupError: Nothing stands there.
    """
    for step in steps:
        if isinstance(value, dict):
            value = value[step]
        elif isinstance(value, list) and _INDEX.fullmatch(step):
            value = value[int(step)]
        else:
            raise LookupError(step)
    return value
