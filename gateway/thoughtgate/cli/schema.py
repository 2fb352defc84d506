"""`thoughtgate schema`: may a schema be registered, and does an instance fit it?

Never fetches a reference.
"""

from pathlib import Path

import click

from thoughtgate.cli.exits import Exit
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import clean, json_flag, show
from thoughtgate.core.errors import ConfigError, Malformed, SchemaRejected
from thoughtgate.core.json import JsonObject, JsonValue, digest
from thoughtgate.schema.checks import compiled
from thoughtgate.schema.registration import admit
from thoughtgate.wire.strict import parse

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=Group)
def schema() -> None:
    """JSON Schema, as the gateway sees it."""


@schema.command()
@click.argument("schema_file", metavar="SCHEMA.json", type=_FILE)
@click.argument("instance_file", metavar="[INSTANCE.json]", required=False, type=_FILE)
@json_flag
@click.pass_context
def check(
    context: click.Context, schema_file: Path, instance_file: Path | None, as_json: bool
) -> None:
    """Check a schema for registration and, when given, an instance against it.

    Exit 0 only if the schema may be registered and the instance is valid.
    """
    given = _read(schema_file)
    refused = _refusal(given)
    value: dict[str, object] = {"registered": refused is None}
    lines = [f"schema: {'may be registered' if refused is None else 'refused'}"]
    if refused is not None:
        value["reason"] = {
            "rule": refused.rule,
            "pointer": refused.pointer,
            "says": refused.message,
        }
        lines.append(f"  {refused.rule} at {refused.pointer or 'the root'}: {refused.message}")
    well = refused is None
    if instance_file is not None:
        verdict, said = _verdict(given, instance_file, usable=refused is None)
        value.update(verdict)
        lines += said
        well = well and verdict["valid"] is True
    show(value, map(clean, lines), as_json=as_json)
    context.exit(Exit.OK if well else Exit.FAILED)


def _refusal(given: JsonValue) -> SchemaRejected | None:
    try:
        admit(given)
    except SchemaRejected as refused:
        return refused
    return None


def _verdict(
    given: JsonValue, instance_file: Path, *, usable: bool
) -> tuple[dict[str, object], list[str]]:
    try:
        instance = _parsed(instance_file)
    except Malformed as error:
        reason = f"not acceptable JSON: {error.message}"
        return {"valid": False, "malformed": error.message}, [f"instance: {reason}"]
    if not usable:
        return {"valid": None}, ["instance: not checked, since the schema is refused"]
    check = compiled(digest(given), given)
    problems: list[JsonObject] = [problem.as_json() for problem in check.problems(instance)]
    valid = check.is_valid(instance)
    lines = [f"instance: {'valid' if valid else 'invalid'}"]
    for problem in problems:
        hint = f" ({problem['hint']})" if "hint" in problem else ""
        got = problem["got"]
        lines.append(
            f"  {problem['pointer'] or 'the root'}: expected {problem['expected']}, "
            f"got {got['type']} {got['preview']}".rstrip()
            + hint
        )
    return {"valid": valid, "problems": problems}, lines


def _read(file: Path) -> JsonValue:
    try:
        return _parsed(file)
    except Malformed as error:
        raise ConfigError(message=f"{file}: not acceptable JSON: {error.message}") from None


def _parsed(file: Path) -> JsonValue:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(message=f"{file}: cannot be read: {error.strerror}") from None
    return parse(data)
