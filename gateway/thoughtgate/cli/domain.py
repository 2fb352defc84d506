"""`thoughtgate domain`: named views of the tools.

Never changes a domain that comes from the configuration file.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins
from msgspec.structs import replace

from thoughtgate.cli import desks
from thoughtgate.cli.completing import domain_names
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import changed, json_flag, one_line, said, show, table
from thoughtgate.cli.words import json_or_text
from thoughtgate.core.errors import ConfigError
from thoughtgate.schema.limits import Profile
from thoughtgate.surface.admin_values import DomainPut, DomainTool, Dress

_NOTHING = {"include": "all tools", "max_tools": "no limit", "max_tokens": "no limit"}
_NAME = re.compile(r"[A-Za-z0-9_-]{0,60}")


_NAMED = click.argument("name", shell_complete=domain_names)


@click.group(cls=Group)
def domain() -> None:
    """Named views of the tools, one endpoint each."""


@domain.command(name="list")
@json_flag
@click.pass_obj
def list_(chosen: Path | None, as_json: bool) -> None:
    """List the domains with the size of what a client sees."""
    rows = [
        {
            "name": entry.name,
            "endpoint": entry.endpoint,
            "tools": entry.tools,
            "tokens": entry.tokens,
            "engine": entry.rules.engine,
            "revision": entry.revision,
            "source": entry.source,
        }
        for entry in desks.domains(chosen).listed()
    ]
    head = ("NAME", "ENDPOINT", "TOOLS", "TOKENS", "ENGINE", "REVISION", "FROM")
    show(rows, table(head, [tuple(str(v) for v in r.values()) for r in rows]), as_json=as_json)


@domain.command(name="show")
@_NAMED
@json_flag
@click.pass_obj
def show_(chosen: Path | None, name: str, as_json: bool) -> None:
    """Show one domain: its rules, the tools it holds and their cost in tokens."""
    entry, tools = desks.domains(chosen).shown(name)
    rules = entry.rules
    value = {
        "name": entry.name,
        "endpoint": entry.endpoint,
        "include": list(rules.include),
        "exclude": list(rules.exclude),
        "instructions": rules.instructions,
        "engine": rules.engine,
        "max_tools": rules.max_tools,
        "max_tokens": rules.max_tokens,
        "limits": rules.limits.value,
        "prefixed": rules.prefixed,
        "revision": entry.revision,
        "source": entry.source,
        "tokens": entry.tokens,
        "warnings": list(entry.warnings),
        "tools": [_tool(one, rules) for one in tools],
    }
    show(value, map(one_line, _lines(value)), as_json=as_json)


def _tool(entry: DomainTool, rules: DomainPut) -> dict[str, Any]:
    dress = rules.dress.get(f"{entry.server}/{entry.tool}", Dress())
    return {
        "name": entry.name,
        "server": entry.server,
        "tool": entry.tool,
        "renamed": bool(dress.rename) and entry.name == dress.rename,
        "description": dress.description,
        "fixed": dress.fixed,
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
@_NAMED
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
@json_flag
@click.pass_obj
def set_(chosen: Path | None, /, name: str, as_json: bool, **given: Any) -> None:
    """Make or change a domain; what is not given stays as it is."""
    stored = desks.domains(chosen).change(name, lambda rules: _changed(rules, given))
    value = {
        "domain": name,
        "revision": stored.revision,
        "rules": to_builtins(stored.rules),
        "warnings": list(stored.warnings),
    }
    said = [f"domain {name} is now at revision {stored.revision}"]
    said += [f"warning: {warning}" for warning in stored.warnings]
    changed(value, said, as_json=as_json)


_CLEARED: dict[str, dict[str, Any]] = {
    "include": {"include": ()},
    "exclude": {"exclude": ()},
    "looks": {"dress": {}},
    "max-tools": {"max_tools": None},
    "max-tokens": {"max_tokens": None},
}


def _changed(entry: DomainPut, given: dict[str, Any]) -> DomainPut:
    for what in given["clear"]:
        entry = replace(entry, **_CLEARED[what])
    plain = ("instructions", "max_tools", "max_tokens", "prefixed")
    new: dict[str, Any] = {key: given[key] for key in plain if given[key] is not None}
    if given["limits"] is not None:
        new["limits"] = Profile(given["limits"])
    for key in ("include", "exclude"):
        if given[key]:
            new[key] = given[key]
    if given["engine"] is not None:
        new["engine"] = "" if given["engine"] == "none" else given["engine"]
    dress = dict(entry.dress)
    for key, word in _pairs(given["renames"], "--rename"):
        if not _NAME.fullmatch(word):
            raise ConfigError(message="--rename: names are of A-Z a-z 0-9 _ -, at most 60")
        dress[key] = replace(dress.get(key, Dress()), rename=word)
    for key, word in _pairs(given["texts"], "--describe"):
        dress[key] = replace(dress.get(key, Dress()), description=word)
    for key, word in _pairs(given["fixed"], "--fix"):
        tool, _, argument = key.rpartition(":")
        old = dress.get(tool, Dress())
        dress[tool] = replace(old, fixed={**old.fixed, argument: json_or_text(word)})
    return replace(entry, dress=dress, **new)


_FORMS = {
    "--rename": "SERVER/TOOL=NAME",
    "--describe": "SERVER/TOOL=TEXT",
    "--fix": "SERVER/TOOL:ARGUMENT=VALUE",
}


def _pairs(texts: tuple[str, ...], option: str) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in texts]
    for key, equals, _ in pairs:
        if not equals or "/" not in key or (option == "--fix" and ":" not in key):
            raise ConfigError(message=f"{option} takes {_FORMS[option]}, got {key[:80]}")
    return [(key, word) for key, _, word in pairs]


@domain.command()
@_NAMED
@json_flag
@click.pass_obj
def rm(chosen: Path | None, name: str, as_json: bool) -> None:
    """Remove a domain from the registry; its history stays."""
    desks.domains(chosen).remove(name)
    changed({"domain": name, "removed": True}, [f"domain {name} removed"], as_json=as_json)
