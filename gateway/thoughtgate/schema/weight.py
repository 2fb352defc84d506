"""How big a value is, counted without recursion and no further than asked.

Never looks at what the value means.
"""

from typing import Final, NamedTuple

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonValue
from thoughtgate.schema.pointers import pointer

MAX_DEPTH: Final = 64
_MAX_BITS = 13_607  # 4,096 decimal digits


class Weight(NamedTuple):
    """Values of all kinds, and characters in strings and names; counted up to a limit."""

    nodes: int
    characters: int


def weigh(value: JsonValue, limit: int) -> Weight:
    """Return the weight of `value`; counting stops soon after `limit` nodes."""
    nodes = characters = 0
    todo = [value]
    while todo and nodes <= limit:
        item = todo.pop()
        nodes += 1
        if isinstance(item, str):
            characters += len(item)
        elif isinstance(item, dict):
            characters += sum(map(len, item))
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return Weight(nodes, characters)


def guard(value: JsonValue) -> None:
    """Refuse what our parser would never have returned: it can crash an engine.

    Raises:
        Malformed: Deeper than 64 levels, or something that JSON cannot say.
    """
    todo: list[tuple[JsonValue, tuple[str | int, ...]]] = [(value, ())]
    while todo:
        item, path = todo.pop()
        if isinstance(item, dict | list):
            if len(path) >= MAX_DEPTH:
                raise Malformed(message=f"the value nests deeper than {MAX_DEPTH} levels")
            pairs = item.items() if isinstance(item, dict) else enumerate(item)
            for step, inner in pairs:
                if isinstance(item, dict) and not _is_text(step):
                    raise Malformed(message=f"a name at {pointer(path)!r} is not JSON text")
                todo.append((inner, (*path, step)))
        elif not _is_scalar(item):
            raise Malformed(message=f"the value at {pointer(path)!r} cannot be said in JSON")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_scalar(value: JsonValue) -> bool:
    if isinstance(value, str):
        return value.isascii() or _is_text(value)
    if isinstance(value, float):
        return abs(value) < float("inf")
    if isinstance(value, int):
        return value.bit_length() <= _MAX_BITS
    return value is None
