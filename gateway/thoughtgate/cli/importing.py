"""The import of one file of servers: read, asked for, stored; all of it or nothing.

Never changes the file that it reads, and never stores a variable: values are filled in once, now.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import click

from thoughtgate.app.stores import opened_registry
from thoughtgate.cli.output import count
from thoughtgate.config.files import Loaded
from thoughtgate.config.imports.folders import Folders, folders_of
from thoughtgate.config.imports.formats import AUTO, Document, read_document
from thoughtgate.config.imports.inputs import Input
from thoughtgate.config.imports.places import Remark
from thoughtgate.config.imports.reading import Entry, Import, read_servers
from thoughtgate.config.imports.variables import Surroundings
from thoughtgate.config.texts import LARGEST, Unreadable, settings_of, text_of
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import Server
from thoughtgate.registry.store import Registry

STDIN = Path("-")
"""What stands for standard input in the place of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
    """What is to be imported, and how.

    `only` names servers of the file, all when empty; `answers` are values of its inputs by id;
    `workspace` is the project when it is not the one that the file belongs to.
    """

    file: Path
    format_name: str = AUTO
    only: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    workspace: Path | None = None
    replace: bool = False
    dry_run: bool = False


class Change(NamedTuple):
    """What happens to one server: `added`, `replaced` or `unchanged`."""

    entry: Entry
    server: Server
    done: str


def imported(loaded: Loaded, order: ImportOrder) -> tuple[Import, list[Change]]:
    """Register the servers of a file, and return what it holds and what was done.

    A person at a terminal is asked for inputs that have no answer yet.

    Raises:
        ConfigError: Nothing was imported, for all the reasons that it names.
        click.UsageError: An answer is for no input.
    """
    document = _document(order.file, order.format_name)
    folders = _folders(order.file, order.workspace)
    around = Surroundings(
        environ=os.environ,
        read=_text_of,
        inputs=order.answers,
        asking=order.dry_run or sys.stdin.isatty(),
    )
    found = read_servers(document, around, folders, order.only)

    def check(store: Registry) -> None:
        taken = _taken(loaded, store, document, found, may_replace=order.replace)
        _refuse(order.file, [*found.problems, *taken])

    def put(store: Registry) -> list[Change]:
        check(store)
        return _put(store, found)

    with opened_registry(loaded) as store:
        check(store)
    _check_answers(order.answers, found)
    if found.wanted and not order.dry_run:
        answers = {**order.answers, **{one.id: _asked(one) for one in found.wanted}}
        found = read_servers(document, replace(around, inputs=answers), folders, order.only)
    with opened_registry(loaded) as store:
        return found, _changes(store, found) if order.dry_run else store.decide(put)


def _document(file: Path, format_name: str) -> Document:
    """Read the file and find its servers; what is wrong with it names it."""
    if file == STDIN:
        try:
            text = settings_of(sys.stdin.buffer.read(LARGEST + 1))
            return read_document(text, format_name=format_name, toml=False)
        except (ConfigError, Unreadable) as error:
            raise ConfigError(message=f"standard input: {error}") from None
    try:
        toml = file.suffix.lower() == ".toml"
        return read_document(_text_of(file), format_name=format_name, toml=toml)
    except ConfigError as error:
        raise ConfigError(message=f"{file}: {error.message}") from None


def _text_of(file: Path) -> str:
    try:
        return text_of(file)
    except Unreadable as error:
        raise ConfigError(message=str(error)) from None
    except FileNotFoundError:
        raise ConfigError(message="there is no such file") from None
    except OSError as error:
        raise ConfigError(message=f"it cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError(message="no file can have such a name") from None


def _folders(file: Path, workspace: Path | None) -> Folders:
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise ConfigError(message="the present folder is gone; change to another") from None
    home = Path.home()
    if workspace is not None:
        project = Path(os.path.normpath(here / workspace))
        return Folders(base=project, home=home, project=project)
    if not file.is_file():  # standard input, or a pipe that a shell names for us
        return Folders(base=here, home=home)
    # not resolved: a link in a project to a file elsewhere still belongs to the project
    return folders_of(Path(os.path.normpath(here / file)), home)


def _check_answers(answers: Mapping[str, str], found: Import) -> None:
    """Refuse an answer that nobody asked for: its id is misspelt, most likely."""
    for id_ in answers:
        if id_ not in found.inputs:
            known = ", ".join(sorted(found.inputs)) or "none"
            raise click.UsageError(message=f"--input {id_}: no such input; the file has {known}")


def _taken(
    loaded: Loaded, store: Registry, document: Document, found: Import, *, may_replace: bool
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
    where = "standard input" if file == STDIN else str(file)
    lines = [f"nothing was imported from {where}: {count(len(problems), 'problem')}"]
    lines += [f"  {problem}" for problem in problems]
    raise ConfigError(
        message="\n".join(lines), data={"problems": [plain(problem) for problem in problems]}
    )


def _asked(one: Input) -> str:
    """Ask a person; what is hidden is not shown while it is typed."""
    kind = click.Choice(one.options) if one.options else str
    answer: str = click.prompt(
        one.description, default=one.default, hide_input=one.hidden, type=kind, err=True,
        show_default=not one.hidden,
    )  # fmt: skip
    return answer


def _put(store: Registry, found: Import) -> list[Change]:
    """Store what is new or another than before."""
    changes = _changes(store, found)
    new = [change.server for change in changes if change.done != "unchanged"]
    if new:
        store.put_servers(new)
    return changes


def _changes(store: Registry, found: Import) -> list[Change]:
    return [_change(store, entry) for entry in found.entries]


def _change(store: Registry, entry: Entry) -> Change:
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
        return Change(entry, after, "added")
    return Change(entry, after, "unchanged" if after == before else "replaced")


def plain(remark: Remark) -> dict[str, str]:
    """Return a remark as JSON."""
    return {"server": remark.server, "key": remark.key, "text": remark.text}
