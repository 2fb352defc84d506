"""`thoughtgate domain`: named views of the tools.

Never changes a domain that comes from the configuration file.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from thoughtgate.app.entries import all_domains, refuse_configured
from thoughtgate.app.masks import MASK
from thoughtgate.app.offline import offline_catalog, offline_view
from thoughtgate.cli.output import json_flag, note, one_line, said, show, table
from thoughtgate.cli.settings import loaded_or_fail, opened_registry
from thoughtgate.cli.words import json_or_text
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import ConfigError
from thoughtgate.telemetry.redact import is_secret_name
from thoughtgate.views import Entry

_NOTHING = {"include": "all tools", "max_tools": "no limit", "max_tokens": "no limit"}
_NAME = re.compile(r"[A-Za-z0-9_-]{0,60}")


@click.group()
def domain() -> None:
    """Named views of the tools, one endpoint each."""


@domain.command(name="list")
@json_flag
@click.pass_obj
def list_(chosen: Path | None, as_json: bool) -> None:
    """List the domains with the size of what a client sees."""
    loaded = loaded_or_fail(chosen)
    rows: list[dict[str, Any]] = []
    with opened_registry(loaded) as store:
        catalog = offline_catalog(loaded, store)
        for entry in all_domains(loaded, store):
            view = offline_view(catalog, entry)
            rows.append({
                "name": entry.name,
                "endpoint": _endpoint(entry.name),
                "tools": len(view.entries),
                "tokens": view.tokens,
                "engine": entry.engine,
                "revision": entry.revision,
                "source": entry.source,
            })
    head = ("NAME", "ENDPOINT", "TOOLS", "TOKENS", "ENGINE", "REVISION", "FROM")
    show(rows, table(head, [tuple(str(v) for v in r.values()) for r in rows]), as_json=as_json)


def _endpoint(name: str) -> str:
    return "/mcp" if name == "default" else f"/mcp/{name}"


@domain.command(name="show")
@click.argument("name")
@json_flag
@click.pass_obj
def show_(chosen: Path | None, name: str, as_json: bool) -> None:
    """Show one domain: its rules, the tools it holds and their cost in tokens."""
    loaded = loaded_or_fail(chosen)
    with opened_registry(loaded) as store:
        found = {entry.name: entry for entry in all_domains(loaded, store)}
        if name not in found:
            raise ConfigError(message=f"no domain is named {name}; see: thoughtgate domain list")
        entry = found[name]
        view = offline_view(offline_catalog(loaded, store), entry)
    value = {
        "name": entry.name,
        "endpoint": _endpoint(entry.name),
        "include": list(entry.include),
        "exclude": list(entry.exclude),
        "instructions": entry.instructions,
        "engine": entry.engine,
        "max_tools": entry.max_tools,
        "max_tokens": entry.max_tokens,
        "limits": entry.limits,
        "prefixed": entry.prefixed,
        "revision": entry.revision,
        "source": entry.source,
        "tokens": view.tokens,
        "warnings": list(view.warnings),
        "tools": [_tool(e, entry) for e in view.entries],
    }
    show(value, map(one_line, _lines(value)), as_json=as_json)


def _tool(entry: Entry, domain: Domain) -> dict[str, Any]:
    own = (entry.tool.server, entry.tool.name)
    dress = domain.dress.get("/".join(own), ToolDress())
    return {
        "name": entry.name,
        "server": own[0],
        "tool": own[1],
        "renamed": bool(dress.rename) and entry.name == dress.rename,
        "description": dress.description,
        "fixed": {
            name: MASK if is_secret_name(name) else value for name, value in dress.fixed.items()
        },
    }


def _lines(value: dict[str, Any]) -> Iterator[str]:
    for key, shown in value.items():
        if key not in {"warnings", "tools"}:
            yield f"{key}: {said(shown, nothing=_NOTHING.get(key, 'none'))}"
    for warning in value["warnings"]:
        yield f"warning: {warning}"
    if not value["tools"]:
        yield "it shows no tools"
    for tool in value["tools"]:
        renamed = ", renamed" if tool["renamed"] else ""
        yield f"  {tool['name']}  ({tool['server']}/{tool['tool']}{renamed})"
        if tool["description"] is not None:
            yield f"    description: {tool['description']}"
        for name, fixed in tool["fixed"].items():
            yield f"    fixed: {name} = {json.dumps(fixed, ensure_ascii=False)}"


@domain.command(name="set")
@click.argument("name")
@click.option("--include", multiple=True, help="Glob over server/tool, or tag:WORD.")
@click.option("--exclude", multiple=True, help="What to leave out again.")
@click.option("--instructions", help="Text for the client's model.")
@click.option("--engine", type=click.Choice(["react", "none"]), help="Engine offered as `reason`.")
@click.option("--max-tools", type=click.IntRange(1), help="Budget of tools for selection.")
@click.option("--max-tokens", type=click.IntRange(1), help="Budget of tokens for selection.")
@click.option(
    "--limits", type=click.Choice(["mcp", "anthropic", "openai", "openai-strict", "gemini"])
)
@click.option("--prefixed/--own-names", default=None, help="Show server__tool, or own names.")
@click.option("--rename", "renames", multiple=True, metavar="SERVER/TOOL=NAME")
@click.option("--describe", "texts", multiple=True, metavar="SERVER/TOOL=TEXT")
@click.option(
    "--fix",
    "fixed",
    multiple=True,
    metavar="SERVER/TOOL:ARGUMENT=VALUE",
    help="Argument with a fixed value, hidden from clients. What is not JSON is taken as text.",
)
@click.option(
    "--clear",
    multiple=True,
    type=click.Choice(["include", "exclude", "looks", "max-tools", "max-tokens"]),
    help="Empty a list, all looks of tools, or a budget, before the rest is set.",
)
@click.pass_obj
def set_(chosen: Path | None, /, name: str, **given: Any) -> None:
    """Make or change a domain; what is not given stays as it is."""
    loaded = loaded_or_fail(chosen)
    refuse_configured(loaded, "domain", name)
    with opened_registry(loaded) as store:
        known = {entry.name: entry for entry in all_domains(loaded, store)}
        changed = _changed(known.get(name, Domain(name=name)), given)
        stored = store.put_domain(changed)
        view = offline_view(offline_catalog(loaded, store), stored)
    note(f"domain {name} is now at revision {stored.revision}")
    for warning in view.warnings:
        note(f"warning: {warning}")


_CLEARED: dict[str, dict[str, Any]] = {
    "include": {"include": ()},
    "exclude": {"exclude": ()},
    "looks": {"dress": {}},
    "max-tools": {"max_tools": None},
    "max-tokens": {"max_tokens": None},
}


def _changed(entry: Domain, given: dict[str, Any]) -> Domain:
    for what in given["clear"]:
        entry = replace(entry, **_CLEARED[what])
    plain = ("instructions", "max_tools", "max_tokens", "limits", "prefixed")
    new: dict[str, Any] = {key: given[key] for key in plain if given[key] is not None}
    for key in ("include", "exclude"):
        if given[key]:
            new[key] = given[key]
    if given["engine"] is not None:
        new["engine"] = "" if given["engine"] == "none" else given["engine"]
    dress = dict(entry.dress)
    for key, word in _pairs(given["renames"], "--rename"):
        if not _NAME.fullmatch(word):
            raise ConfigError(message="--rename: names are of A-Z a-z 0-9 _ -, at most 60")
        dress[key] = replace(dress.get(key, ToolDress()), rename=word)
    for key, word in _pairs(given["texts"], "--describe"):
        dress[key] = replace(dress.get(key, ToolDress()), description=word)
    for key, word in _pairs(given["fixed"], "--fix"):
        tool, _, argument = key.rpartition(":")
        old = dress.get(tool, ToolDress())
        dress[tool] = replace(old, fixed={**old.fixed, argument: json_or_text(word)})
    return replace(entry, dress=dress, source="registry", **new)


def _pairs(texts: tuple[str, ...], option: str) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in texts]
    for key, equals, _ in pairs:
        if not equals or "/" not in key or (option == "--fix" and ":" not in key):
            raise ConfigError(message=f"{option}: takes SERVER/TOOL… = …, got {key[:80]}")
    return [(key, word) for key, _, word in pairs]


@domain.command()
@click.argument("name")
@click.pass_obj
def rm(chosen: Path | None, name: str) -> None:
    """Remove a domain from the registry; its history stays."""
    loaded = loaded_or_fail(chosen)
    refuse_configured(loaded, "domain", name)
    with opened_registry(loaded) as store:
        store.remove_domain(name)
    note(f"domain {name} removed")
