"""The steps from one schema of the registry to the next, by Alembic.

Never imported but for a migration: Alembic takes longer to import than most commands to run.
"""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import StaticPool

from thoughtgate.registry.database import connect

_ALEMBIC = threading.Lock()
"""Alembic keeps its context in module globals: one migration at a time in a process."""


def migrate(path: Path, target: str, *, patience: float) -> None:
    """Take the database at `path` to schema `target` in one transaction."""
    engine = create_engine(
        "sqlite://", creator=lambda: connect(path, patience=patience), poolclass=StaticPool
    )
    event.listen(engine, "begin", _begin_immediate)
    config = Config()
    config.set_main_option("script_location", "thoughtgate.registry:migrations")
    try:
        with _ALEMBIC, engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode")  # begins the transaction
            config.attributes["connection"] = connection
            command.upgrade(config, target)
            connection.commit()
    finally:
        engine.dispose()


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
