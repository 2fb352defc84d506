"""`thoughtgate config`: check, show and describe the configuration.

Never changes a file.
"""

import json
from pathlib import Path
from typing import Any

import click
import msgspec

from thoughtgate.app.masks import MASK, shown_command, shown_url
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import clean, count, json_flag, show
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.config.files import Loaded
from thoughtgate.config.settings import json_schema
from thoughtgate.telemetry.redact import is_secret_name, redact


@click.group(cls=Group)
def config() -> None:
    """Check, show and describe the configuration."""


@config.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@json_flag
@click.pass_obj
def check(chosen: Path | None, file: Path | None, as_json: bool) -> None:
    """Check a configuration file; exit 0 only if it can be used."""
    loaded = loaded_or_fail(file or chosen)
    found = loaded.settings
    where = str(loaded.file) if loaded.file else "defaults (no configuration file)"
    counts = {
        "servers": len(found.servers),
        "domains": len(found.domains),
        "models": len(found.models),
    }
    said = ", ".join(count(number, noun[:-1]) for noun, number in counts.items())
    show({"ok": True, "file": where, **counts}, [f"{clean(where)}: ok ({said})"], as_json=as_json)


@config.command(name="show")
@json_flag
@click.pass_obj
def show_(chosen: Path | None, as_json: bool) -> None:
    """Show the configuration in force, secrets hidden and variables by name."""
    loaded = loaded_or_fail(chosen)
    value = _without_secrets(loaded)
    lines = [
        f"file: {loaded.file or 'none'}",
        f"state: {loaded.home}",
        *_flat(value["settings"], ""),
    ]
    show(value, map(clean, lines), as_json=as_json)


@config.command(name="schema")
def schema_() -> None:
    """Print the JSON Schema of a configuration file."""
    show(json_schema(), [], as_json=True)


def _without_secrets(loaded: Loaded) -> dict[str, Any]:
    settings = msgspec.to_builtins(loaded.written)
    for server in settings["servers"].values():
        server["command"] = shown_command(server["command"])
        server["url"] = shown_url(server["url"])
        for field in ("env", "headers"):
            server[field] = dict.fromkeys(server[field], MASK)
    for domain in settings["domains"].values():
        for dress in domain["tools"].values():
            dress["fixed"] = _masked(dress["fixed"])
    for model in settings["models"].values():
        model["url"] = shown_url(model["url"])
        if model["api_key"]:
            model["api_key"] = MASK
    return {"file": loaded.file, "state": loaded.home, "settings": settings}


def _masked(value: Any, name: str = "") -> Any:
    """Return a fixed value without what its name or its look says is a secret."""
    if is_secret_name(name) and value is not None:
        return MASK
    if isinstance(value, dict):
        return {key: _masked(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return redact(value) if isinstance(value, str) else value


def _flat(value: Any, path: str) -> list[str]:
    if isinstance(value, dict) and value:
        return [
            line
            for key, item in value.items()
            for line in _flat(item, f"{path}.{key}" if path else key)
        ]
    return [f"{path} = {json.dumps(value, ensure_ascii=False)}"]
