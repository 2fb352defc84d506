"""Logins at servers, as rows: encrypted, and bound to the server's name and URL.

Never knows what a login holds, and never stores any of it in plain text.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from thoughtgate.core.servers import HttpTransport, Server
from thoughtgate.registry import sealing, tables
from thoughtgate.registry.values import Stamp
from thoughtgate.registry.vault import Place, Sealed, Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLogin:
    """A login at one server at one URL.

    `secret` is the whole of it as text; `valid_until` is in Unix seconds, None when that is not
    known; `refused` says why it cannot be renewed. `version` tells its renewals apart: a renewal
    carries the version that it replaces.
    """

    server: str
    url: str = field(repr=False)
    secret: str = field(repr=False)
    valid_until: float | None = None
    renewable: bool = False
    refused: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginState:
    """What may be shown of a login; `place` is the digest of the URL that it is for."""

    place: str
    valid_until: float | None
    renewable: bool
    refused: str


def place_of(url: str) -> str:
    """Return what stands for a URL, which may hold secrets, in plain text."""
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()


def put(connection: Connection, login: StoredLogin, stamp: Stamp, vault: Vault) -> None:
    """Insert or replace a login.

    Raises:
        StoreSealed: The key is missing or wrong.
    """
    table = tables.logins
    vault.admit(sealing.in_use(connection))
    before = connection.execute(
        select(table.c.version).where(table.c.server == login.server)
    ).scalar_one_or_none()
    row = _row(login, vault) | {
        "version": (before or 0) + 1,
        "changed_by": stamp.principal,
        "changed_ns": stamp.at_ns,
    }
    connection.execute(
        insert(table)
        .values(row | {"server": login.server})
        .on_conflict_do_update(index_elements=["server"], set_=row)
    )


def renew(connection: Connection, login: StoredLogin, at_ns: int, vault: Vault) -> bool:
    """Replace a login if it still has the version that `login` carries; say whether it had."""
    table = tables.logins
    found = connection.execute(
        update(table)
        .where(
            table.c.server == login.server,
            table.c.place == place_of(login.url),
            table.c.version == login.version,
        )
        .values(_row(login, vault) | {"version": login.version + 1, "changed_ns": at_ns})
    )
    return bool(found.rowcount)


def load(connection: Connection, server: str, url: str, vault: Vault) -> StoredLogin | None:
    """Return the login at a server, None when there is none for this URL.

    Raises:
        StoreSealed: It cannot be opened.
    """
    table = tables.logins
    query = select(table).where(table.c.server == server, table.c.place == place_of(url))
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    sealed = Sealed(key_id=row.key_id, sealed=row.sealed)
    return StoredLogin(
        server=server,
        url=url,
        secret=vault.open(sealed, _bound(server, row.place)),
        valid_until=row.valid_until,
        renewable=row.renewable,
        refused=row.refused,
        version=row.version,
    )


def remove(connection: Connection, server: str) -> bool:
    """Delete a login; say whether there was one."""
    return bool(
        connection.execute(delete(tables.logins).where(tables.logins.c.server == server)).rowcount
    )


def keep_only(connection: Connection, server: Server) -> None:
    """Forget a login that is not for the place where the server stands now."""
    url = server.transport.url if isinstance(server.transport, HttpTransport) else ""
    table = tables.logins
    connection.execute(
        delete(table).where(table.c.server == server.name, table.c.place != place_of(url))
    )


def states(connection: Connection) -> Mapping[str, LoginState]:
    """Return how the logins stand, by server; needs no key."""
    table = tables.logins
    query = select(
        table.c.server, table.c.place, table.c.valid_until, table.c.renewable, table.c.refused
    )
    return {
        row.server: LoginState(
            place=row.place,
            valid_until=row.valid_until,
            renewable=row.renewable,
            refused=row.refused,
        )
        for row in connection.execute(query)
    }


def _row(login: StoredLogin, vault: Vault) -> dict[str, object]:
    place = place_of(login.url)
    sealed = vault.seal(login.secret, _bound(login.server, place))
    until = login.valid_until
    return {
        "place": place,
        "valid_until": None if until is None else int(until),
        "renewable": login.renewable,
        "refused": login.refused,
        "key_id": sealed.key_id,
        "sealed": sealed.sealed,
    }


def _bound(server: str, place: str) -> Place:
    return Place(server=server, field=f"login at {place}")
