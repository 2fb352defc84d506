"""Which keys have sealed what the registry holds. Never opens anything."""

from sqlalchemy import Connection, select

from thoughtgate.registry import tables
from thoughtgate.registry.vault import KeyUse


def in_use(connection: Connection) -> tuple[KeyUse, ...]:
    """Return the keys of all servers' secrets and logins, and of the models' keys."""
    models = select(tables.models.c.name, tables.models.c.key_id)
    return (
        *(
            KeyUse(server=row.server, key_id=row.key_id)
            for table in (tables.server_secrets, tables.logins)
            for row in connection.execute(select(table.c.server, table.c.key_id).distinct())
        ),
        *(
            KeyUse(server=row.name, key_id=row.key_id, noun="model")
            for row in connection.execute(models.where(tables.models.c.key_id != ""))
        ),
    )
