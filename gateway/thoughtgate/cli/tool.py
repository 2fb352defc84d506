"""`thoughtgate tool`: see, search, call and classify tools.

Never calls a tool except by `call`, and then by the same path as every client.
"""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from thoughtgate.app.compose import App, opened
from thoughtgate.app.requests import call_tool, view_of
from thoughtgate.catalog import advertised_name
from thoughtgate.cli import desks
from thoughtgate.cli.completing import domain_names, tool_names, tool_paths
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import changed, clean, count, json_flag, note, show, table
from thoughtgate.cli.results import result_lines
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.cli.signals import interruptible
from thoughtgate.cli.words import Seconds, values_of
from thoughtgate.core.calls import Result, ToolName
from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.errors import ConfigError, Malformed, UpstreamUnreachable
from thoughtgate.core.json import JsonObject
from thoughtgate.core.tools import Effect
from thoughtgate.select import index
from thoughtgate.surface.admin_values import DomainTools
from thoughtgate.views import Entry, View
from thoughtgate.wire.strict import parse

_NO_TOOLS = "no tools here; see the servers with: thoughtgate server list --check"
_WHY_WRITE = (
    "a tool counts as write until you say otherwise: thoughtgate tool set SERVER/TOOL --effect "
    "read; a server added with --trusted is believed what it says of its own tools"
)
_DOMAIN = click.option(
    "--domain", default=DEFAULT_DOMAIN, show_default=True, shell_complete=domain_names
)
_NAME = click.argument("name", shell_complete=tool_names)


@click.group(cls=Group)
def tool() -> None:
    """The tools of the registered servers."""


@tool.command(name="list")
@_DOMAIN
@click.option("--refresh", is_flag=True, help="Ask every server again.")
@click.option("--quarantined", is_flag=True, help="Show what is held back, and why.")
@json_flag
@click.pass_obj
def list_(
    chosen: Path | None, domain: str, refresh: bool, quarantined: bool, as_json: bool
) -> None:
    """List the tools of a domain with their cost in tokens."""
    found = desks.tools(chosen).listed(domain, refresh=refresh, say=note)
    held = [
        {"tool": f"{one.server}/{one.tool}", "rule": one.rule, "reason": one.reason}
        for one in found.held
    ]
    if quarantined:
        rules = table(("TOOL", "RULE", "REASON"), [tuple(h.values()) for h in held])
        show(held, rules if held else ["nothing is held back"], as_json=as_json)
        return
    rows = [
        {
            "name": entry.name,
            "server": entry.server,
            "effect": entry.effect.value,
            "description": entry.description,
        }
        for entry in found.tools
    ]
    cells = [(r["name"], r["effect"], _short(r["description"])) for r in rows]
    value = {"tools": rows, "tokens": found.tokens, "warnings": found.warnings, "quarantined": held}
    lines = table(("NAME", "EFFECT", "DESCRIPTION"), cells) if rows else [_NO_TOOLS]
    show(value, lines, as_json=as_json)
    if not as_json:
        for line in _remarks(found):
            note(line)


def _remarks(found: DomainTools) -> Iterator[str]:
    if found.tools:
        tools = count(len(found.tools), "tool")
        yield f"{tools}, about {found.tokens} tokens in a client's context"
    yield from (f"warning: {warning}" for warning in found.warnings)
    yield from (f"held back: {one.server}/{one.tool}: {one.reason}" for one in found.held)
    if any(one.effect is Effect.WRITE and not one.trusted for one in found.tools):
        yield _WHY_WRITE


def _short(text_: str) -> str:
    line = text_.strip().split("\n", 1)[0]
    return line if len(line) <= 72 else line[:71] + "…"


@tool.command(name="show")
@_NAME
@_DOMAIN
@json_flag
@click.pass_obj
def show_(chosen: Path | None, name: str, domain: str, as_json: bool) -> None:
    """Show one tool as clients see it."""
    entry = desks.tools(chosen).shown(domain, name, note)
    value = {
        "server": entry.server,
        "effect": entry.effect.value,
        "digest": entry.digest,
        "shown": entry.shown,
    }
    lines = [
        f"server: {entry.server}",
        f"effect: {entry.effect.value}",
        f"digest: {entry.digest}",
        *json.dumps(entry.shown, ensure_ascii=False, indent=2).split("\n"),
    ]
    show(value, map(clean, lines), as_json=as_json)


@tool.command()
@click.argument("words", nargs=-1, required=True)
@_DOMAIN
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@json_flag
@click.pass_obj
def search(
    chosen: Path | None, words: tuple[str, ...], domain: str, limit: int, as_json: bool
) -> None:
    """Find the tools that fit a task, best first."""
    rows = asyncio.run(_found(chosen, domain, " ".join(words), limit))
    cells = [(f"{r['score']:.2f}", r["name"], _short(r["description"])) for r in rows]
    lines = table(("SCORE", "NAME", "DESCRIPTION"), cells) if rows else ["no tool fits"]
    show(rows, lines, as_json=as_json)


async def _found(chosen: Path | None, domain: str, query: str, limit: int) -> list[dict[str, Any]]:
    async with opened(loaded_or_fail(chosen), os.environ) as app:
        view_of(app.gateway, domain)
        await app.ensure_listed(on_progress=note)
        return [
            {
                "name": entry.name,
                "score": score,
                "description": str(entry.shown.get("description") or ""),
            }
            for entry, score in _ranked(app.gateway.view(domain), query, limit)
        ]


def _ranked(view: View, query: str, limit: int) -> list[tuple[Entry, float]]:
    return [(one.entry, one.score) for one in index(view.entries).rank(query, limit)]


@tool.command()
@_NAME
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--args", "given", help="Arguments as a JSON object, or @FILE.")
@_DOMAIN
@click.option("--timeout", type=Seconds(), default=120.0, show_default=True)
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Save images, audio and resources of the answer as new files in this folder.",
)
@json_flag
@click.pass_context
def call(
    context: click.Context,
    /,
    name: str,
    pairs: tuple[str, ...],
    given: str | None,
    domain: str,
    **options: Any,
) -> None:
    """Call a tool; exit 1 when the tool says that it failed.

    Values of KEY=VALUE are JSON where they parse as JSON and the tool takes it, else text.
    """
    arguments, words = _arguments(given), _words(pairs)
    target = ToolName(domain=domain, name=name)
    result = asyncio.run(_called(context.obj, target, arguments, words, options["timeout"]))
    value = parse(result.raw)
    lines = list(result_lines(value, options["save"]))
    if result.is_error and not options["as_json"]:
        for line in lines:
            note(line)
    else:
        show(value, lines, as_json=options["as_json"])
    context.exit(Exit.FAILED if result.is_error else Exit.OK)


async def _called(
    chosen: Path | None,
    target: ToolName,
    given: JsonObject,
    words: Mapping[str, str],
    seconds: float,
) -> Result:
    async with opened(loaded_or_fail(chosen), os.environ) as app:
        view_of(app.gateway, target.domain)
        await app.ensure_shown(target.domain, target.name, on_progress=note)
        entry = app.gateway.view(target.domain).table.get(target.name)
        if entry is None:
            _check_reached(app, target.name)
        arguments = {**given, **values_of(words, entry.visible if entry else {})}
        return await interruptible(
            call_tool(app.gateway, target, arguments, seconds=seconds, say=note)
        )


def _check_reached(app: App, name: str) -> None:
    """Refuse a tool whose server never told what it has: nobody knows whether it is there."""
    for status in app.upstreams.statuses():
        silent = status.server in app.keeper.unlisted()
        if silent and name.startswith(advertised_name(status.server, "")):
            raise UpstreamUnreachable(
                message=f"server {status.server} cannot be reached: {status.reason}"
            )


def _arguments(given: str | None) -> JsonObject:
    if given is None:
        return {}
    value = _strict(_read(given[1:]) if given.startswith("@") else given.encode(), "--args")
    if not isinstance(value, dict):
        raise ConfigError(message="--args: must be a JSON object")
    return value


def _words(pairs: tuple[str, ...]) -> Mapping[str, str]:
    words: dict[str, str] = {}
    for pair in pairs:
        key, equals, word = pair.partition("=")
        if not equals:
            raise ConfigError(message=f"arguments are KEY=VALUE, got {pair[:80]}")
        words[key] = word
    return words


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(message=f"--args: {file}: cannot be read: {error.strerror}") from None


def _strict(data: bytes, where: str) -> Any:
    try:
        return parse(data)
    except Malformed as error:
        raise ConfigError(message=f"{where}: {error.message}") from None


@tool.command(name="set")
@click.argument("name", metavar="SERVER/TOOL", shell_complete=tool_paths)
@click.option(
    "--effect",
    required=True,
    type=click.Choice([*(e.value for e in Effect), "none"]),
    help="Effect class; none takes back what was said.",
)
@json_flag
@click.pass_obj
def set_(chosen: Path | None, name: str, effect: str, as_json: bool) -> None:
    """Say what a tool does to the world; unknown is a write."""
    server, _, own = name.partition("/")
    if not server or not own:
        raise ConfigError(message="name the tool as SERVER/TOOL, by the server's own tool name")
    said = desks.tools(chosen).say_effect(server, own, None if effect == "none" else Effect(effect))
    value = {
        "tool": name,
        "effect": None if effect == "none" else effect,
        "warnings": list(said.warnings),
    }
    lines = [f"{name}: {effect}", *(f"warning: {warning}" for warning in said.warnings)]
    changed(value, lines, as_json=as_json)
