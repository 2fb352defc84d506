"""JSON as people keep it in settings: with comments and trailing commas.

Never accepts more than that: what is left must be JSON, and errors name its line and column.
"""

import json
import re
from typing import Any, NoReturn

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonValue

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|\s+|[,\[\]{}:]|[^\s",/\[\]{}:]+|.', re.DOTALL
)
_BEFORE_NO_COMMA = {"", "[", "{", ",", ":"}


class JsonTable(dict[str, Any]):
    """A JSON object that remembers which of its keys were given more than once."""

    repeated: tuple[str, ...] = ()


def parse(text: str) -> JsonValue:
    """Return the value; each object in it is a `JsonTable`.

    Raises:
        Malformed: What is left without comments and trailing commas is not JSON.
    """
    try:
        value: JsonValue = json.loads(
            _plain(text), object_pairs_hook=_table, parse_constant=_refuse
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Malformed(message=f"{where}: {error.msg[:1].lower()}{error.msg[1:]}") from None
    except ValueError:  # more digits than Python turns into a number
        raise Malformed(message="a number has too many digits") from None
    except RecursionError:
        raise Malformed(message="it is nested too deeply") from None
    return value


def _plain(text: str) -> str:
    """Return `text` with blanks for comments and trailing commas, every other place unchanged."""
    parts: list[str] = []
    comma, before = -1, ""
    for token in _TOKEN.findall(text):
        if token.startswith(("//", "/*")) and len(token) > 1:
            parts.append(re.sub(r"[^\n]", " ", token))
            continue
        parts.append(token)
        if token.isspace():
            continue
        if token in "]}" and comma >= 0:
            parts[comma] = " "
        comma = len(parts) - 1 if token == "," and before not in _BEFORE_NO_COMMA else -1
        before = token
    return "".join(parts)


def _table(pairs: list[tuple[str, Any]]) -> JsonTable:
    table = JsonTable(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        table.repeated = tuple(key for key in table if keys.count(key) > 1)
    return table


def _refuse(constant: str) -> NoReturn:
    raise Malformed(message=f"{constant} is not JSON")
