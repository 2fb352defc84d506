"""What a server listed last beside its tools: prompts, resources, templates, capabilities.

Never keeps history: nothing is approved or checked by it, it only lets lists survive a restart.
"""

from dataclasses import replace

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from thoughtgate.core.servers import Listing
from thoughtgate.registry import tables
from thoughtgate.registry.values import from_json, to_json

_LISTED = ("prompts", "resources", "templates", "capabilities")


def record(connection: Connection, listing: Listing, at_ns: int) -> bool:
    """Note what a discovery found; say whether it is another than before."""
    table = tables.offers
    body = to_json({name: getattr(listing, name) for name in _LISTED})
    before = connection.execute(
        select(table.c.body).where(table.c.server == listing.server)
    ).scalar_one_or_none()
    if before == body:
        return False
    row = {"body": body, "seen_ns": at_ns}
    connection.execute(
        insert(table)
        .values(row | {"server": listing.server})
        .on_conflict_do_update(index_elements=["server"], set_=row)
    )
    return True


def forget(connection: Connection, server: str) -> None:
    """Forget what a server offered: it stands in another place now, or is gone."""
    connection.execute(delete(tables.offers).where(tables.offers.c.server == server))


def added(connection: Connection, listing: Listing) -> Listing:
    """Return a listing with what its server offered last beside tools."""
    table = tables.offers
    body = connection.execute(
        select(table.c.body).where(table.c.server == listing.server)
    ).scalar_one_or_none()
    if body is None:
        return listing
    known = from_json(body)
    return replace(
        listing,
        prompts=tuple(known["prompts"]),
        resources=tuple(known["resources"]),
        templates=tuple(known["templates"]),
        capabilities=known["capabilities"],
    )
