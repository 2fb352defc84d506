"""`thoughtgate server import`: the servers of another client's settings, all of them or none.

Never shows the value of a variable or a header.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from thoughtgate.app.masks import secret_names, shown_transport
from thoughtgate.cli.importing import Change, ImportOrder, imported, plain
from thoughtgate.cli.output import json_flag, note, show, table
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.config.imports.formats import AUTO, FORMATS
from thoughtgate.config.imports.reading import Import


@click.command(
    name="import",
    epilog="\b\n"
    "thoughtgate server import ~/.cursor/mcp.json --dry-run\n"
    "thoughtgate server import .vscode/mcp.json --input token=…\n"
    "thoughtgate server import ~/.codex/config.toml --only github --replace",
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format", "format_name", type=click.Choice([AUTO, *FORMATS]), default=AUTO,
    help="Whose file it is; seen by itself as a rule.",
)  # fmt: skip
@click.option("--only", multiple=True, metavar="NAME", help="Import this server; may be repeated.")
@click.option(
    "--input", "inputs", multiple=True, metavar="ID=VALUE", help="Value of ${input:ID}, not asked."
)
@click.option(
    "--workspace", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="What ${workspaceFolder} is; else the project that FILE belongs to.",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="Change servers that are registered already.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@json_flag
@click.pass_context
def import_(context: click.Context, /, file: Path, as_json: bool, **given: Any) -> None:
    """Register the servers of another client's FILE: all of them, or none and why.

    Reads what Claude, Cursor, Windsurf, VS Code, Zed and Codex keep (JSON with comments, TOML);
    `-` reads standard input. Variables are filled in now; values of variables and headers are
    stored encrypted.
    """
    order = ImportOrder(
        file=file,
        format_name=given["format_name"],
        only=given["only"],
        answers=_answers(given["inputs"]),
        workspace=given["workspace"],
        replace=given["replace"],
        dry_run=given["dry_run"],
    )
    found, changes = imported(loaded_or_fail(context.obj), order)
    _tell(order, found, changes, as_json=as_json)


def _answers(words: tuple[str, ...]) -> dict[str, str]:
    answers = {}
    for word in words:
        id_, equals, value = word.partition("=")
        if not equals or not id_:
            raise click.UsageError(message="--input takes ID=VALUE")
        answers[id_] = value
    return answers


def _tell(order: ImportOrder, found: Import, changes: Sequence[Change], *, as_json: bool) -> None:
    rows = [_row(change) for change in changes]
    value = {
        "file": str(order.file),
        "dry_run": order.dry_run,
        "servers": rows,
        "notes": [plain(remark) for remark in found.notes],
        "inputs": [one.id for one in found.wanted],
    }
    head = ("NAME", "STATE", "TRANSPORT", "SECRETS", "WOULD BE" if order.dry_run else "DONE")
    cells = [
        (
            str(row["name"]),
            str(row["state"]),
            str(row["transport"]),
            ", ".join(secret_names(change.server.transport)),
            change.done,
        )
        for row, change in zip(rows, changes, strict=True)
    ]
    show(value, table(head, cells) if rows else ["no servers to import"], as_json=as_json)
    for remark in () if as_json else found.notes:
        note(f"note: {remark}")
    for one in found.wanted if order.dry_run else ():
        note(f"note: {one.id}: a value will be asked for: {one.description}")
    if changes and not order.dry_run:
        note("see whether they answer with: thoughtgate server list --check")


def _row(change: Change) -> dict[str, object]:
    return {
        "name": change.server.name,
        "was": change.entry.was,
        "state": "enabled" if change.server.enabled else "disabled",
        "transport": shown_transport(change.server.transport),
        "secrets": list(secret_names(change.server.transport)),
        "done": change.done,
    }
