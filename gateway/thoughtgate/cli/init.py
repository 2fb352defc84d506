"""`thoughtgate init`: a first configuration, by asking what matters.

Never overwrites a file unasked, and writes nothing before the last question is answered.
"""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from thoughtgate.cli.init_imports import found_files, import_all
from thoughtgate.cli.init_questions import QUESTIONS, answers_of, asked
from thoughtgate.cli.output import clean, json_flag, note, show
from thoughtgate.cli.target import refuse_remote
from thoughtgate.config.files import default_file, parse, usual_file
from thoughtgate.config.originals import Original, read, write
from thoughtgate.config.writing import Choices, written
from thoughtgate.core.errors import ConfigError

_HELP = "One answer, or a TOML file of them: " + ", ".join(one.key for one in QUESTIONS) + "."


@click.command(
    epilog="\b\n"
    "thoughtgate init\n"
    "thoughtgate init --yes --answers servers=files --answers folder=~/notes"
)
@click.option("--answers", "given", multiple=True, metavar="KEY=VALUE|FILE", help=_HELP)
@click.option("--yes", is_flag=True, help="Ask nothing: what is not answered is as usual.")
@click.option("--force", is_flag=True, help="Replace a file that is there; a copy of it is kept.")
@json_flag
@click.pass_obj
def init(
    chosen: Path | None, /, given: tuple[str, ...], yes: bool, force: bool, as_json: bool
) -> None:
    """Write a configuration with a comment for each setting, by asking what matters."""
    refuse_remote()
    answers = answers_of(given)
    asking = not yes and sys.stdin.isatty()
    if not (yes or given or asking):
        raise ConfigError(message="init asks questions, which needs a terminal; or give --yes")
    found = asked(QUESTIONS[:1], answers, ask=asking and chosen is None)
    target = chosen or _place(found["where"])
    before = read(target)
    if before.data is not None and not force:
        raise ConfigError(message=f"{target} is there already; add --force to replace it")
    found |= asked(QUESTIONS[1:], answers, ask=asking)
    text = written(_choices(found))
    parse(text, str(target), os.environ)
    if asking:
        note(f"\n{target} will be:\n\n{text}")
        click.confirm("Write it?", default=True, abort=True, err=True)
    kept = _write(before, text)
    imported = import_all(target, found_files()) if found["servers"] == "import" else []
    value = {
        "file": str(target),
        "kept": str(kept) if kept else None,
        "imported": imported,
        "next": list(_next(target, found)),
    }
    show(value, map(clean, _lines(value)), as_json=as_json)


def _place(where: str) -> Path:
    if where == "folder":
        return Path.cwd() / "thoughtgate.toml"
    return default_file(os.environ) or usual_file()


def _choices(found: Mapping[str, str]) -> Choices:
    files = found["servers"] == "files"
    root = str(Path(found["folder"]).expanduser().absolute()) if files else ""
    return Choices(
        domain=found["domain"],
        purpose=found["purpose"],
        server="files" if files else "",
        command=("thoughtgate-files", "--root", root) if files else (),
        capture=found["capture"] == "yes",
        traces="" if found["traces"] == "none" else found["traces"],
        port=None if found["port"] == "stdio" else int(found["port"]),
    )


def _write(before: Original, text: str) -> Path | None:
    """Write the file, whole or not at all; return where the one before it is kept."""
    try:
        before.real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(message=f"{before.path} cannot be written: {reason}") from error
    return write(before, text)


def _next(target: Path, found: Mapping[str, str]) -> Iterator[str]:
    usual = target == (default_file(os.environ) or usual_file())
    command = "thoughtgate" if usual else f"thoughtgate --config {shlex.quote(str(target))}"
    yield f"{command} doctor"
    yield f"{command} tool list"
    if found["client"] != "none":
        yield f"{command} client connect {found['client']}"
    elif found["port"] == "stdio":
        yield f"{command} client list"
    else:
        yield f"{command} serve"


def _lines(value: Mapping[str, object]) -> Iterator[str]:
    yield f"{value['file']} is written"
    if value["kept"]:
        yield f"the one before it is kept as {value['kept']}"
    imported, following = value["imported"], value["next"]
    yield from (imported if isinstance(imported, list) else ())
    yield "go on with:"
    yield from (f"  {line}" for line in (following if isinstance(following, list) else ()))
