"""Reads JSON that came from outside: one strict value, or a sentence about what is wrong.

Never takes duplicate keys, NaN, Infinity, broken UTF-8 or lone surrogates.
"""

import json
import math
from typing import Any, NoReturn

MAX_DEPTH = 64
"""Arrays and objects inside one another."""
MAX_DIGITS = 4_000
"""Reading an integer takes the square of its digits; Python itself stops at 4,300."""


class NotStrict(Exception):
    """Text that is not strict JSON, and why."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)
        self.why = why


def loads(data: bytes) -> Any:
    """Return the value of `data`.

    Raises:
        NotStrict: It is not strict JSON; `why` says why.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotStrict(why="not UTF-8") from None
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as failure:
        raise NotStrict(why=f"not JSON at character {failure.pos}") from None
    except RecursionError:
        raise NotStrict(why=f"deeper than {MAX_DEPTH}") from None
    if "\\u" in text:
        _refuse_surrogates(value)
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _refuse_deep(value)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise NotStrict(why="an object has the same key twice")
    return made


def _constant(_name: str) -> NoReturn:
    raise NotStrict(why="NaN and Infinity are no JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NotStrict(why="a number is larger than a double can hold")
    return value


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise NotStrict(why=f"an integer has more than {MAX_DIGITS} digits")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float, parse_int=_integer
)


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotStrict(why="a string holds a lone surrogate") from None


def _refuse_deep(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise NotStrict(why=f"deeper than {MAX_DEPTH}")
