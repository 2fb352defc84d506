"""`thoughtgate registry`: copies of the database.

Never overwrites a file and never deletes the present database.
"""

from pathlib import Path

import click

from thoughtgate.app.stores import registry_file
from thoughtgate.cli import desks
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import changed, json_flag
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.registry.backups import restore as restored

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=Group)
def registry() -> None:
    """The database of servers, tools, domains and audit rows."""


@registry.command()
@click.argument("target", type=_FILE)
@json_flag
@click.pass_obj
def backup(chosen: Path | None, target: Path, as_json: bool) -> None:
    """Write a consistent copy, also while gateways run.

    With --server, TARGET is a name in the folder `backups` of the gateway's state folder.
    """
    copy = desks.records(chosen).copied(target)
    changed({"copy": str(copy)}, [f"registry copied to {copy}"], as_json=as_json)


@registry.command()
@click.argument("source", type=_FILE)
@json_flag
@click.pass_obj
def restore(chosen: Path | None, source: Path, as_json: bool) -> None:
    """Put a copy in place of the database; the present one is kept beside it."""
    kept = restored(registry_file(loaded_or_fail(chosen)), source)
    said = f"registry restored from {source}" + (f"; the former one is {kept}" if kept else "")
    value = {"restored": str(source), "kept": str(kept) if kept else None}
    changed(value, [said], as_json=as_json)
