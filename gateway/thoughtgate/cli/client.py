"""`thoughtgate client`: put the gateway into the settings of the programs that use MCP servers.

Never changes a client's file unasked, and never prints what stands in it for other servers.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from thoughtgate.app.entries import domain_named
from thoughtgate.app.masks import shown_command, shown_url
from thoughtgate.app.presence import running
from thoughtgate.app.stores import opened_registry, registry_file
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import clean, json_flag, note, show, table
from thoughtgate.cli.settings import loaded_or_fail, machine
from thoughtgate.config.clients.diffs import diff
from thoughtgate.config.clients.edits import FORMS, connected, disconnected, entries
from thoughtgate.config.clients.entries import (
    DEFAULT_NAME,
    Connection,
    Endpoint,
    Target,
    connection,
    endpoint,
    entry_for,
    pipe,
    words_of,
)
from thoughtgate.config.clients.places import (
    CLIENTS,
    Client,
    place,
    project_place,
    traces,
)
from thoughtgate.config.files import CONFIG_VARIABLE, HOME_VARIABLE, Loaded, load
from thoughtgate.config.originals import Original, backups, read, write
from thoughtgate.config.texts import Unreadable
from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_PROJECT = click.Path(file_okay=False, path_type=Path)


@click.group(cls=Group)
def client() -> None:
    """Connect the programs that use MCP servers: editors, chats, agents."""


@client.command(name="list")
@click.option("--project", type=_PROJECT, help="Look at the files of a project's folder instead.")
@json_flag
@click.pass_obj
def list_(config: Path | None, /, project: Path | None, as_json: bool) -> None:
    """List the clients: which are on this machine, and which are connected."""
    port = loaded_or_fail(config).settings.gateway.port
    known = [each for each in CLIENTS.values() if each.project or project is None]
    rows = [_row(each, project, port) for each in known]
    head = ("CLIENT", "HERE", "CONNECTED", "FILE")
    cells = [(r["name"], "yes" if r["here"] else "no", _state(r), r["file"]) for r in rows]
    show(rows, table(head, cells), as_json=as_json)
    for row in rows:
        if row["problem"] and not as_json:
            note(f"{row['name']}: {row['problem']}")


def _where(command: F) -> F:
    """Add what both commands take: the client, where its file is, and how much is asked."""
    for add in (
        click.option("--yes", is_flag=True, help="Do it without asking."),
        click.option("--dry-run", is_flag=True, help="Only show what would change."),
        click.option("--path", type=click.Path(path_type=Path), help="The client's file itself."),
        click.option("--project", type=_PROJECT, help="The folder of a project, not the user's."),
        click.option("--name", default=DEFAULT_NAME, show_default=True, help="Name of the entry."),
        click.argument("program", metavar="CLIENT", type=click.Choice(tuple(CLIENTS))),
    ):
        command = add(command)
    return command


@client.command()
@_where
@click.option("--domain", default="", help=f"Domain to connect to.  [default: {DEFAULT_DOMAIN}]")
@click.option("--stdio", is_flag=True, help="The client starts a gateway of its own (as usual).")
@click.option("--http", is_flag=True, help="The client goes to the gateway that `serve` runs.")
@click.option("--url", default="", help="The same, at this URL.")
@click.pass_context
def connect(context: click.Context, /, program: str, **given: Any) -> None:
    """Put the gateway into the settings of CLIENT: shows the change, asks, keeps a backup."""
    chosen = CLIENTS[program]
    name = _name(given["name"])
    file = read(_place(chosen, given))
    loaded = loaded_or_fail(context.obj)
    entry = entry_for(chosen, _target(loaded, context.obj, given))
    with _faults_of(file):
        old = entries(file.text, chosen).get(name)
        if old is not None:
            _refuse_foreign(name, old, file, loaded)
        new = connected(file.text, chosen, name, entry)
    if new == file.text:
        note(f"{chosen.title} is already connected, nothing changed: {file.path}")
        return
    if not (given["path"] or given["project"] or _was_used(chosen)):
        note(f"{chosen.title} was never used here as far as one can see; its file will be new")
    words = {*words_of(entry), *entry.get("env", {}).values(), *_words(old)}
    code = _apply(chosen, file, new, words, given)
    if code is Exit.OK and not given["dry_run"]:
        note(f"next: {chosen.then}; {chosen.look}")
        if "command" in entry:
            _warn_of_variables(loaded)
        elif not (given["url"] or any(one.url for one in running(registry_file(loaded).parent))):
            note("mind: no gateway runs now; start one with: thoughtgate serve")
    context.exit(code)


@client.command()
@_where
@click.pass_context
def disconnect(context: click.Context, /, program: str, **given: Any) -> None:
    """Take the gateway out of the settings of CLIENT; everything else in them stays."""
    chosen = CLIENTS[program]
    name = _name(given["name"])
    file = read(_place(chosen, given))
    with _faults_of(file):
        old = entries(file.text, chosen).get(name)
        if old is None:
            note(f"{chosen.title} is not connected, nothing changed: {file.path}")
            return
        _refuse_foreign(name, old, file, loaded_or_fail(context.obj))
        new = disconnected(file.text, chosen, name, [*backups(file), None])
    code = _apply(chosen, file, new, _words(old), given)
    if code is Exit.OK and not given["dry_run"]:
        note(f"next: {chosen.then}")
    context.exit(code)


def _row(chosen: Client, project: Path | None, port: int) -> dict[str, Any]:
    """Return how a client stands, as JSON."""
    path = project_place(chosen, project.absolute()) if project else place(chosen, machine())
    found, problem = list[Connection](), ""
    try:
        file = read(path)
        with _faults_of(file):
            named = entries(file.text, chosen).items()
        found = [one for name, entry in named if (one := connection(name, entry, port))]
    except ConfigError as error:
        problem = error.message
    here = path.exists() if project else _was_used(chosen)
    return {
        "name": chosen.name,
        "title": chosen.title,
        "here": here,
        "file": str(path),
        "exists": path.exists(),
        "connections": [
            {"name": c.name, "how": c.how, "domain": c.domain, "target": _shown(c)} for c in found
        ],
        "problem": problem,
    }


def _state(row: dict[str, Any]) -> str:
    """Return how a client is connected, in a few words."""
    if row["problem"]:
        return "unreadable"
    return ", ".join(_words_for(c) for c in row["connections"]) or "no"


def _words_for(found: dict[str, str]) -> str:
    name = "" if found["name"] == DEFAULT_NAME else f" as {found['name']}"
    return f"{found['domain'] or found['target']} ({found['how']}){name}"


def _shown(found: Connection) -> str:
    if found.how == "http":
        return shown_url(found.target)
    return " ".join(shown_command(found.target.split(" ")))


def _was_used(chosen: Client) -> bool:
    """Say whether a client left traces on this machine."""
    return any(trace.exists() for trace in traces(chosen, machine()))


def _place(chosen: Client, given: dict[str, Any]) -> Path:
    """Return the file that is meant."""
    path, project = given["path"], given["project"]
    if path and project:
        raise click.UsageError(message="give either --path or --project")
    if path:
        return Path(path).absolute()
    if project and not project.is_dir():
        raise ConfigError(message=f"{project}: no such folder")
    return project_place(chosen, project.absolute()) if project else place(chosen, machine())


def _name(name: str) -> str:
    if 1 <= len(name) <= 40 and _LETTERS.issuperset(name):
        return name
    raise ConfigError(
        message="--name: use 1 to 40 letters, digits, hyphens and underscores; clients take no more"
    )


def _target(loaded: Loaded, config: Path | None, given: dict[str, Any]) -> Target:
    """Return what the client is to be led to."""
    if given["stdio"] and (given["http"] or given["url"]):
        raise click.UsageError(message="give either --stdio, or --http or --url")
    if given["url"]:
        return _at_url(given)
    domain = given["domain"] or DEFAULT_DOMAIN
    _check_domain(loaded, domain)
    if not given["http"]:
        named = os.environ.get(HOME_VARIABLE)
        env = {HOME_VARIABLE: str(Path(named).absolute())} if named else {}
        file = config or os.environ.get(CONFIG_VARIABLE)
        return pipe(_program(), domain, str(Path(file).absolute()) if file else "", env)
    gateway = loaded.settings.gateway
    if not gateway.port:
        raise ConfigError(message="gateway.port is 0, so nobody knows the port; give --url")
    return endpoint(gateway.host, gateway.port, domain)


def _at_url(given: dict[str, Any]) -> Endpoint:
    """Return the endpoint at a URL that was given."""
    if given["domain"]:
        raise click.UsageError(message="--url says the domain already; leave out --domain")
    if not given["url"].startswith(("http://", "https://")):
        raise click.UsageError(message="--url must begin with http:// or https://")
    if not given["name"].startswith(DEFAULT_NAME):
        raise click.UsageError(
            message=f"with --url, --name must begin with {DEFAULT_NAME}: by that it is found again"
        )
    return Endpoint(url=given["url"])


def _check_domain(loaded: Loaded, domain: str) -> None:
    """Refuse a domain that does not exist; the default one always does."""
    if domain != DEFAULT_DOMAIN:
        with opened_registry(loaded) as store:
            domain_named(loaded, store, domain)


def _warn_of_variables(loaded: Loaded) -> None:
    """Say what a gateway will miss that is started with none of the variables of this shell."""
    try:
        load(loaded.file, {})
    except ConfigError as error:
        note(f"mind: a client that was not started from this shell may lack a variable: {error}")


def _program() -> Sequence[str]:
    """Return how this very installation is started: its script, else the interpreter with it."""
    script = Path(sys.executable).with_name("thoughtgate")
    return (str(script),) if script.is_file() else (sys.executable, "-m", "thoughtgate")


@contextmanager
def _faults_of(file: Original) -> Iterator[None]:
    """Say of which file a fault is."""
    try:
        yield
    except Unreadable as error:
        raise ConfigError(message=f"{file.path}: {error}; nothing was changed") from None


def _refuse_foreign(name: str, entry: object, file: Original, loaded: Loaded) -> None:
    if connection(name, entry, loaded.settings.gateway.port) is None:
        raise ConfigError(
            message=f"{file.path}: {name} is another server's entry; choose another --name"
        )


def _words(entry: object) -> set[str]:
    return words_of(entry) if isinstance(entry, dict) else set()


def _apply(
    chosen: Client, file: Original, new: str | None, words: set[str], given: dict[str, Any]
) -> Exit:
    """Show the change and make it if it is wanted; return how the command ends."""
    visible = frozenset(word for word in words if "://" not in word or shown_url(word) == word)
    masked = FORMS[chosen.form].masked
    before, after = (masked(text or "", visible) for text in (file.text, new))
    for line in diff(before, after, str(file.path)):
        click.echo(clean(line))
    if new is None:
        note("the file holds nothing else: it goes, and the backup stays")
    if given["dry_run"]:
        return Exit.OK
    if not _wanted(given["yes"]):
        return Exit.FAILED
    backup = write(file, new)
    note(f"{'removed' if new is None else 'wrote'} {file.path}")
    if backup:
        note(f"as it was: {backup}")
    return Exit.OK


def _wanted(yes: bool) -> bool:
    """Ask whether to go on; without a terminal nobody can answer."""
    if yes:
        return True
    if not sys.stdin.isatty():
        note("nothing was changed; give --yes to do it")
        return False
    if click.confirm("change the file?", err=True):
        return True
    note("nothing was changed")
    return False
