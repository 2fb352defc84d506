"""`thoughtgate server add`: one tool server, by its command or by its URL, over HTTP or gRPC.

Never starts it, and never asks the URL anything.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from thoughtgate.cli import desks
from thoughtgate.cli.grpc_options import (
    grpc_transport,
    reflect_options,
    refuse_grpc_options,
    tls_options,
)
from thoughtgate.cli.output import changed, json_flag, note
from thoughtgate.cli.words import Seconds
from thoughtgate.config.grpc_servers import FORMS, url_fault
from thoughtgate.config.imports.names import is_sse_url, name_from_url
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import (
    BUILT_IN,
    Era,
    HttpTransport,
    NullPolicy,
    ResultPolicy,
    Server,
    Sharing,
    StdioTransport,
    Transport,
)
from thoughtgate.protos.urls import is_grpc

_MISFITS = {
    "env": "--env is for a command; a server at a URL takes --header",
    "cwd": "--cwd is for a command; a server at a URL has no folder",
    "headers": "--header is for a URL; a command takes --env",
    "sse": "--sse is for a URL; a command has no such choice",
}


_ADDRESS = re.compile(r"[^/:]*:|\[")
"""How a word begins that is an address without a scheme, or with half of one."""


class _Add(click.Command):
    """A command that knows what was meant by options of another program, and by half a URL."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and say where the options of a server's command belong."""
        if "--" in args:
            return super().parse_args(ctx, args)
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            said = f"{error.format_message()} The options of the server's own command come"
            raise click.UsageError(message=f"{said} after `--`", ctx=ctx) from None
        words = (ctx.params["name"], *ctx.params["command"])
        if len(words) <= 2 and _ADDRESS.match(words[-1]) and "://" not in words[-1]:
            said = f"{words[-1]} is no URL: one begins with {FORMS}; a command of that name stands"
            raise click.UsageError(message=f"{said} after `--`", ctx=ctx)
        return rest


@click.command(
    cls=_Add,
    epilog="\b\n"
    "thoughtgate server add files -- thoughtgate-files --root ~/notes\n"
    "thoughtgate server add https://tools.example/mcp --header 'Authorization: Bearer …'\n"
    "thoughtgate server add web https://tools.example/mcp\n"
    "thoughtgate server add data grpc://127.0.0.1:50051\n"
    "thoughtgate server add shop grpcs://shop.example --reflect shop.v1.Orders --ca ca.pem",
)
@click.argument("name", metavar="[NAME]", default="")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="{URL | -- COMMAND…}")
@click.option("--url", help="The URL, for who prefers an option.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="HTTP header, or gRPC metadata; NAME: VALUE too.",
)
@click.option("--sse", is_flag=True, help="The URL speaks the older HTTP+SSE transport.")
@reflect_options
@tls_options
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Environment of the child.")
@click.option("--cwd", help="Working directory of the child; else the present one.")
@click.option("--tag", "tags", multiple=True, help="Word that domains may include.")
@click.option("--trusted", is_flag=True, help="Believe the tools' own read-only hints.")
@click.option("--era", type=click.Choice([e.value for e in Era]), help="Protocol era to speak.")
@click.option(
    "--results",
    type=click.Choice([r.value for r in ResultPolicy]),
    default="warn",
    help="What to do with results that break their own output schema; usually warn.",
)
@click.option(
    "--nulls",
    type=click.Choice([n.value for n in NullPolicy]),
    default="drop",
    help="What to do with null for an optional property that refuses it; usually drop.",
)
@click.option(
    "--call-timeout", type=Seconds(), default=120.0, help="Seconds that a call may take; 120."
)
@click.option(
    "--start-timeout",
    type=Seconds(),
    default=30.0,
    help="Seconds that starting or reaching the server may take; 30.",
)
@click.option(
    "--sharing",
    type=click.Choice([s.value for s in Sharing]),
    help="Who shares a connection; usually nobody over HTTP in the older era, else everybody.",
)
@click.option(
    "--idle-timeout",
    type=click.FloatRange(0, 86_400),
    default=0.0,
    help="Seconds after which an unused connection, and its child, ends.",
)
@click.option("--replace", is_flag=True, help="Change a server that is registered already.")
@json_flag
@click.pass_context
def add(
    context: click.Context, /, name: str, replace: bool, as_json: bool, **given: object
) -> None:
    """Register a server: NAME and a command after `--`, or a URL with or without a NAME.

    Without one, the server is named after the URL's host. Values of --env and --header are stored
    encrypted.
    """
    name, command, url = _words(name, given)
    if name == BUILT_IN:
        raise ConfigError(message=f"the name {name} is the gateway's own; choose another")
    entry = _entry(name, _transport(command, url, given), given)
    desks.servers(context.obj).put(entry, replace=replace)
    lines = [
        f"server {name} registered; see its tools with: thoughtgate tool list",
        "see whether it answers with: thoughtgate server list --check",
    ]
    changed({"server": name, "registered": True}, lines, as_json=as_json)


def _words(name: str, given: Mapping[str, object]) -> tuple[str, tuple[str, ...], str]:
    """Return the name, the command and the URL that the words mean; one of the two is empty."""
    command, url = given["command"], str(given["url"] or "")
    assert isinstance(command, tuple)
    if _is_url(name) and not command and not url:
        return name_from_url(name), (), name
    if len(command) == 1 and _is_url(command[0]) and not url:
        return name, (), command[0]
    if fault := _fault(name, command, url):
        raise click.UsageError(message=fault)
    return name, command, url


def _fault(name: str, command: tuple[str, ...], url: str) -> str:
    """Return why the words cannot be what was meant; empty when they can."""
    if not name:
        return "give a NAME and a command after `--`, or a URL"
    if "://" in (command or (name,))[0] and not url and len(command) < 2 and not _is_url(name):
        return f"a URL begins with {FORMS}"
    if bool(command) == bool(url) or (command and _is_url(command[0])):
        return "give a command after `--`, or a URL; not both"
    if command and command[0].startswith("-"):
        return "a NAME stands before `--`: thoughtgate server add NAME -- COMMAND"
    return ""


def _is_url(word: str) -> bool:
    return not url_fault(word)


def _transport(command: tuple[str, ...], url: str, given: Mapping[str, object]) -> Transport:
    if is_grpc(url):
        return grpc_transport(url, _pairs(given["headers"], "--header", "=:"), given)
    refuse_grpc_options(given)
    for option in ("env", "cwd") if url else ("headers", "sse"):
        if given[option]:
            raise click.UsageError(message=_MISFITS[option])
    if command:
        env = _pairs(given["env"], "--env", "=")
        return StdioTransport(argv=command, env=env, cwd=_folder(given["cwd"]))
    sse = bool(given["sse"])
    if not sse and is_sse_url(url):
        note("the URL ends in /sse: add --sse if it speaks the older HTTP+SSE transport")
    return HttpTransport(url=url, headers=_pairs(given["headers"], "--header", "=:"), sse=sse)


def _entry(name: str, transport: Transport, given: Mapping[str, object]) -> Server:
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
        sharing=Sharing(str(given["sharing"])) if given["sharing"] else None,
        idle_timeout=float(str(given["idle_timeout"])),
    )


def _folder(cwd: object) -> str:
    """Return the folder that relative paths of a command mean, wherever a gateway is started."""
    try:
        return str(Path.cwd() / str(cwd or ""))
    except FileNotFoundError:
        raise ConfigError(message="the present folder is gone; give --cwd") from None


def _texts(value: object) -> Sequence[str]:
    return value if isinstance(value, tuple) else ()


def _pairs(value: object, option: str, signs: str) -> dict[str, str]:
    """Return `NAME=VALUE` words as a table; where a header may be, `NAME: VALUE` too."""
    pairs = {}
    for text in _texts(value):
        places = [at for sign in signs if (at := text.find(sign)) > 0]
        if not places:
            raise click.UsageError(message=f"{option} takes NAME=VALUE")
        at = min(places)
        found = text[at + 1 :]
        pairs[text[:at].strip()] = found.lstrip() if text[at] == ":" else found
    return pairs
