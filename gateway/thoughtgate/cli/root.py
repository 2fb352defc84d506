"""The command `thoughtgate`: its groups and its global options.

Never does the work of a command; each noun has a file of its own.
"""

import os
import sys
from importlib import metadata
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from thoughtgate.cli.audit import audit
from thoughtgate.cli.config import config
from thoughtgate.cli.domain import domain
from thoughtgate.cli.door import Door, say_bugs
from thoughtgate.cli.explain import explain
from thoughtgate.cli.logs import log_to_stderr
from thoughtgate.cli.output import json_flag, show
from thoughtgate.cli.registry import registry
from thoughtgate.cli.run import run
from thoughtgate.cli.schema import schema
from thoughtgate.cli.serve import serve
from thoughtgate.cli.server import server
from thoughtgate.cli.tool import tool

_COMPLETIONS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


@click.group(
    cls=Door,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 well, 1 the thing asked about failed, 2 usage or configuration, "
    "3 a tool server failed, 4 the registry cannot be used, 5 refused.",
)
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Configuration file (TOML); THOUGHTGATE_CONFIG names one too.",
)
@click.pass_context
def cli(context: click.Context, file: Path | None) -> None:
    """A gateway between IDE or chat clients and tool servers, which can also think."""
    context.obj = file


@cli.command()
@json_flag
def version(as_json: bool) -> None:
    """Print the version."""
    number = metadata.version("thoughtgate")
    show({"version": number}, [f"thoughtgate {number}"], as_json=as_json)


@cli.command()
@click.argument("shell", type=click.Choice(tuple(_COMPLETIONS)))
def completion(shell: str) -> None:
    """Print the completion script of a shell: eval "$(thoughtgate completion bash)"."""
    click.echo(_COMPLETIONS[shell](cli, {}, "thoughtgate", "_THOUGHTGATE_COMPLETE").source())


for _command in (
    serve,
    server,
    tool,
    domain,
    run,
    explain,
    schema,
    config,
    audit,
    registry,
):
    cli.add_command(_command)


def main() -> None:
    """Run the command line."""
    _hold_standard_streams()
    log_to_stderr("error")
    say_bugs()
    cli.main(prog_name="thoughtgate")


def _hold_standard_streams() -> None:
    """Open to nobody what we were started without, such as by a supervisor.

    The next file or socket would take its number, and get what is printed, be it the registry.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for the life of the process
