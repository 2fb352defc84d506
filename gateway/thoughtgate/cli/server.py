"""`thoughtgate server`: the registered tool servers.

Never starts a server except for `list --check`; entries of the configuration file stay read-only.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import click

from thoughtgate.app.entries import as_written, refuse_configured, shown_servers
from thoughtgate.app.masks import shown_transport
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.output import json_flag, note, one_line, said, show, table
from thoughtgate.cli.settings import loaded_or_fail, opened_registry
from thoughtgate.cli.words import Seconds
from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import (
    BUILT_IN,
    Era,
    HttpTransport,
    NullPolicy,
    ResultPolicy,
    Server,
    StdioTransport,
    Transport,
    UpstreamState,
    UpstreamStatus,
)

_WELL = {UpstreamState.READY, UpstreamState.DISABLED}
_MISFITS = {
    "env": "--env is for a command; a server at --url takes --header",
    "cwd": "--cwd is for a command; a server at --url has no folder",
    "headers": "--header is for --url; a command takes --env",
}
_NONE = "no servers yet; add one with: thoughtgate server add NAME -- COMMAND"
_SHOWN = ("name", "state", "tools", "transport", "source")


@click.group()
def server() -> None:
    """Register tool servers, and see how they stand."""


@server.command(
    epilog="\b\n"
    "thoughtgate server add files -- thoughtgate-files --root ~/notes\n"
    "thoughtgate server add web --url https://tools.example/mcp --header 'Authorization=Bearer …'"
)
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="Streamable HTTP endpoint instead of a command.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="HTTP header.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Environment of the child.")
@click.option("--cwd", help="Working directory of the child; else the present one.")
@click.option("--tag", "tags", multiple=True, help="Word that domains may include.")
@click.option("--trusted", is_flag=True, help="Believe the tools' own read-only hints.")
@click.option("--era", type=click.Choice([e.value for e in Era]), help="Protocol era to speak.")
@click.option("--results", type=click.Choice([r.value for r in ResultPolicy]), default="warn")
@click.option("--nulls", type=click.Choice([n.value for n in NullPolicy]), default="drop")
@click.option("--call-timeout", type=Seconds(), default=120.0)
@click.option("--start-timeout", type=Seconds(), default=30.0)
@click.option("--replace", is_flag=True, help="Change a server that is registered already.")
@click.pass_context
def add(context: click.Context, /, name: str, replace: bool, **given: object) -> None:
    """Register a server: a child process after `--`, or an HTTP endpoint by --url.

    Values of --env and --header are stored encrypted.
    """
    if name == BUILT_IN:
        raise ConfigError(message=f"the name {name} is the gateway's own; choose another")
    entry = _entry(name, given)
    loaded = loaded_or_fail(context.obj)
    refuse_configured(loaded, "server", name)
    with opened_registry(loaded) as store:
        if not replace and name in store.server_names():
            raise ConfigError(message=f"server {name} is registered already; add --replace")
        store.put_server(entry)
    note(f"server {name} registered; see its tools with: thoughtgate tool list")
    note("see whether it answers with: thoughtgate server list --check")


def _entry(name: str, given: Mapping[str, object]) -> Server:
    command, url = given["command"], given["url"]
    assert isinstance(command, tuple)
    if bool(command) == bool(url):
        raise click.UsageError(message="give a command after `--`, or --url, not both")
    for option in ("env", "cwd") if url else ("headers",):
        if given[option]:
            raise click.UsageError(message=_MISFITS[option])
    transport: Transport
    if command:
        transport = StdioTransport(
            argv=command, env=_pairs(given["env"], "--env"), cwd=_folder(given["cwd"])
        )
    else:
        transport = HttpTransport(url=str(url), headers=_pairs(given["headers"], "--header"))
    era = given["era"]
    return Server(
        name=name,
        transport=transport,
        trusted=bool(given["trusted"]),
        tags=frozenset(_texts(given["tags"])),
        era=Era(str(era)) if era else None,
        results=ResultPolicy(str(given["results"])),
        nulls=NullPolicy(str(given["nulls"])),
        call_timeout=float(str(given["call_timeout"])),
        start_timeout=float(str(given["start_timeout"])),
    )


def _folder(cwd: object) -> str:
    """Return the folder that relative paths of a command mean, wherever a gateway is started."""
    try:
        return str(Path.cwd() / str(cwd or ""))
    except FileNotFoundError:
        raise ConfigError(message="the present folder is gone; give --cwd") from None


def _texts(value: object) -> Sequence[str]:
    return value if isinstance(value, tuple) else ()


def _pairs(value: object, option: str) -> dict[str, str]:
    pairs = {}
    for text in _texts(value):
        key, equals, value_ = text.partition("=")
        if not equals or not key:
            raise click.UsageError(message=f"{option} takes NAME=VALUE")
        pairs[key.strip()] = value_
    return pairs


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
    rows = [_row(entry, known[entry.name], states.get(entry.name)) for entry in entries]
    head = ("NAME", "STATE", "TOOLS", "TRANSPORT", "FROM")
    cells = [tuple(str(row[key]) for key in _SHOWN) for row in rows]
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
    value = {
        "name": entry.name,
        "enabled": entry.enabled,
        "trusted": entry.trusted,
        "transport": shown_transport(entry.transport),
        "cwd": _cwd(entry.transport),
        "secrets": _secret_names(entry.transport),
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
