"""The command `thoughtgate`: its groups, its global options and the door for errors.

Never does the work of a command; each noun has a file of its own.
"""

import os
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from thoughtgate.cli.audit import audit
from thoughtgate.cli.config import config
from thoughtgate.cli.domain import domain
from thoughtgate.cli.exits import Exit, code_of
from thoughtgate.cli.explain import explain
from thoughtgate.cli.logs import log_to_stderr
from thoughtgate.cli.output import json_flag, note, show
from thoughtgate.cli.registry import registry
from thoughtgate.cli.run import run
from thoughtgate.cli.schema import schema
from thoughtgate.cli.serve import serve
from thoughtgate.cli.server import server
from thoughtgate.cli.tool import tool
from thoughtgate.core.errors import ConfigError, GateError

_COMPLETIONS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


class _Door(click.Group):
    """The one place where an error becomes a message and an exit code."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override] # click types the keyword arguments that we pass on
        sys.exit(int(self._ended(args, {**extra, "standalone_mode": False})))

    def _ended(self, args: Sequence[str] | None, extra: dict[str, Any]) -> int:
        code: int = Exit.OK
        try:
            _check_text(sys.argv[1:] if args is None else args)
            code = super().main(args, **extra) or Exit.OK
        except click.exceptions.Exit as ended:
            code = ended.exit_code
        except (click.Abort, KeyboardInterrupt):
            note("interrupted")
            code = Exit.INTERRUPTED
        except click.ClickException as error:
            error.show()
            code = Exit.USAGE
        except GateError as error:
            note(f"error: {error.message}")
            code = code_of(error)
        return code


def _check_text(args: Sequence[str]) -> None:
    """Refuse what the system gave us as bytes that are no text: nothing could be done with it."""
    for number, word in enumerate(args, start=1):
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ConfigError(message=f"argument {number} is not UTF-8: {word[:80]}") from None


@click.group(
    cls=_Door,
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
