"""`thoughtgate model`: the language models that runs may use.

Never takes a key as an argument, where other users and the shell's history would see it.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from thoughtgate.app.model_entries import (
    listed,
    refuse_configured,
    register,
    settings_with_models,
)
from thoughtgate.app.model_probe import probed, probing
from thoughtgate.app.models import chosen_model
from thoughtgate.app.stores import opened_registry
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import changed, json_flag, note, one_line, said, show, table
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.cli.words import Seconds
from thoughtgate.config.settings import ModelSettings
from thoughtgate.core.errors import ConfigError, ModelError
from thoughtgate.core.json import JsonObject

_SHOWN = ("name", "model", "api", "url", "key", "source", "default")
_HEADS = {"source": "FROM"}
_MAX_KEY = 10_000
_NONE = "no models yet; add one with: thoughtgate model add NAME --url URL --model MODEL"


@click.group(cls=Group)
def model() -> None:
    """Language models for tasks without a plan."""


@model.command(
    epilog="\b\n"
    "thoughtgate model add local --url http://127.0.0.1:11434/v1 --model qwen3\n"
    "thoughtgate model add big --api anthropic --url https://api.anthropic.com/v1 \\\n"
    "    --model NAME --key-env ANTHROPIC_API_KEY --price input=3 --price output=15"
)
@click.argument("name")
@click.option("--url", required=True, help="Base URL; it often ends in /v1.")
@click.option("--model", "of", required=True, help="Name that the endpoint knows.")
@click.option("--api", type=click.Choice(["openai", "anthropic"]), default="openai")
@click.option("--key-env", metavar="NAME", help="Environment variable that holds the key now.")
@click.option("--key-file", metavar="FILE", help="File with the key; `-` is standard input.")
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="KIND=PRICE",
    help="What a million tokens cost: input, output or cached.",
)
@click.option("--timeout", type=Seconds(), default=120.0, help="Seconds for one reply.")
@click.option("--stream", is_flag=True, help="Have replies sent in pieces.")
@click.option("--omit", multiple=True, metavar="FIELD", help="Field that the endpoint refuses.")
@click.option("--text-tools", is_flag=True, help="Send tools as text, not in the API's own form.")
@click.option("--default", "default", is_flag=True, help="Use it where no model is named.")
@click.option("--replace", is_flag=True, help="Change a model that is registered already.")
@json_flag
@click.pass_obj
def add(chosen: Path | None, /, name: str, replace: bool, as_json: bool, **given: Any) -> None:
    """Register a model; its key is stored encrypted."""
    loaded = loaded_or_fail(chosen)
    settings = _settings(given)
    with opened_registry(loaded) as store:
        names = {one.name for one in store.models_without_keys()}
        if name in names and not replace:
            raise ConfigError(message=f"model {name} is registered already; add --replace")
        register(loaded, store, (name, settings), default=given["default"])
    lines = [f"model {name} registered; ask it something with: thoughtgate model test {name}"]
    changed({"model": name, "registered": True}, lines, as_json=as_json)


@model.command(name="list")
@json_flag
@click.pass_obj
def list_(chosen: Path | None, as_json: bool) -> None:
    """List the models; none is asked anything."""
    loaded = loaded_or_fail(chosen)
    with opened_registry(loaded) as store:
        rows = listed(loaded, store)
    head = tuple(_HEADS.get(key, key.upper()) for key in _SHOWN)
    cells = [tuple(said(row[key], nothing="") for key in _SHOWN) for row in rows]
    show(rows, table(head, cells) if rows else [_NONE], as_json=as_json)


@model.command()
@click.argument("name", default="")
@click.option("--features", is_flag=True, help="Ask three more: tools, JSON by schema, streams.")
@json_flag
@click.pass_context
def test(context: click.Context, name: str, features: bool, as_json: bool) -> None:
    """Ask a model one tiny question: say what came and in how long.

    Without NAME the default one is asked. Exit 1 when it does not answer.
    """
    loaded = loaded_or_fail(context.obj)
    with opened_registry(loaded) as store:
        settings = settings_with_models(loaded, store)
    found = chosen_model(settings, name)
    if not found:
        raise ConfigError(message="no model is the default one; name one: thoughtgate model list")
    try:
        told = asyncio.run(_probe(settings.models[found], features=features))
    except ModelError as error:
        told = {"ok": False, "reason": error.message}
        note(error.message)
    value = {"name": found, **told}
    lines = (one_line(f"{key}: {_told(shown)}") for key, shown in value.items())
    show(value, lines if told["ok"] else [], as_json=as_json)
    context.exit(Exit.OK if told["ok"] else Exit.FAILED)


@model.command()
@click.argument("name")
@json_flag
@click.pass_obj
def rm(chosen: Path | None, name: str, as_json: bool) -> None:
    """Remove a model and its key from the registry."""
    loaded = loaded_or_fail(chosen)
    refuse_configured(loaded, name)
    with opened_registry(loaded) as store:
        store.remove_model(name)
    changed({"model": name, "removed": True}, [f"model {name} removed"], as_json=as_json)


async def _probe(settings: ModelSettings, *, features: bool) -> JsonObject:
    async with probing() as client:
        return {"ok": True, **await probed(settings, client, features=features)}


def _told(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {said(one)}" for key, one in value.items())
    return "unknown" if value is None else said(value)


def _settings(given: Mapping[str, Any]) -> ModelSettings:
    value = {
        "url": given["url"],
        "model": given["of"],
        "api": given["api"],
        "api_key": _key(given["key_env"], given["key_file"]),
        "prices": _prices(given["prices"]),
        "timeout": given["timeout"],
        "stream": given["stream"],
        "omit": given["omit"],
        "native_tools": not given["text_tools"],
    }
    try:
        return msgspec.convert(value, ModelSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(message=f"the model cannot be used so: {error}") from None


def _key(variable: str | None, file: str | None) -> str:
    """Return the key, empty for none.

    Raises:
        ConfigError: It is not where it should be.
    """
    if variable and file:
        raise click.UsageError(message="give --key-env or --key-file, not both")
    if variable:
        if not os.environ.get(variable):
            raise ConfigError(message=f"the variable {variable[:60]} is not set")
        return os.environ[variable].strip()
    if not file:
        return ""
    try:
        text = sys.stdin.read(_MAX_KEY) if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(message=f"{file}: cannot be read: {type(error).__name__}") from None
    if not text.strip() or len(text) >= _MAX_KEY or "\n" in text.strip():
        raise ConfigError(message="the key must be one line of text")
    return text.strip()


def _prices(words: tuple[str, ...]) -> dict[str, float]:
    prices = {}
    for word in words:
        kind, _, price = word.partition("=")
        try:
            prices[kind] = float(price)
        except ValueError:
            raise click.UsageError(message="--price takes KIND=PRICE, such as input=3") from None
    return prices
