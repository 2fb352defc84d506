"""Domains with all their revisions. Never changes or drops an old revision."""

from dataclasses import dataclass, replace

import msgspec
from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.sqlite import insert

from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import ConfigError
from thoughtgate.registry import tables
from thoughtgate.registry.values import Stamp, check_name, from_json, to_json

_UNSTORED = ("name", "revision", "source")
"""Fields of a Domain that have a column, or are not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRevision:
    """One revision: who made it and when; `domain` is None when it removed the domain."""

    revision: int
    domain: Domain | None
    changed_by: str
    changed_ns: int


def put(connection: Connection, domain: Domain, stamp: Stamp) -> Domain:
    """Store a domain as its next revision and return it; the same again is no change.

    Raises:
        ConfigError: Its name cannot be used.
    """
    check_name("domain", domain.name)
    present = load(connection, domain.name)
    if present and _body(present[0]) == _body(domain):
        return present[0]
    return _append(connection, domain.name, domain, stamp)


def remove(connection: Connection, name: str, stamp: Stamp) -> None:
    """Remove a domain; its revisions stay.

    Raises:
        ConfigError: There is none of this name.
    """
    table = tables.domains
    found = connection.execute(delete(table).where(table.c.name == name))
    if not found.rowcount:
        raise ConfigError(
            message=f"no domain is named {name[:60]} in the registry; see: thoughtgate domain list"
        )
    _insert_revision(connection, name, None, stamp)


def load(connection: Connection, name: str | None = None) -> tuple[Domain, ...]:
    """Return the current revision of all domains, sorted by name, or only of this one."""
    table, revisions = tables.domains, tables.domain_revisions
    query = (
        select(revisions)
        .join(
            table, (table.c.name == revisions.c.name) & (table.c.revision == revisions.c.revision)
        )
        .order_by(table.c.name)
    )
    if name is not None:
        query = query.where(table.c.name == name)
    return tuple(_read(row.name, row.revision, row.body) for row in connection.execute(query))


def history(connection: Connection, name: str) -> tuple[DomainRevision, ...]:
    """Return all revisions of a domain, oldest first."""
    table = tables.domain_revisions
    rows = connection.execute(select(table).where(table.c.name == name).order_by(table.c.revision))
    return tuple(
        DomainRevision(
            revision=row.revision,
            domain=None if row.body is None else _read(row.name, row.revision, row.body),
            changed_by=row.changed_by,
            changed_ns=row.changed_ns,
        )
        for row in rows
    )


def _append(connection: Connection, name: str, domain: Domain, stamp: Stamp) -> Domain:
    revision = _insert_revision(connection, name, _body(domain), stamp)
    row = {"name": name, "revision": revision}
    connection.execute(
        insert(tables.domains).values(row).on_conflict_do_update(index_elements=["name"], set_=row)
    )
    return replace(domain, revision=revision, source="registry")


def _insert_revision(connection: Connection, name: str, body: bytes | None, stamp: Stamp) -> int:
    table = tables.domain_revisions
    newest = connection.execute(
        select(func.max(table.c.revision)).where(table.c.name == name)
    ).scalar_one()
    revision = (newest or 0) + 1
    connection.execute(
        insert(table).values(
            name=name,
            revision=revision,
            body=body,
            changed_by=stamp.principal,
            changed_ns=stamp.at_ns,
        )
    )
    return revision


def _body(domain: Domain) -> bytes:
    fields = msgspec.to_builtins(domain)
    return to_json({name: value for name, value in fields.items() if name not in _UNSTORED})


def _read(name: str, revision: int, body: bytes) -> Domain:
    return msgspec.convert({**from_json(body), "name": name, "revision": revision}, Domain)
