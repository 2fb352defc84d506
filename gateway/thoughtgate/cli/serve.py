"""`thoughtgate serve`: the gateway itself.

Never prints anything but protocol on stdout with --stdio; people read stderr.
"""

import os
import sys
from importlib import import_module, metadata
from pathlib import Path

import click
import uvloop

from thoughtgate.cli.completing import domain_names
from thoughtgate.cli.logs import log_to_stderr
from thoughtgate.cli.output import note
from thoughtgate.cli.settings import loaded_or_fail, with_gateway
from thoughtgate.cli.signals import ended_early, interruptible
from thoughtgate.config.files import Loaded
from thoughtgate.core.domains import DEFAULT_DOMAIN

_SERVING = "thoughtgate.app.serving"
"""Imported only where it is used: the parent of several workers must stay small."""


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
    "--grpc-port",
    type=click.IntRange(0, 65535),
    help="Serve clients over gRPC too, on this port; 0 takes a free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="Processes that serve side by side; else [gateway] workers, which is 1.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
)
@click.option("--config", "file", type=click.Path(dir_okay=False, path_type=Path))
def serve(stdio: bool, domain: str, log_level: str, file: Path | None, **given: int | None) -> None:
    """Serve clients over HTTP at /mcp and /mcp/DOMAIN, over gRPC too, or one by --stdio."""
    if stdio and given["port"] is not None:
        raise click.UsageError(message="--port is for HTTP; --stdio listens on no port")
    if stdio and given["grpc_port"] is not None:
        raise click.UsageError(message="--grpc-port goes with HTTP; --stdio listens on no port")
    if stdio and given["workers"] not in {None, 1}:
        raise click.UsageError(message="--workers is for HTTP; --stdio serves one client alone")
    with ended_early():
        log_to_stderr(log_level)
        context = click.get_current_context()
        loaded = with_gateway(loaded_or_fail(file or context.obj), **given)
        if stdio:
            serving = import_module(_SERVING)
            uvloop.run(interruptible(serving.serve_pipe(loaded, os.environ, domain, note)))
        elif loaded.settings.gateway.workers > 1:
            context.exit(_serve_crew(loaded, log_level))
        else:
            serving = import_module(_SERVING)
            uvloop.run(interruptible(serving.serve_http(loaded, os.environ, note)))


def _serve_crew(loaded: Loaded, log_level: str) -> int:
    """Serve by several processes; this one, their parent, imports little and stays small."""
    crew = import_module("thoughtgate.app.crew.parent")
    count = loaded.settings.gateway.workers
    folder = import_module("thoughtgate.app.crew.folder")
    port = import_module("thoughtgate.app.grpc_port")
    with port.grpc_reserved(loaded) as settled, folder.private_folder(os.environ) as sockets:

        def start(index: int, line: int) -> list[str]:
            # -P: a worker finds the program where we did, not in the current folder
            own = [sys.executable, "-P", "-m", "thoughtgate.cli.worker"]
            said = {"index": index, "count": count, "sockets": sockets, "line": line}
            said |= {"log-level": log_level}
            if settled.settings.gateway.grpc_port is not None:
                said |= {"grpc-port": settled.settings.gateway.grpc_port}
            if settled.file is not None:
                said |= {"config": settled.file}
            return own + [f"--{name}={value}" for name, value in said.items()]

        hands = tuple(crew.Hand(index, start) for index in range(count))
        code: int = crew.serve_crew(settled, metadata.version("thoughtgate"), hands, note)
        return code
