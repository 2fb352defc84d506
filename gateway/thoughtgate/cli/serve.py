"""`thoughtgate serve`: the gateway itself.

Never prints anything but protocol on stdout with --stdio; people read stderr.
"""

import os
from pathlib import Path

import click
import msgspec
import uvloop

from thoughtgate.app.serving import serve_http, serve_pipe
from thoughtgate.cli.completing import domain_names
from thoughtgate.cli.logs import log_to_stderr
from thoughtgate.cli.output import note
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.cli.signals import interruptible
from thoughtgate.config.files import Loaded
from thoughtgate.core.domains import DEFAULT_DOMAIN


@click.command()
@click.option("--stdio", is_flag=True, help="Serve one client on standard input and output.")
@click.option(
    "--domain",
    default=DEFAULT_DOMAIN,
    show_default=True,
    help="Domain of --stdio.",
    shell_complete=domain_names,
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 takes a free one.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
)
@click.option("--config", "file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def serve(
    chosen: Path | None,
    /,
    stdio: bool,
    domain: str,
    port: int | None,
    log_level: str,
    file: Path | None,
) -> None:
    """Serve clients over HTTP at /mcp and /mcp/DOMAIN, or one client with --stdio."""
    if stdio and port is not None:
        raise click.UsageError(message="--port is for HTTP; --stdio listens on no port")
    log_to_stderr(log_level)
    loaded = loaded_or_fail(file or chosen)
    if stdio:
        uvloop.run(interruptible(serve_pipe(loaded, os.environ, domain, note)))
    else:
        uvloop.run(interruptible(serve_http(_on_port(loaded, port), os.environ, note)))


def _on_port(loaded: Loaded, port: int | None) -> Loaded:
    if port is None:
        return loaded
    gateway = msgspec.structs.replace(loaded.settings.gateway, port=port)
    settings = msgspec.structs.replace(loaded.settings, gateway=gateway)
    return msgspec.structs.replace(loaded, settings=settings)
