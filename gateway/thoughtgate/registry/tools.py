"""Tool definitions as they were seen, and what the operator said about tools.

Never changes a definition: another definition is another row, with another digest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, tuple_, update
from sqlalchemy.dialects.sqlite import insert

from thoughtgate.core.json import JsonObject, digest
from thoughtgate.core.tools import Effect
from thoughtgate.registry import tables
from thoughtgate.registry.values import Stamp, from_json, to_json

HISTORY_LIMIT = 10_000
"""Past definitions kept per server; beyond, those not seen for longest go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChanges:
    """How a listing differs from the one before, by the server's own tool names."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    reordered: bool = False

    def __bool__(self) -> bool:
        """Say whether anything differs."""
        return bool(self.new or self.changed or self.gone or self.reordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTool:
    """One definition of one tool, with when it was seen first and last (`time.time_ns()`)."""

    digest: str
    definition: JsonObject
    current: bool
    first_seen_ns: int
    last_seen_ns: int


def record(
    connection: Connection, server: str, definitions: Sequence[JsonObject], at_ns: int
) -> ToolChanges:
    """Note what a discovery of `server` found; entries without a name are left out."""
    before = _current(connection, server)
    rows = _rows(server, definitions, at_ns)
    after = [(row["name"], row["digest"]) for row in rows]
    table = tables.tools
    connection.execute(
        update(table).where(table.c.server == server, table.c.current).values(current=False)
    )
    statement = insert(table)
    seen_again = {
        name: statement.excluded[name] for name in ("position", "current", "last_seen_ns")
    }
    if rows:
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["server", "name", "digest"], set_=seen_again
            ),
            rows,
        )
    _forget_oldest(connection, server)
    return _compare(before, after)


def forget_current(connection: Connection, server: str) -> None:
    """Mark all of a server's definitions as past: what it lists is not known any more."""
    table = tables.tools
    connection.execute(update(table).where(table.c.server == server).values(current=False))


def known(connection: Connection, server: str) -> tuple[JsonObject, ...]:
    """Return the newest listing of `server`, in its order."""
    table = tables.tools
    rows = connection.execute(
        select(table.c.definition)
        .where(table.c.server == server, table.c.current)
        .order_by(table.c.position)
    )
    return tuple(from_json(definition) for definition in rows.scalars())


def history(connection: Connection, server: str, tool: str) -> tuple[SeenTool, ...]:
    """Return every definition of one tool ever seen, newest first."""
    table = tables.tools
    rows = connection.execute(
        select(table)
        .where(table.c.server == server, table.c.name == tool)
        .order_by(table.c.last_seen_ns.desc(), table.c.first_seen_ns.desc())
    )
    return tuple(
        SeenTool(
            digest=row.digest,
            definition=from_json(row.definition),
            current=row.current,
            first_seen_ns=row.first_seen_ns,
            last_seen_ns=row.last_seen_ns,
        )
        for row in rows
    )


def set_effect(
    connection: Connection, key: tuple[str, str], effect: Effect | None, stamp: Stamp
) -> None:
    """Say what a call of the tool (server, name) does; None takes it back."""
    table = tables.tool_settings
    server, tool = key
    if effect is None:
        connection.execute(delete(table).where(table.c.server == server, table.c.tool == tool))
        return
    row = {
        "effect": effect.value,
        "changed_by": stamp.principal,
        "changed_ns": stamp.at_ns,
    }
    connection.execute(
        insert(table)
        .values(row | {"server": server, "tool": tool})
        .on_conflict_do_update(index_elements=["server", "tool"], set_=row)
    )


def effects(connection: Connection, server: str) -> Mapping[str, Effect]:
    """Return what the operator said about tools of `server`, by tool name."""
    table = tables.tool_settings
    rows = connection.execute(select(table.c.tool, table.c.effect).where(table.c.server == server))
    return {row.tool: Effect(row.effect) for row in rows}


def drop_settings(connection: Connection, server: str) -> None:
    """Forget what was said about a server's tools: its name may come back as another program."""
    table = tables.tool_settings
    connection.execute(delete(table).where(table.c.server == server))


def _rows(server: str, definitions: Sequence[JsonObject], at_ns: int) -> list[dict[str, object]]:
    return [
        {
            "server": server,
            "name": definition["name"],
            "digest": digest(definition),
            "definition": to_json(definition),
            "position": position,
            "current": True,
            "first_seen_ns": at_ns,
            "last_seen_ns": at_ns,
        }
        for position, definition in enumerate(definitions)
        if isinstance(definition.get("name"), str)
    ]


def _current(connection: Connection, server: str) -> list[tuple[str, str]]:
    table = tables.tools
    rows = connection.execute(
        select(table.c.name, table.c.digest)
        .where(table.c.server == server, table.c.current)
        .order_by(table.c.position)
    )
    return [(row.name, row.digest) for row in rows]


def _compare(
    before: Sequence[tuple[str, str]], after: Sequence[tuple[object, object]]
) -> ToolChanges:
    old, new = dict(before), {str(name): str(digest) for name, digest in after}
    return ToolChanges(
        new=tuple(name for name in new if name not in old),
        changed=tuple(name for name in new if name in old and old[name] != new[name]),
        gone=tuple(name for name in old if name not in new),
        reordered=[name for name in old if name in new] != [name for name in new if name in old],
    )


def _forget_oldest(connection: Connection, server: str) -> None:
    table = tables.tools
    surplus = (
        select(table.c.name, table.c.digest)
        .where(table.c.server == server, ~table.c.current)
        .order_by(table.c.last_seen_ns.desc())
        .limit(-1)
        .offset(HISTORY_LIMIT)
    )
    connection.execute(
        delete(table).where(
            table.c.server == server, tuple_(table.c.name, table.c.digest).in_(surplus)
        )
    )
