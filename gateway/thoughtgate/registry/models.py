"""Registered models and their keys, as rows. Never stores a key in plain text.

What the settings of a model mean is not known here; they are JSON without the key.
"""

from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from thoughtgate.core.errors import ConfigError
from thoughtgate.core.json import JsonObject
from thoughtgate.registry import sealing, tables
from thoughtgate.registry.values import Stamp, check_name, from_json, to_json
from thoughtgate.registry.vault import Place, Sealed, Vault

_FIELD = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A model; `key` is empty where it has none, or where it was not opened."""

    name: str
    settings: JsonObject
    key: str = field(default="", repr=False)
    has_key: bool = False


def put(connection: Connection, model: StoredModel, stamp: Stamp, vault: Vault) -> None:
    """Insert or replace a model.

    Raises:
        ConfigError: Its name cannot be used.
        StoreSealed: It has a key, and the registry's is missing or wrong.
    """
    check_name("model", model.name)
    sealed = Sealed(key_id="", sealed=b"")
    if model.key:
        vault.admit(sealing.in_use(connection))
        sealed = vault.seal(model.key, _place(model.name))
    row = {
        "settings": to_json(model.settings),
        "key_id": sealed.key_id,
        "sealed": sealed.sealed,
        "changed_by": stamp.principal,
        "changed_ns": stamp.at_ns,
    }
    connection.execute(
        insert(tables.models)
        .values(row | {"name": model.name})
        .on_conflict_do_update(index_elements=["name"], set_=row)
    )


def remove(connection: Connection, name: str) -> None:
    """Delete a model and its key.

    Raises:
        ConfigError: There is none of this name.
    """
    found = connection.execute(delete(tables.models).where(tables.models.c.name == name))
    if not found.rowcount:
        raise ConfigError(message=f"no model is named {name[:60]}; see: thoughtgate model list")


def load(connection: Connection, vault: Vault | None) -> tuple[StoredModel, ...]:
    """Return all models sorted by name; without a vault no key is opened.

    Raises:
        StoreSealed: A key cannot be opened.
    """
    rows = connection.execute(select(tables.models).order_by(tables.models.c.name)).all()
    return tuple(
        StoredModel(
            name=row.name,
            settings=from_json(row.settings),
            key=_opened(vault, row.name, Sealed(key_id=row.key_id, sealed=row.sealed)),
            has_key=bool(row.key_id),
        )
        for row in rows
    )


def _opened(vault: Vault | None, name: str, sealed: Sealed) -> str:
    return vault.open(sealed, _place(name)) if vault is not None and sealed.key_id else ""


def _place(name: str) -> Place:
    return Place(server=name, field=_FIELD, noun="model")
