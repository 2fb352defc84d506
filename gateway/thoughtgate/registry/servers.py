"""Registered servers and their secrets, as rows. Never stores a secret in plain text.

What goes into `server_secrets`: every environment value, every header, and a URL that carries
user information, a query or a fragment. Everything else is plain.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_type_hints
from urllib.parse import urlsplit, urlunsplit

import msgspec
from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import (
    GrpcTransport,
    HttpTransport,
    LocalTransport,
    Server,
    StdioTransport,
    Streaming,
    Tls,
    Transport,
)
from thoughtgate.registry import sealing, tables
from thoughtgate.registry.values import Stamp, check_name, from_json, to_json
from thoughtgate.registry.vault import KeyUse, Place, Sealed, Vault

_HTTP, _GRPC = frozenset({"http", "https"}), frozenset({"grpc", "grpcs"})

_ENV, _HEADER, _URL = "env:", "header:", "url"

_COLUMNS = {"name", "transport", "enabled", "trusted", "source"}
"""Fields of a Server that have a column, or are not stored; all others go into `settings`."""

_SETTINGS = {name: kind for name, kind in get_type_hints(Server).items() if name not in _COLUMNS}


def put(connection: Connection, server: Server, stamp: Stamp, vault: Vault) -> bool:
    """Insert or replace a server; return whether what it connects to is another than before.

    Raises:
        ConfigError: Its name or transport cannot be used.
        StoreSealed: It has secrets, and the key is missing or wrong.
    """
    check_name("server", server.name)
    transport, hidden = _split(server.transport)
    table = tables.servers
    before = connection.execute(
        select(table.c.transport).where(table.c.name == server.name)
    ).scalar_one_or_none()
    row = {
        "enabled": server.enabled,
        "trusted": server.trusted,
        "transport": to_json(transport),
        "settings": to_json(_settings(server)),
        "changed_by": stamp.principal,
        "changed_ns": stamp.at_ns,
    }
    added = {"name": server.name, "added_by": stamp.principal, "added_ns": stamp.at_ns}
    connection.execute(
        insert(table).values(row | added).on_conflict_do_update(index_elements=["name"], set_=row)
    )
    _put_secrets(connection, server.name, hidden, vault)
    return before is not None and before != row["transport"]


def remove(connection: Connection, name: str) -> None:
    """Delete a server and its secrets.

    Raises:
        ConfigError: There is none of this name.
    """
    found = connection.execute(delete(tables.servers).where(tables.servers.c.name == name))
    _must_exist(found.rowcount, name)


def set_flag(connection: Connection, name: str, flag: Mapping[str, bool], stamp: Stamp) -> None:
    """Set `enabled` or `trusted`.

    Raises:
        ConfigError: There is no server of this name.
    """
    table = tables.servers
    values = {**flag, "changed_by": stamp.principal, "changed_ns": stamp.at_ns}
    found = connection.execute(update(table).where(table.c.name == name).values(values))
    _must_exist(found.rowcount, name)


def names(connection: Connection) -> tuple[str, ...]:
    """Return all names, sorted; needs no key."""
    table = tables.servers
    return tuple(connection.execute(select(table.c.name).order_by(table.c.name)).scalars())


def load(
    connection: Connection, vault: Vault | None, name: str | None = None
) -> tuple[Server, ...]:
    """Return all servers sorted by name, or only the one of this name.

    Without a vault every secret is the empty text, and a URL has none of its secret parts.

    Raises:
        StoreSealed: A secret cannot be opened.
    """
    table, secrets = tables.servers, tables.server_secrets
    query, hidden = select(table).order_by(table.c.name), select(secrets)
    if name is not None:
        query, hidden = query.where(table.c.name == name), hidden.where(secrets.c.server == name)
    rows = connection.execute(hidden).all()
    if vault is not None:
        vault.expect({KeyUse(server=row.server, key_id=row.key_id) for row in rows})
    opened: dict[str, dict[str, str]] = {}
    for row in rows:
        place = Place(server=row.server, field=row.field)
        sealed = Sealed(key_id=row.key_id, sealed=row.sealed)
        value = vault.open(sealed, place) if vault is not None else ""
        opened.setdefault(row.server, {})[row.field] = value
    return tuple(
        Server(
            name=row.name,
            transport=_join(from_json(row.transport), opened.get(row.name, {})),
            enabled=row.enabled,
            trusted=row.trusted,
            **_read_settings(from_json(row.settings)),
        )
        for row in connection.execute(query)
    )


def _put_secrets(
    connection: Connection, name: str, hidden: Mapping[str, str], vault: Vault
) -> None:
    table = tables.server_secrets
    connection.execute(delete(table).where(table.c.server == name))
    if not hidden:
        return
    vault.admit(sealing.in_use(connection))
    for field, value in hidden.items():
        sealed = vault.seal(value, Place(server=name, field=field))
        row = {"server": name, "field": field, "key_id": sealed.key_id, "sealed": sealed.sealed}
        connection.execute(insert(table).values(row))


def _must_exist(found: int, name: str) -> None:
    if not found:
        raise ConfigError(message=f"no server is named {name[:60]}; see: thoughtgate server list")


def _settings(server: Server) -> dict[str, object]:
    """Return the rest of the server as JSON; a field added to `Server` later is stored as well."""
    built = msgspec.to_builtins({name: getattr(server, name) for name in _SETTINGS}, order="sorted")
    return dict(built)


def _read_settings(stored: Mapping[str, object]) -> dict[str, Any]:
    return {
        name: msgspec.convert(stored[name], kind)
        for name, kind in _SETTINGS.items()
        if name in stored
    }


def _split(transport: Transport) -> tuple[dict[str, object], dict[str, str]]:
    """Return the plain part of a transport as JSON, and its secrets by field."""
    match transport:
        case StdioTransport(argv=argv, env=env, cwd=cwd):
            if not argv or not argv[0]:
                raise ConfigError(message="a stdio server needs a command to start")
            plain: dict[str, object] = {"kind": "stdio", "argv": list(argv), "cwd": cwd}
            return plain, {_ENV + name: value for name, value in env.items()}
        case HttpTransport(url=url, headers=headers, sse=sse):
            hidden = {_HEADER + name: value for name, value in headers.items()}
            shown = _without_secrets(url)
            if shown != url:
                hidden[_URL] = url
            older = {"sse": True} if sse else {}
            return {"kind": "http", "url": shown, **older}, hidden
        case GrpcTransport():
            return _split_grpc(transport)
        case LocalTransport():
            return {"kind": "local"}, {}


def _split_grpc(transport: GrpcTransport) -> tuple[dict[str, object], dict[str, str]]:
    plain: dict[str, object] = {
        "kind": "grpc",
        "url": _without_secrets(transport.url, _GRPC),
        "reflect": list(transport.reflect),
        "descriptor_set": transport.descriptor_set,
        "streaming": transport.streaming.value,
        "bidi": transport.bidi,
        "tls": asdict(transport.tls),
    }
    return plain, {_HEADER + name: value for name, value in transport.headers.items()}


def _join(plain: Mapping[str, Any], hidden: Mapping[str, str]) -> Transport:
    """Return the transport that `_split` was given."""
    match plain["kind"]:
        case "stdio":
            env = _under(_ENV, hidden)
            return StdioTransport(argv=tuple(plain["argv"]), env=env, cwd=plain["cwd"])
        case "http":
            url = hidden.get(_URL) or plain["url"]
            sse = plain.get("sse", False)
            return HttpTransport(url=url, headers=_under(_HEADER, hidden), sse=sse)
        case "grpc":
            return GrpcTransport(
                url=plain["url"],
                headers=_under(_HEADER, hidden),
                reflect=tuple(plain["reflect"]),
                descriptor_set=plain["descriptor_set"],
                streaming=Streaming(plain["streaming"]),
                bidi=plain["bidi"],
                tls=Tls(**plain["tls"]),
            )
        case _:
            return LocalTransport()


def _under(prefix: str, hidden: Mapping[str, str]) -> dict[str, str]:
    return {
        field.removeprefix(prefix): value
        for field, value in hidden.items()
        if field.startswith(prefix)
    }


def _without_secrets(url: str, schemes: frozenset[str] = _HTTP) -> str:
    """Return scheme, host, port and path.

    Raises:
        ConfigError: Not a URL of these schemes.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ConfigError(message="the server's URL is malformed") from None
    if parts.scheme not in schemes or not parts.hostname:
        begin = " or ".join(f"{scheme}://" for scheme in sorted(schemes))
        raise ConfigError(message=f"a server's URL must begin with {begin} and a host")
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
