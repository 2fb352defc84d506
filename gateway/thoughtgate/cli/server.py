"""`thoughtgate server`: the registered tool servers.

Never starts a server except for `list --check`; entries of the configuration file stay read-only.
"""

from pathlib import Path

import click
import msgspec

from thoughtgate.cli import desks
from thoughtgate.cli.completing import server_names
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import changed, json_flag, note, one_line, said, show, table
from thoughtgate.cli.server_add import add
from thoughtgate.cli.server_import import import_
from thoughtgate.cli.server_login import login, logout
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import UpstreamState
from thoughtgate.surface.admin_values import ServerEntry

_WELL = {UpstreamState.READY.value, UpstreamState.DISABLED.value}
_NONE = (
    "no servers yet; add one with: thoughtgate server add NAME -- COMMAND, "
    "or those of a client with: thoughtgate server import FILE"
)
_SHOWN = ("name", "state", "tools", "transport", "source", "login")
_HEADS = {"source": "FROM"}


_NAME = click.argument("name", shell_complete=server_names)


@click.group(cls=Group)
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
    told: set[str] = set()

    def tell(line: str) -> None:
        told.add(line.partition(":")[0])
        note(line)

    entries = desks.servers(context.obj).listed(check=check, say=tell)
    rows = [_row(entry) for entry in entries]
    shown = _SHOWN if any(row["login"] for row in rows) else _SHOWN[:-1]
    head = tuple(_HEADS.get(key, key.upper()) for key in shown)
    cells = [tuple(str(row[key]) for key in shown) for row in rows]
    show(rows, table(head, cells) if rows else [_NONE], as_json=as_json)
    for row in rows:
        if row["reason"] and row["name"] not in told and not as_json:
            note(f"{row['name']}: {row['reason']}")
    well = not check or {entry.state for entry in entries} <= _WELL
    context.exit(Exit.OK if well else Exit.FAILED)


def _row(entry: ServerEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "state": entry.state,
        "reason": entry.reason,
        "tools": len(entry.tools),
        "transport": _transport(entry),
        "source": entry.source,
        "login": entry.login,
    }


def _transport(entry: ServerEntry) -> str:
    return " ".join(entry.command) or entry.url or "in this process"


def _era(entry: ServerEntry) -> str:
    usual = "found out" if entry.grpc is None else "none"
    return entry.era.value if entry.era else usual


def _sharing(entry: ServerEntry) -> str:
    usual = "as usual" if entry.grpc is None else "shared"
    return entry.sharing.value if entry.sharing else usual


def _grpc(entry: ServerEntry) -> dict[str, object]:
    """Return what is told of a gRPC server only."""
    if entry.grpc is None:
        return {}
    told = {**msgspec.structs.asdict(entry.grpc), "streaming": entry.grpc.streaming.value}
    return {
        "reflect": list(entry.grpc.reflect),
        **{k: v for k, v in told.items() if k != "reflect"},
    }


@server.command(name="show")
@_NAME
@json_flag
@click.pass_obj
def show_(chosen: Path | None, name: str, as_json: bool) -> None:
    """Show one server; values of secrets are hidden."""
    entries = desks.servers(chosen).listed(check=False, say=note)
    entry = {one.name: one for one in entries}.get(name)
    if entry is None:
        raise ConfigError(message=f"no server is named {name}; see: thoughtgate server list")
    value = {
        "name": entry.name,
        "enabled": entry.enabled,
        "trusted": entry.trusted,
        "transport": _transport(entry),
        "sse": entry.sse,
        **_grpc(entry),
        "cwd": entry.cwd,
        "secrets": list(entry.secrets),
        "login": entry.login,
        "tags": list(entry.tags),
        "era": _era(entry),
        "results": entry.results.value,
        "nulls": entry.nulls.value,
        "start_timeout": entry.start_timeout,
        "call_timeout": entry.call_timeout,
        "sharing": _sharing(entry),
        "idle_timeout": entry.idle_timeout,
        "source": entry.source,
        "tools": list(entry.tools),
    }
    lines = (one_line(f"{key}: {said(shown)}") for key, shown in value.items())
    show(value, lines, as_json=as_json)


@server.command()
@_NAME
@json_flag
@click.pass_obj
def enable(chosen: Path | None, name: str, as_json: bool) -> None:
    """Use a server again."""
    desks.servers(chosen).switch(name, enabled=True)
    value = {"server": name, "enabled": True}
    changed(value, [f"server {name} enabled"], as_json=as_json)


@server.command()
@_NAME
@json_flag
@click.pass_obj
def disable(chosen: Path | None, name: str, as_json: bool) -> None:
    """Stop using a server; it stays registered."""
    desks.servers(chosen).switch(name, enabled=False)
    value = {"server": name, "enabled": False}
    changed(value, [f"server {name} disabled"], as_json=as_json)


@server.command()
@_NAME
@json_flag
@click.pass_obj
def rm(chosen: Path | None, name: str, as_json: bool) -> None:
    """Remove a server from the registry; its tools' history stays."""
    desks.servers(chosen).remove(name)
    changed({"server": name, "removed": True}, [f"server {name} removed"], as_json=as_json)
