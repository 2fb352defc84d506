"""`thoughtgate server import`: the servers of another client's settings, all of them or none.

Never changes the file that it reads, and never stores a variable: values are filled in once, now.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from thoughtgate.app.masks import secret_names, shown_transport
from thoughtgate.app.stores import opened_registry
from thoughtgate.cli.output import count, json_flag, note, show, table
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.config.files import Loaded
from thoughtgate.config.imports.folders import Folders, folders_of
from thoughtgate.config.imports.formats import AUTO, FORMATS, Document, read_document
from thoughtgate.config.imports.inputs import Input
from thoughtgate.config.imports.places import Remark
from thoughtgate.config.imports.reading import Entry, Import, read_servers
from thoughtgate.config.imports.text import decoded
from thoughtgate.config.imports.variables import Surroundings
from thoughtgate.config.texts import LARGEST
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import Server
from thoughtgate.registry.store import Registry

_STDIN = Path("-")


class _Change(NamedTuple):
    """What happens to one server: `added`, `replaced` or `unchanged`."""

    entry: Entry
    server: Server
    done: str


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
def import_(context: click.Context, /, file: Path, as_json: bool, **given: object) -> None:
    """Register the servers of another client's FILE: all of them, or none and why.

    Reads what Claude, Cursor, Windsurf, VS Code, Zed and Codex keep (JSON with comments, TOML);
    `-` reads standard input. Variables are filled in now; values of variables and headers are
    stored encrypted.
    """
    loaded = loaded_or_fail(context.obj)
    dry_run = bool(given["dry_run"])
    document = _document(file, str(given["format_name"]))
    folders = _folders(file, given["workspace"])
    around = Surroundings(
        environ=os.environ,
        read=_text_of,
        inputs=_answers(given["inputs"]),
        asking=dry_run or sys.stdin.isatty(),
    )
    only = given["only"] if isinstance(given["only"], tuple) else ()
    found = read_servers(document, around, folders, only)

    def check(store: Registry) -> None:
        taken = _taken(loaded, store, document, found, given["replace"])
        _refuse(file, [*found.problems, *taken])

    def put(store: Registry) -> list[_Change]:
        check(store)
        return _put(store, found)

    with opened_registry(loaded) as store:
        check(store)
    _check_answers(around.inputs, found)
    if found.wanted and not dry_run:
        answers = {**around.inputs, **{one.id: _asked(one) for one in found.wanted}}
        found = read_servers(document, replace(around, inputs=answers), folders, only)
    with opened_registry(loaded) as store:
        changes = _changes(store, found) if dry_run else store.decide(put)
    _tell(file, found, changes, dry_run=dry_run, as_json=as_json)


def _document(file: Path, format_name: str) -> Document:
    """Read the file and find its servers; what is wrong with it names it."""
    if file == _STDIN:
        try:
            text = decoded(sys.stdin.buffer.read(LARGEST + 1))
            return read_document(text, format_name=format_name, toml=False)
        except ConfigError as error:
            raise ConfigError(message=f"standard input: {error.message}") from None
    try:
        toml = file.suffix.lower() == ".toml"
        return read_document(_text_of(file), format_name=format_name, toml=toml)
    except ConfigError as error:
        raise ConfigError(message=f"{file}: {error.message}") from None


def _text_of(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return decoded(stream.read(LARGEST + 1))
    except FileNotFoundError:
        raise ConfigError(message="there is no such file") from None
    except OSError as error:
        raise ConfigError(message=f"it cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError(message="no file can have such a name") from None


def _folders(file: Path, workspace: object) -> Folders:
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise ConfigError(message="the present folder is gone; change to another") from None
    home = Path.home()
    if isinstance(workspace, Path):
        project = Path(os.path.normpath(here / workspace))
        return Folders(base=project, home=home, project=project)
    if not file.is_file():  # standard input, or a pipe that a shell names for us
        return Folders(base=here, home=home)
    # not resolved: a link in a project to a file elsewhere still belongs to the project
    return folders_of(Path(os.path.normpath(here / file)), home)


def _answers(words: object) -> dict[str, str]:
    answers = {}
    for word in words if isinstance(words, tuple) else ():
        id_, equals, value = word.partition("=")
        if not equals or not id_:
            raise click.UsageError(message="--input takes ID=VALUE")
        answers[id_] = value
    return answers


def _check_answers(answers: Mapping[str, str], found: Import) -> None:
    """Refuse an answer that nobody asked for: its id is misspelt, most likely."""
    for id_ in answers:
        if id_ not in found.inputs:
            known = ", ".join(sorted(found.inputs)) or "none"
            raise click.UsageError(message=f"--input {id_}: no such input; the file has {known}")


def _taken(
    loaded: Loaded, store: Registry, document: Document, found: Import, may_replace: object
) -> list[Remark]:
    """Return the problems of names that are registered, here or in the configuration file."""
    registered = set() if may_replace else {*store.server_names()}
    problems = []
    for entry in found.entries:
        if entry.name in loaded.settings.servers:
            text = f"server {entry.name} comes from {loaded.file}; change it there"
        elif entry.name in registered:
            text = f"server {entry.name} is registered already; add --replace"
        else:
            continue
        key = str(document.place.at(entry.was))
        problems.append(Remark(server=entry.was, key=key, text=text))
    return problems


def _refuse(file: Path, problems: Sequence[Remark]) -> None:
    """Refuse the whole file for any problem, and name them all."""
    if not problems:
        return
    where = "standard input" if file == _STDIN else str(file)
    lines = [f"nothing was imported from {where}: {count(len(problems), 'problem')}"]
    lines += [f"  {problem}" for problem in problems]
    raise ConfigError(
        message="\n".join(lines), data={"problems": [_plain(problem) for problem in problems]}
    )


def _asked(one: Input) -> str:
    """Ask a person; what is hidden is not shown while it is typed."""
    kind = click.Choice(one.options) if one.options else str
    answer: str = click.prompt(
        one.description, default=one.default, hide_input=one.hidden, type=kind, err=True,
        show_default=not one.hidden,
    )  # fmt: skip
    return answer


def _put(store: Registry, found: Import) -> list[_Change]:
    """Store what is new or another than before."""
    changes = _changes(store, found)
    new = [change.server for change in changes if change.done != "unchanged"]
    if new:
        store.put_servers(new)
    return changes


def _changes(store: Registry, found: Import) -> list[_Change]:
    return [_change(store, entry) for entry in found.entries]


def _change(store: Registry, entry: Entry) -> _Change:
    """Return a server as it will be: what the file does not say stays as it is."""
    before = store.server(entry.name)
    found = entry.found
    after = before or Server(name=entry.name, transport=found.transport)
    after = replace(
        after,
        transport=found.transport,
        enabled=after.enabled if found.enabled is None else found.enabled,
        start_timeout=found.start_timeout or after.start_timeout,
        call_timeout=found.call_timeout or after.call_timeout,
    )
    if before is None:
        return _Change(entry, after, "added")
    return _Change(entry, after, "unchanged" if after == before else "replaced")


def _tell(
    file: Path, found: Import, changes: Sequence[_Change], *, dry_run: bool, as_json: bool
) -> None:
    rows = [_row(change) for change in changes]
    value = {
        "file": str(file),
        "dry_run": dry_run,
        "servers": rows,
        "notes": [_plain(remark) for remark in found.notes],
        "inputs": [one.id for one in found.wanted],
    }
    head = ("NAME", "STATE", "TRANSPORT", "SECRETS", "WOULD BE" if dry_run else "DONE")
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
    for one in found.wanted if dry_run else ():
        note(f"note: {one.id}: a value will be asked for: {one.description}")
    if changes and not dry_run:
        note("see whether they answer with: thoughtgate server list --check")


def _row(change: _Change) -> dict[str, object]:
    return {
        "name": change.server.name,
        "was": change.entry.was,
        "state": "enabled" if change.server.enabled else "disabled",
        "transport": shown_transport(change.server.transport),
        "secrets": list(secret_names(change.server.transport)),
        "done": change.done,
    }


def _plain(remark: Remark) -> dict[str, str]:
    return {"server": remark.server, "key": remark.key, "text": remark.text}
