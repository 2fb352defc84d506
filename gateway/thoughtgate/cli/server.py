"""`thoughtgate server`: the registered tool servers.

Never starts a server except for `list --check`; entries of the configuration file stay read-only.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import click

from thoughtgate.app.entries import as_written, refuse_configured, shown_servers
from thoughtgate.app.login_words import login_words
from thoughtgate.app.masks import shown_transport
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.output import json_flag, note, one_line, said, show, table
from thoughtgate.cli.server_add import add
from thoughtgate.cli.server_import import import_
from thoughtgate.cli.server_login import login, logout
from thoughtgate.cli.settings import loaded_or_fail, opened_registry
from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import (
    HttpTransport,
    Server,
    StdioTransport,
    Transport,
    UpstreamState,
    UpstreamStatus,
)

_WELL = {UpstreamState.READY, UpstreamState.DISABLED}
_NONE = "no servers yet; add one with: thoughtgate server add NAME -- COMMAND"
_SHOWN = ("name", "state", "tools", "transport", "source", "login")
_HEADS = {"source": "FROM"}


@click.group()
def server() -> None:
    """Register tool servers, and see how they stand."""


server.add_command(add)
server.add_command(import_)
server.add_command(login)
server.add_command(logout)


@server.command(name="list")
@click.option("--check", is_flag=True, help="Connect to each server and say what it answers.")
@json_flag
@click.pass_context
def list_(context: click.Context, check: bool, as_json: bool) -> None:
    """List the servers; --check also connects to them, exit 1 unless all are ready."""
    loaded = loaded_or_fail(context.obj)
    told: set[str] = set()

    def tell(line: str) -> None:
        told.add(line.partition(":")[0])
        note(line)

    states = _probed(loaded, tell) if check else {}
    with opened_registry(loaded) as store:
        entries = shown_servers(as_written(loaded), store)
        known = {entry.name: len(store.known_tools(entry.name)) for entry in entries}
        logins = login_words(loaded, store)
    rows = [
        _row(entry, known[entry.name], states.get(entry.name))
        | {"login": logins.get(entry.name, "")}
        for entry in entries
    ]
    shown = _SHOWN if any(row["login"] for row in rows) else _SHOWN[:-1]
    head = tuple(_HEADS.get(key, key.upper()) for key in shown)
    cells = [tuple(str(row[key]) for key in shown) for row in rows]
    show(rows, table(head, cells) if rows else [_NONE], as_json=as_json)
    for row in rows:
        if row["reason"] and row["name"] not in told and not as_json:
            note(f"{row['name']}: {row['reason']}")
    context.exit(Exit.OK if {s.state for s in states.values()} <= _WELL else Exit.FAILED)


def _probed(loaded: Loaded, tell: Callable[[str], None]) -> Mapping[str, UpstreamStatus]:
    """Connect to the servers; what that takes is imported only now."""
    states: Mapping[str, UpstreamStatus] = import_module("thoughtgate.app.probe").probed(
        loaded, tell
    )
    return states


def _row(entry: Server, tools: int, status: UpstreamStatus | None) -> dict[str, object]:
    stands = "enabled" if entry.enabled else "disabled"
    return {
        "name": entry.name,
        "state": status.state.value if status else stands,
        "reason": status.reason if status else "",
        "tools": tools,
        "transport": shown_transport(entry.transport),
        "source": entry.source,
    }


@server.command(name="show")
@click.argument("name")
@json_flag
@click.pass_obj
def show_(chosen: Path | None, name: str, as_json: bool) -> None:
    """Show one server; values of secrets are hidden."""
    loaded = loaded_or_fail(chosen)
    with opened_registry(loaded) as store:
        entries = {entry.name: entry for entry in shown_servers(as_written(loaded), store)}
        entry = entries.get(name)
        if entry is None:
            raise ConfigError(message=f"no server is named {name}; see: thoughtgate server list")
        tools = [str(tool.get("name")) for tool in store.known_tools(name)]
        logged_in = login_words(loaded, store).get(name, "")
    value = {
        "name": entry.name,
        "enabled": entry.enabled,
        "trusted": entry.trusted,
        "transport": shown_transport(entry.transport),
        "cwd": _cwd(entry.transport),
        "secrets": _secret_names(entry.transport),
        "login": logged_in,
        "tags": sorted(entry.tags),
        "era": entry.era.value if entry.era else "found out",
        "results": entry.results.value,
        "nulls": entry.nulls.value,
        "start_timeout": entry.start_timeout,
        "call_timeout": entry.call_timeout,
        "source": entry.source,
        "tools": tools,
    }
    lines = (one_line(f"{key}: {said(shown)}") for key, shown in value.items())
    show(value, lines, as_json=as_json)


def _cwd(transport: Transport) -> str:
    return (transport.cwd if isinstance(transport, StdioTransport) else None) or ""


def _secret_names(transport: Transport) -> list[str]:
    if isinstance(transport, StdioTransport):
        return sorted(transport.env)
    return sorted(transport.headers) if isinstance(transport, HttpTransport) else []


@server.command()
@click.argument("name")
@click.pass_obj
def enable(chosen: Path | None, name: str) -> None:
    """Use a server again."""
    _switch(chosen, name, enabled=True)


@server.command()
@click.argument("name")
@click.pass_obj
def disable(chosen: Path | None, name: str) -> None:
    """Stop using a server; it stays registered."""
    _switch(chosen, name, enabled=False)


def _switch(chosen: Path | None, name: str, *, enabled: bool) -> None:
    loaded = loaded_or_fail(chosen)
    refuse_configured(loaded, "server", name)
    with opened_registry(loaded) as store:
        store.set_enabled(name, enabled)
    note(f"server {name} {'enabled' if enabled else 'disabled'}")


@server.command()
@click.argument("name")
@click.pass_obj
def rm(chosen: Path | None, name: str) -> None:
    """Remove a server from the registry; its tools' history stays."""
    loaded = loaded_or_fail(chosen)
    refuse_configured(loaded, "server", name)
    with opened_registry(loaded) as store:
        store.remove_server(name)
    note(f"server {name} removed")
