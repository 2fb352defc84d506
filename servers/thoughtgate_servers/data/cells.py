"""What a database gives as JSON: exact, and of a size that can be sent.

Never rounds: what a JSON number cannot hold exactly is text.
"""

import base64
import math
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from thoughtgate_servers.data.limits import MAX_CELL

_EXACT = 2**53 - 1


def plain(value: Any) -> Any:
    """Return a value as JSON takes it: see `WORDS` for how."""
    if value is None or isinstance(value, bool):
        return value
    for kinds, say in _KINDS:
        if isinstance(value, kinds):
            return say(value)
    return cut(str(value))


WORDS = (
    "Integers beyond 2^53 and decimals are text, exact; dates and times are ISO 8601; blobs are "
    "base64; NaN and infinities are text; longer text is cut, and ends in …"
)
"""How values are said, for a schema."""


def cut(text: str) -> str:
    """Return `text`, cut where it is too long."""
    return text if len(text) <= MAX_CELL else text[:MAX_CELL] + "…"


def weight(value: Any) -> int:
    """Return about how many bytes a plain value takes."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, list):
        return 2 + sum(weight(one) + 1 for one in value)
    if isinstance(value, dict):
        return 2 + sum(weight(one) + len(name) + 4 for name, one in value.items())
    return 8


def number(value: Any) -> float | None:
    """Return a finite number as a float; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _integer(value: int) -> int | str:
    return value if -_EXACT <= value <= _EXACT else str(value)


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _blob(value: bytes) -> str:
    return cut(base64.b64encode(value[:MAX_CELL]).decode())


def _text(value: str) -> str:
    return cut(value.encode("utf-8", "replace").decode())


def _members(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {_text(str(name)): plain(one) for name, one in list(value.items())[:MAX_CELL]}


_KINDS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (int, _integer),
    (float, _float),
    (str, _text),
    ((Decimal, UUID, timedelta), str),
    ((date, time), lambda value: value.isoformat()),
    ((bytes, bytearray, memoryview), _blob),
    ((list, tuple), lambda value: [plain(one) for one in value[:MAX_CELL]]),
    (dict, _members),
)
