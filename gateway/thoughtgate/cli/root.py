"""The command `thoughtgate`: its groups and its global options.

Never does the work of a command; each noun has a file of its own.
"""

import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from thoughtgate.cli.door import Door, say_bugs
from thoughtgate.cli.lazy import LazyCommands, Place
from thoughtgate.cli.logs import log_to_stderr
from thoughtgate.cli.output import json_flag, show
from thoughtgate.cli.target import SERVER_VARIABLE, TOKEN_VARIABLE, remember

_TRACES = "thoughtgate.telemetry"
"""The loggers whose warnings are told by every command: traces would be lost in silence."""

_COMPLETIONS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


PLACES = {
    "serve": Place(
        "thoughtgate.cli.serve:serve",
        "Serve clients over HTTP at /mcp and /mcp/DOMAIN, over gRPC too, or one by --stdio.",
    ),
    "server": Place(
        "thoughtgate.cli.server:server", "Register tool servers, and see how they stand."
    ),
    "tool": Place("thoughtgate.cli.tool:tool", "The tools of the registered servers."),
    "init": Place(
        "thoughtgate.cli.init:init",
        "Write a configuration with a comment for each setting, by asking what matters.",
    ),
    "doctor": Place(
        "thoughtgate.cli.doctor:doctor",
        "Look for what is wrong, and say what mends it; exit 0 only without problems.",
    ),
    "domain": Place(
        "thoughtgate.cli.domain:domain", "Named views of the tools, one endpoint each."
    ),
    "client": Place(
        "thoughtgate.cli.client:client",
        "Connect the programs that use MCP servers: editors, chats, agents.",
    ),
    "grpc": Place("thoughtgate.cli.grpc:grpc", "Servers that speak gRPC."),
    "model": Place("thoughtgate.cli.model:model", "Language models for tasks without a plan."),
    "run": Place("thoughtgate.cli.run:run", "Hand tasks to a reasoning engine."),
    "explain": Place(
        "thoughtgate.cli.explain:explain",
        "Print the stages that a call of TOOL passes, in order, with what each will do.",
    ),
    "status": Place(
        "thoughtgate.cli.status:status",
        "Say which gateways run on this registry, or how the one at --server fares.",
    ),
    "reload": Place(
        "thoughtgate.cli.reload:reload",
        "Have running gateways read their configuration file again.",
    ),
    "schema": Place("thoughtgate.cli.schema:schema", "JSON Schema, as the gateway sees it."),
    "config": Place("thoughtgate.cli.config:config", "Check, show and describe the configuration."),
    "audit": Place("thoughtgate.cli.audit:audit", "The tamper-evident log of every call."),
    "registry": Place(
        "thoughtgate.cli.registry:registry",
        "The database of servers, tools, domains and audit rows.",
    ),
}
"""The commands with a file of their own; what they tell of themselves stands there as well."""


class _Root(Door):
    """The whole command line; what it lists is not imported for that."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = self._lazy = LazyCommands(PLACES)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the commands and what they are for."""
        with formatter.section("Commands"):
            formatter.write_dl([(n, self._lazy.help_of(n)) for n in sorted(self._lazy)])


@click.group(
    cls=_Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 well, 1 the thing asked about failed, 2 usage or configuration, "
    "3 a tool server failed, 4 the registry cannot be used, 5 refused.",
)
@click.version_option(
    package_name="thoughtgate", prog_name="thoughtgate", message="%(prog)s %(version)s"
)
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Configuration file (TOML); THOUGHTGATE_CONFIG names one too.",
)
@click.option(
    "--server",
    "url",
    envvar=SERVER_VARIABLE,
    metavar="URL",
    help="Ask the gateway that runs there, not this machine's registry; THOUGHTGATE_SERVER too.",
)
@click.option(
    "--token-file",
    envvar=TOKEN_VARIABLE,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with that gateway's token; else admin.token in the state folder.",
)
@click.pass_context
def cli(
    context: click.Context, file: Path | None, url: str | None, token_file: Path | None
) -> None:
    """A gateway between IDE or chat clients and tool servers, which can also think."""
    context.obj = file
    remember(context, url, token_file)


@cli.command()
@json_flag
def version(as_json: bool) -> None:
    """Print the version."""
    number = metadata.version("thoughtgate")
    show({"version": number}, [f"thoughtgate {number}"], as_json=as_json)


@cli.command(
    epilog='\b\neval "$(thoughtgate completion bash)"\nthoughtgate completion fish | source'
)
@click.argument("shell", type=click.Choice(tuple(_COMPLETIONS)))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    click.echo(_COMPLETIONS[shell](cli, {}, "thoughtgate", "_THOUGHTGATE_COMPLETE").source())


def main() -> None:
    """Run the command line."""
    _hold_standard_streams()
    log_to_stderr("error", warn_of=_TRACES)
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
