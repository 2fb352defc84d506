"""Whom a command is about: this machine's registry, or a gateway that runs somewhere.

Never connects; it only remembers the global options for the length of one command line.
"""

from pathlib import Path
from typing import NamedTuple

import click
from click.core import ParameterSource

from thoughtgate.core.errors import ConfigError

SERVER_VARIABLE = "THOUGHTGATE_SERVER"
TOKEN_VARIABLE = "THOUGHTGATE_TOKEN_FILE"

_KEY = "thoughtgate.target"


class Target(NamedTuple):
    """A running gateway, and the file with its token when one was named."""

    url: str
    token_file: Path | None


def remember(context: click.Context, url: str | None, token_file: Path | None) -> None:
    """Let the commands below know whom they are about; an empty URL is not nobody.

    Raises:
        click.UsageError: A token is named for nobody.
    """
    if url is not None:
        context.meta[_KEY] = Target(url, token_file)
    elif context.get_parameter_source("token_file") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            message="--token-file is for a gateway that runs somewhere; give --server too"
        )


def target() -> Target | None:
    """Return the gateway that this command is about, None for this machine's registry."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.meta.get(_KEY)
    return found if isinstance(found, Target) else None


def refuse_remote() -> None:
    """Refuse to do on this machine what was asked of a gateway elsewhere.

    Raises:
        ConfigError: A gateway was named.
    """
    if target() is not None:
        raise ConfigError(
            message="this command works on this machine only, not over --server; leave that out, "
            f"or unset {SERVER_VARIABLE}"
        )
