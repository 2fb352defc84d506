"""What the nouns of the registry share: names, JSON columns, who changes what and when.

Never opens a transaction.
"""

import json
import re
import time
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from thoughtgate.core.calls import Principal
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.json import JsonValue
from thoughtgate.registry import tables

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Who changes something, and when (`time.time_ns()`)."""

    principal: str
    at_ns: int


def check_name(noun: str, name: str) -> None:
    """Refuse a server or domain name that could not stand in a URL or an advertised tool name.

    Raises:
        ConfigError: It breaks the pattern.
    """
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            message=f"{name[:60]!r} is no {noun} name; use 1 to 40 lower-case letters, digits and "
            "hyphens, beginning with a letter or digit"
        )


def stamp(connection: Connection, principal: Principal) -> Stamp:
    """Return the stamp of a change by `principal`, who gets a row if there is none yet."""
    at_ns = time.time_ns()
    row = {"id": principal.id, "name": principal.name, "created_ns": at_ns}
    connection.execute(insert(tables.principals).values(row).on_conflict_do_nothing())
    return Stamp(principal=principal.id, at_ns=at_ns)


def all_principals(connection: Connection) -> tuple[Principal, ...]:
    """Return everyone who is known, oldest first."""
    table = tables.principals
    rows = connection.execute(select(table.c.id, table.c.name).order_by(table.c.created_ns))
    return tuple(Principal(id=row.id, name=row.name) for row in rows)


def to_json(value: JsonValue) -> bytes:
    """Return compact JSON that keeps the order of keys and the exactness of integers.

    Lone surrogates, as in an argument that is not UTF-8, come back as well.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def from_json(text: bytes) -> JsonValue:
    """Return what `to_json` was given."""
    try:
        return _decode(text)
    except msgspec.DecodeError:  # lone surrogates are no UTF-8
        return json.loads(text)
