"""`thoughtgate run`: hand a task to a reasoning engine.

Never shows anything on stdout but the report; the Thoughts, Actions and Observations go to stderr.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from thoughtgate.app.compose import App, opened
from thoughtgate.app.models import model_named
from thoughtgate.app.reasoning import limits_of
from thoughtgate.app.requests import view_of
from thoughtgate.cli.completing import domain_names
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import clean, json_flag, note, show
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.cli.signals import interruptible
from thoughtgate.cli.words import json_or_text
from thoughtgate.config.files import Loaded
from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.errors import ConfigError, Malformed
from thoughtgate.core.json import JsonObject
from thoughtgate.engines.contract import Limits
from thoughtgate.engines.plan import Plan, plan_from_json, plan_from_toml
from thoughtgate.engines.plan_lint import unknown_inputs
from thoughtgate.runs.orders import RunOrder, RunReport, StepEvent
from thoughtgate.runs.reason_tool import progress_message
from thoughtgate.wire.strict import parse


@click.group(cls=Group)
def run() -> None:
    """Hand tasks to a reasoning engine."""


@run.command()
@click.argument("task")
@click.option("--domain", default=DEFAULT_DOMAIN, show_default=True, shell_complete=domain_names)
@click.option("--plan", type=click.Path(dir_okay=False, path_type=Path), help="TOML or JSON file.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=JSON", help="Input of the plan.")
@click.option("--model", default="", help="Configured model; the default one when not given.")
@click.option("--max-steps", type=click.IntRange(1, 12), default=12, show_default=True)
@click.option("--max-retries", type=click.IntRange(0, 3), default=3, show_default=True)
@json_flag
@click.pass_context
def start(context: click.Context, /, task: str, **given: Any) -> None:
    """Run TASK in a domain, with a given plan or one that a model makes.

    Exit 0 when the run is complete, 1 when its result is partial.
    """
    loaded = loaded_or_fail(context.obj)
    report = asyncio.run(_run(loaded, task, given))
    lines = [report.answer] if report.answer else []
    if report.partial:
        note(f"partial: {report.stop_reason.value}{': ' if report.detail else ''}{report.detail}")
    show(
        report.as_json(),
        [clean(line) for text in lines for line in text.split("\n")],
        as_json=given["as_json"],
    )
    context.exit(Exit.FAILED if report.partial else Exit.OK)


async def _run(loaded: Loaded, task: str, given: dict[str, Any]) -> RunReport:
    plan = _plan(given["plan"]) if given["plan"] else None
    inputs = _inputs(given["inputs"])
    if plan is not None and (unknown := unknown_inputs(plan, inputs)):
        raise ConfigError(message=f"--input: the plan knows no input {', '.join(unknown)[:200]}")
    async with opened(loaded, os.environ) as app:
        view_of(app.gateway, given["domain"])
        await app.ensure_listed(on_progress=note)
        order = replace(_order(app, task, plan, given), inputs=inputs)
        return await interruptible(app.reasoning.runner.run(order, _observer(note)))


def _order(app: App, task: str, plan: Plan | None, given: dict[str, Any]) -> RunOrder:
    settings = app.reasoning.settings
    model = model_named(settings, given["model"], app.client)
    if plan is None and model is None:
        raise ConfigError(
            message="a run needs a plan or a model: give --plan FILE, or register one with: "
            "thoughtgate model add"
        )
    native = limits_of(settings, given["model"]).native_tools
    return RunOrder(
        goal=task,
        domain=given["domain"],
        plan=plan,
        model=model,
        limits=Limits(
            max_steps=given["max_steps"], max_retries=given["max_retries"], native_tools=native
        ),
        budget=app.reasoning.budget,
    )


def _observer(say: Callable[[str], None]) -> Callable[[StepEvent], None]:
    def observe(event: StepEvent) -> None:
        line = progress_message(event)
        if line:
            say(line)

    return observe


def _plan(file: Path) -> Plan:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(message=f"{file}: cannot be read: {error}") from None
    if file.suffix != ".json":
        return plan_from_toml(text)
    try:
        return plan_from_json(parse(text.encode()))
    except Malformed as error:
        raise ConfigError(message=f"{file}: {error.message}") from None


def _inputs(texts: tuple[str, ...]) -> JsonObject:
    inputs: dict[str, Any] = {}
    for text in texts:
        name, equals, said = text.partition("=")
        if not equals:
            raise ConfigError(message=f"--input takes NAME=JSON, got {text[:80]}")
        inputs[name] = json_or_text(said)
    return inputs
